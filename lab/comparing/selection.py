"""Which of the runs on disk are compared: those of one problem, as only they can be compared."""

from __future__ import annotations

import difflib
import json
import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.comparing.labels import settings
from lab.errors import UserError
from lab.recording.curves import SUMMARY, RecordedRun


@dataclass(frozen=True)
class Selection:
    """Runs, sorted out.

    Attributes:
        runs: those to compare; all train on the same problem, and each made at least one step.
        others: the runs of each other problem, the largest group first, by the filters (key and
            value) that select them among all.
        failed: the runs that never made a step.
    """

    runs: list[RecordedRun]
    others: dict[tuple[tuple[str, str], ...], list[RecordedRun]]
    failed: list[RecordedRun]


def select(runs: Sequence[RecordedRun], reference: str | None = None) -> Selection:
    """Keep the largest group of runs with the same problem, or the one with the reference."""
    groups: dict[str, list[RecordedRun]] = defaultdict(list)
    for run in runs:
        if len(run.steps):
            groups[repr(problem(run))].append(run)
    by_size = sorted(groups.values(), key=len, reverse=True)
    if reference is not None:
        by_size.sort(key=lambda group: not matching(group, reference))
    problems = [problem(group[0]) for group in by_size]
    return Selection(
        runs=by_size[0] if by_size else [],
        others={_filters(problems[i], problems): by_size[i] for i in range(1, len(by_size))},
        failed=[run for run in runs if not len(run.steps)],
    )


def problem(run: RecordedRun) -> dict[str, Any]:
    """What must be equal for two losses to be comparable: the data, and the size of the model.

    The seed isn't part of it: runs of several seeds are compared seed by seed.
    """
    return {
        key: value
        for key, value in sorted(run.config.items())
        if key in ("data", "model")
        or key.startswith("data.")
        # The sizes of a model and whether it has a bias; its layers come from the function.
        or (key.startswith("model.") and isinstance(value, int | float))
    }


def _filters(wanted: dict[str, Any], problems: list[dict[str, Any]]) -> tuple[tuple[str, str], ...]:
    """The first settings of one problem that together tell it from all others."""
    filters, alike = [], problems
    for key, value in wanted.items():
        if any(other.get(key) != value for other in alike):
            filters.append((key, _as_typed(value)))
            alike = [other for other in alike if other.get(key) == value]
    return tuple(filters)


def matching(runs: Sequence[RecordedRun], wanted: str) -> list[RecordedRun]:
    """The runs whose folder is `wanted`, a path or the end of one; else those of the function."""
    real, tail = os.path.realpath(wanted), Path(wanted).parts
    return [
        run
        for run in runs
        if os.path.realpath(run.folder) == real or run.folder.parts[-len(tail) :] == tail
    ] or [run for run in runs if run.function == wanted]


def filtered(runs: Sequence[RecordedRun], filters: Iterable[tuple[str, str]]) -> list[RecordedRun]:
    """The runs in which every key has the value.

    A key is one of the config, whole or its last part (`optimizer.lr` or `lr`), or `status`.

    Raises:
        UserError: no run has the key, or none has the value.
    """
    kept = list(runs)
    for key, text in filters:
        values = [_values(run, key) for run in kept]
        known = sorted({_as_typed(value) for found in values for value in found})
        if not known:
            keys = {key for run in kept for key in settings(run)}
            close = difflib.get_close_matches(key, keys, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise UserError(f"--filter {key}={text}: no run has the key {key}{hint}")
        kept = [run for run, found in zip(kept, values, strict=True) if _is_one_of(text, found)]
        if not kept:
            raise UserError(f"--filter {key}={text} fits no run; {key} is {', '.join(known[:9])}")
    return kept


def _values(run: RecordedRun, key: str) -> list[Any]:
    known = run.config | settings(run) | {"status": run.status}
    return [value for name, value in known.items() if name == key or name.endswith(f".{key}")]


def _is_one_of(text: str, values: list[Any]) -> bool:
    try:
        return json.loads(text) in values or text in values  # `1.0e-6` is 1e-06, `null` is None
    except ValueError:
        return text in values


def _as_typed(value: Any) -> str:
    """A value as it is typed on a command line."""
    return value if isinstance(value, str) else json.dumps(value)


def latest(runs: Sequence[RecordedRun], count: int) -> list[RecordedRun]:
    """The runs whose summaries were written last, in the order in which they were given."""
    by_time = sorted(runs, key=lambda run: (run.folder / SUMMARY).stat().st_mtime)
    newest = {run.folder for run in by_time[-count:]}
    return [run for run in runs if run.folder in newest]

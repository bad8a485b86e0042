"""Which of the runs on disk are compared: those of one problem, as only they can be compared."""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.comparing.labels import as_typed, settings
from lab.errors import UserError
from lab.recording.reading import RecordedRun
from lab.recording.summary import SUMMARY

Setting = tuple[str, str]  # key and value, as typed


@dataclass(frozen=True)
class Selection:
    """Runs, sorted out.

    Attributes:
        runs: those to compare: all of one problem, each with at least one step.
        others: the runs of each other problem, the largest group first, with the settings that
            tell it from all other problems.
        failed: the runs that never made a step.
    """

    runs: list[RecordedRun]
    others: list[tuple[list[Setting], list[RecordedRun]]]
    failed: list[RecordedRun]


def select(runs: Sequence[RecordedRun], reference: str | None = None) -> Selection:
    """Keep the largest group of runs with the same problem, or the one that has the reference."""
    by_problem = defaultdict(list)
    for run in runs:
        if len(run.steps):
            by_problem[repr(problem(run))].append(run)
    groups = sorted(by_problem.values(), key=len, reverse=True)
    if reference is not None:
        groups.sort(key=lambda group: not matching(group, reference))
    problems = [problem(group[0]) for group in groups]
    return Selection(
        runs=groups[0] if groups else [],
        others=[(_telling(problems[i], problems), groups[i]) for i in range(1, len(groups))],
        failed=[run for run in runs if not len(run.steps)],
    )


def problem(run: RecordedRun) -> dict[str, Any]:
    """What two runs must share for their losses to be comparable: data, and size of the model.

    The seed isn't part of it: runs of several seeds are compared seed by seed.
    """
    # Of a model the sizes and whether there is a bias. Its layers come from the function, and
    # another class may compute the same network: `exercise_network`, which has no bias to choose.
    return {"model.bias": False} | {
        key: value
        for key, value in sorted(run.config.items())
        if key.partition(".")[0] == "data"
        or (re.fullmatch(r"model\.\w+", key) and isinstance(value, int | float))
    }


def _telling(wanted: dict[str, Any], problems: list[dict[str, Any]]) -> list[Setting]:
    """The first settings of a problem that together tell it from all others."""
    found, alike = [], problems
    for key in sorted({key for other in problems for key in other}):
        if any(other.get(key) != wanted.get(key) for other in alike):
            found.append((key, as_typed(wanted.get(key))))
            alike = [other for other in alike if other.get(key) == wanted.get(key)]
    return found


def matching(runs: Sequence[RecordedRun], wanted: str) -> list[RecordedRun]:
    """The runs whose folder is `wanted`, a path or the end of one; else those of the function."""
    real, tail = os.path.realpath(wanted), Path(wanted).parts
    return [
        run
        for run in runs
        if os.path.realpath(run.folder) == real or run.folder.parts[-len(tail) :] == tail
    ] or [run for run in runs if run.summary.function == wanted]


def filtered(runs: Sequence[RecordedRun], filters: Sequence[Setting]) -> list[RecordedRun]:
    """The runs that have all the settings.

    A key is one of the config, whole or its last part (`optimizer.lr` or `lr`), or `status`.

    Raises:
        UserError: no run has them.
    """
    kept = list(runs)
    for key, text in filters:
        known = [(run, _values(run, key)) for run in kept]
        kept = [run for run, values in known if _normal(text) in (values or ["null"])]
        if not kept:
            values = sorted({value for _, values in known for value in values})
            hint = f"{key} is {', '.join(values[:9])}" if values else f"no run has the key {key}"
            raise UserError(f"--filter {key}={text} fits no run; {hint}")
    return kept


def _values(run: RecordedRun, key: str) -> list[str]:
    known = run.config | settings(run) | {"status": run.summary.status}
    return [as_typed(v) for name, v in known.items() if name == key or name.endswith(f".{key}")]


def _normal(text: str) -> str:
    """A typed value as `as_typed` gives it: `1e-06` for `1.0e-6`."""
    try:
        return as_typed(json.loads(text))
    except ValueError:
        return text


def latest(runs: Sequence[RecordedRun], count: int) -> list[RecordedRun]:
    """The runs whose summaries were written last, in the order in which they were given."""
    by_time = sorted(runs, key=lambda run: (run.folder / SUMMARY).stat().st_mtime)
    newest = {run.folder for run in by_time[-count:]}
    return [run for run in runs if run.folder in newest]

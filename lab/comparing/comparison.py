"""Where recorded curves part from a reference, and by how much: the numbers and their table."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import sys
import textwrap
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lab.errors import UserError
from lab.jsonable import jsonable
from lab.recording.reading import RecordedRun, Skipped

SAID_BARE = ("function", "optimizer", "model", "data", "device", "dtype")
# Which choices bring the keys of a section of the config with them.
FROM = {
    "function": ("function",),
    "optimizer": ("optimizer",),
    "data": ("data",),
    "model": ("model", "function", "data"),
}
# Keys that say how a run is watched or stored: no curve depends on them.
NOT_THE_PROBLEM = ("resume", "progress", "log_every", "flush_seconds", "checkpoint_every")


@dataclass(frozen=True)
class Difference:
    """How one curve differs from the reference, over the steps that both have.

    Attributes:
        not_comparable: why the two can't be compared, or None; then all below is empty.
        steps: (n,) the common steps.
        relative: (n,) |loss - reference| / |reference| at each; inf where only one is finite.
        parts_at: the first step at which they differ by more than the tolerance, or None.
        largest: the largest of `relative`, and the first step that has it.
    """

    not_comparable: str | None = None
    steps: np.ndarray | None = None
    relative: np.ndarray | None = None
    parts_at: int | None = None
    largest: float | None = None
    largest_at: int | None = None


@dataclass(frozen=True)
class Row:
    """One run of a comparison, under the name and the label that tell it from the others."""

    run: RecordedRun
    name: str
    label: str
    difference: Difference


@dataclass(frozen=True)
class Comparison:
    rows: list[Row]
    reference: Row
    tolerance: float
    folder: Path


def compare(
    runs: Sequence[RecordedRun], reference: str | None = None, tolerance: float = 0.0
) -> Comparison:
    """Compare runs with one of them.

    Args:
        runs: at least one.
        reference: name or folder of a run, or the function of exactly one of them; default the
            run that most others can be compared with: of the largest group with the same data
            and seed the first of `builtin`, else the first.
        tolerance: the largest relative difference that still counts as equal; 0 is bit for bit.

    Raises:
        UserError: no run, or not exactly one, goes by the name of `reference`.
    """
    folder = Path(os.path.commonpath([run.folder.absolute().parent for run in runs]))
    names = [os.path.relpath(run.folder.absolute(), folder) for run in runs]
    chosen = _reference(runs, names, reference)
    rows = [
        Row(run, name, label, difference(run, runs[chosen], tolerance))
        for run, name, label in zip(runs, names, labels(runs, names), strict=True)
    ]
    return Comparison(rows, rows[chosen], tolerance, folder)


def _reference(runs: Sequence[RecordedRun], names: Sequence[str], wanted: str | None) -> int:
    if wanted is None:
        return _most_comparable(runs)
    path = os.path.realpath(wanted)
    for fits in (
        [i for i, name in enumerate(names) if name == wanted],
        [i for i, run in enumerate(runs) if os.path.realpath(run.folder) == path],
        [i for i, name in enumerate(names) if Path(name).name == wanted],
        [i for i, run in enumerate(runs) if run.function == wanted],
    ):
        if len(fits) == 1:
            return fits[0]
        if fits:
            raise UserError(f"--reference {wanted}: {len(fits)} runs go by it; name the folder")
    listed = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    raise UserError(f"--reference {wanted}: none of the runs compared: {listed}")


def _most_comparable(runs: Sequence[RecordedRun]) -> int:
    groups = defaultdict(list)
    for i, run in enumerate(runs):
        if len(run.steps):
            groups[repr(_problem(run))].append(i)
    ranks = {}
    for group in groups.values():
        steps, runs_with = np.unique(
            np.concatenate([runs[i].steps for i in group]), return_counts=True
        )
        for i in group:
            in_common = int((runs_with[np.searchsorted(steps, runs[i].steps)] - 1).sum())
            # One step says too little, even of builtin.
            ranks[i] = len(group), len(runs[i].steps) > 1, runs[i].function == "builtin", in_common
    return max(sorted(ranks), key=ranks.__getitem__, default=0)


def one_problem(comparison: Comparison) -> Path | None:
    """The folder with the most runs that can be compared with each other, but not here; or None."""
    folders = defaultdict(list)
    for row in comparison.rows:
        if len(row.run.steps):
            folders[row.run.folder.parent].append(row)
    reference = repr(_problem(comparison.reference.run))
    alike = {}
    for folder, rows in folders.items():
        problems = {repr(_problem(row.run)) for row in rows}
        if len(rows) > 1 and len(problems) == 1 and reference not in problems:
            alike[folder] = len(rows)
    return max(alike, key=alike.__getitem__, default=None)


def difference(run: RecordedRun, reference: RecordedRun, tolerance: float = 0.0) -> Difference:
    """Compare two curves by the numbers of their steps. NaN equals NaN at the same step."""
    if not len(run.steps):
        return Difference(not_comparable="no step")
    problem, of_reference = _problem(run), _problem(reference)
    other = [what for what in problem if problem[what] != of_reference[what]]
    if other:
        return Difference(not_comparable="other " + " and ".join(other))
    steps, here, there = np.intersect1d(
        run.steps, reference.steps, assume_unique=True, return_indices=True
    )
    if not len(steps):
        return Difference(not_comparable="no step in common")
    relative = relative_difference(run.losses[here], reference.losses[there])
    parted = relative > tolerance
    largest = int(relative.argmax())
    return Difference(
        steps=steps,
        relative=relative,
        parts_at=int(steps[parted.argmax()]) if parted.any() else None,
        largest=float(relative[largest]),
        largest_at=int(steps[largest]),
    )


def _problem(run: RecordedRun) -> dict[str, Any]:
    data = {k: v for k, v in sorted(run.config.items()) if k.split(".")[0] == "data"}
    return {"data": data, "seed": run.seed}


def relative_difference(losses: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """|losses - reference| / |reference|, elementwise, float64.

    0 where both are the same, NaN and infinities included; inf where only one of them is finite.

    >>> relative_difference(np.array([1.5, np.nan, 0.0, 2.0]), np.array([1.0, np.nan, 0.0, np.nan]))
    array([0.5, 0. , 0. , inf])
    """
    same = (losses == reference) | (np.isnan(losses) & np.isnan(reference))
    with np.errstate(all="ignore"):
        relative = np.abs(losses - reference) / np.abs(reference)
    relative[np.isnan(relative) | ~(np.isfinite(losses) & np.isfinite(reference))] = np.inf
    relative[same] = 0.0
    return relative


def labels(runs: Sequence[RecordedRun], names: Sequence[str]) -> list[str]:
    """For each run, only what differs between the runs; where nothing does, its name.

    What a choice brings with it is said by the choice: `adam`, not `adam lr=0.001`, unless two
    runs of `adam` differ in lr. A run without a step goes by its name, and makes no difference to
    the others: its config may be the very thing that was wrong with it.
    """
    begun = [i for i, run in enumerate(runs) if len(run.steps)]
    told = _labels([runs[i] for i in begun], [names[i] for i in begun])
    return list((dict(enumerate(names)) | dict(zip(begun, told, strict=True))).values())


def _labels(runs: Sequence[RecordedRun], names: Sequence[str]) -> list[str]:
    configs = [
        {key: value for key, value in run.config.items() if key not in NOT_THE_PROBLEM}
        | {key: getattr(run, key) for key in ("function", "optimizer", "device", "dtype", "seed")}
        for run in runs
    ]
    shown: dict[tuple, str] = {}
    for key in dict.fromkeys((*SAID_BARE, "seed", *(key for config in configs for key in config))):
        values = [config.get(key) for config in configs]
        if _differs(configs, key):
            # `model.features: ${data.features}` is the same difference once more.
            shown.setdefault((_last(key), repr(values)), key)
    keys = list(shown.values())
    short = [_last(key) for key in keys]
    parts = [
        " ".join(
            str(config[key])
            if key in SAID_BARE
            else f"{last if short.count(last) == 1 else key}={_value(config[key])}"
            for key, last in zip(keys, short, strict=True)
            if key in config
        )
        for config in configs
    ]
    return [
        part if part and parts.count(part) == 1 else f"{part} ({name})" if part else name
        for part, name in zip(parts, names, strict=True)
    ]


def _differs(configs: Sequence[dict[str, Any]], key: str) -> bool:
    section = key.partition(".")[0]
    # A key inside a section is compared between runs of the same choice alone; a model takes its
    # layers from the function and its sizes from the data.
    fixed = () if section == key else FROM.get(section, ())
    values = defaultdict(set)
    for config in configs:
        values[tuple(config.get(choice) for choice in fixed)].add(repr(config.get(key)))
    return any(len(group) > 1 for group in values.values())


def _last(key: str) -> str:
    return key.rpartition(".")[2]


def _value(value: Any) -> str:
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return text if text.isprintable() else repr(value)


# --- the table ---------------------------------------------------------------------------------


def table(comparison: Comparison, width: int | None = None) -> str:
    """The comparison as text, no line wider than `width` characters (None: as wide as it gets).

    Where there is too little room, a column in which all runs say the same becomes a line above
    the table; then the least telling columns go, and labels stand in for long names.
    """
    rows = comparison.rows
    columns = {
        "name": [row.name for row in rows],
        "function": [row.run.function for row in rows],
        "optimizer": [row.run.optimizer for row in rows],
        "device": [row.run.device for row in rows],
        "steps": [f"{len(row.run.steps):,}" for row in rows],
        "status": [_status(row.run) for row in rows],
        "first loss": [_loss(row.run.first_loss) for row in rows],
        "last loss": [_loss(row.run.final_loss) for row in rows],
        "accuracy": [_accuracy(row.run.test_accuracy) for row in rows],
        "steps/s": [_rate(row.run.steps_per_second) for row in rows],
        "parts at": [_parts_at(row, comparison) for row in rows],
        "largest difference": [_largest(row, comparison) for row in rows],
    }
    if all(row.run.test_accuracy is None for row in rows):
        del columns["accuracy"]
    above: dict[str, str] = {}
    for column in ("optimizer", "device", "steps", "status", "first loss", "function"):
        if _too_wide(columns, width) and len(set(columns[column])) == 1:
            above[column] = columns.pop(column)[0]
    for column in ("steps/s", "first loss", "device", "optimizer", "function", "steps"):
        if column in columns and _too_wide(columns, width):
            del columns[column]
    shown = columns["name"]
    if width:
        rest = {title: cells for title, cells in columns.items() if title != "name"}
        room = max(width - _width(rest) - 2, 12)
        if max(map(len, shown)) > room:
            shown, columns["name"] = cut_apart(rows, room)
    shared = f"every run: {', '.join(f'{k} {v}' for k, v in above.items())}" if above else ""
    lines = _wrapped(shared, width) + _lines(columns)
    if comparison.tolerance:
        lines.append(f"equal: a relative difference of at most {comparison.tolerance:g}")
    for name, row in zip(shown, rows, strict=True):
        if row.run.error:
            lines += _wrapped(f"{name}: {row.run.error}", width)
    return "\n".join(line if width is None else _cut(line, width) for line in lines)


def terminal_width() -> int | None:
    """Characters in a line of the terminal; None where standard output is none."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


LEFT = ("name", "function", "optimizer", "device", "status", "largest difference")


def _lines(columns: dict[str, list[str]]) -> list[str]:
    cells = []
    for title, column in columns.items():
        size = max(map(len, (title, *column)))
        pad = str.ljust if title in LEFT else str.rjust
        cells.append([pad(cell, size) for cell in (title, "-" * size, *column)])
    return ["  ".join(line).rstrip() for line in zip(*cells, strict=True)]


def _width(columns: dict[str, list[str]]) -> int:
    return sum(max(map(len, (title, *column))) + 2 for title, column in columns.items()) - 2


def _too_wide(columns: dict[str, list[str]], width: int | None) -> bool:
    return width is not None and _width(columns) > width


def cut_apart(rows: Sequence[Row], room: int) -> tuple[list[str], list[str]]:
    """What to call the rows, and the same in `room` characters without two that look alike.

    The labels, else the names, cut at the end, in the middle or at the start: the first way that
    tells all rows apart. Where none does, the labels with a number before them.
    """
    labels, names = [row.label for row in rows], [row.name for row in rows]
    numbered = [f"{number} {label}" for number, label in enumerate(labels, start=1)]
    for whole in (labels, names):
        for head in (1.0, 0.6, 0.0):
            cut = [_cut(text, room, head) for text in whole]
            if len(set(cut)) == len(rows):
                return whole, cut
    return numbered, [_cut(text, room) for text in numbered]


def _wrapped(line: str, width: int | None) -> list[str]:
    return textwrap.wrap(line, width or sys.maxsize, subsequent_indent="  ")


def _cut(line: str, width: int, head: float = 1.0) -> str:
    """Leave out what is too much; `head` is the share of what stays that is before the gap."""
    if len(line) <= width:
        return line
    before = round(head * (width - 1))
    return f"{line[:before]}…{line[len(line) - (width - 1 - before) :]}"


def _status(run: RecordedRun) -> str:
    # A run that is still going on and one that was killed look the same on disk.
    return "unfinished" if run.status == "running" else run.status


def _loss(loss: float | None) -> str:
    return "-" if loss is None else f"{loss:.5g}"


def _accuracy(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"


def _rate(steps_per_second: float | None) -> str:
    return "-" if steps_per_second is None else f"{steps_per_second:,.0f}"


def _parts_at(row: Row, comparison: Comparison) -> str:
    if row is comparison.reference or row.difference.not_comparable:
        return "-"
    return "never" if row.difference.parts_at is None else str(row.difference.parts_at)


def _largest(row: Row, comparison: Comparison) -> str:
    found = row.difference
    if row is comparison.reference:
        return "the reference"
    if found.not_comparable:
        return f"not comparable: {found.not_comparable}"
    shorter = len(found.steps) < max(len(row.run.steps), len(comparison.reference.run.steps))
    count = f"{len(found.steps):,} step{'s' if len(found.steps) > 1 else ''}"
    over = f" ({count})" if shorter else ""
    if found.largest == 0.0:
        return f"equal bit for bit{over}"
    return f"{found.largest:.2g} at {found.largest_at}{over}"


# --- for scripts -------------------------------------------------------------------------------


def as_records(comparison: Comparison) -> list[dict[str, Any]]:
    """One flat dict a run; numbers that are not finite as the texts "nan", "inf", "-inf"."""
    records = [
        {
            "name": row.name,
            "label": row.label,
            "function": row.run.function,
            "optimizer": row.run.optimizer,
            "device": row.run.device,
            "dtype": row.run.dtype,
            "seed": row.run.seed,
            "steps": len(row.run.steps),
            "status": _status(row.run),
            "first_loss": row.run.first_loss,
            "final_loss": row.run.final_loss,
            "test_accuracy": row.run.test_accuracy,
            "steps_per_second": row.run.steps_per_second,
            "reference": row is comparison.reference,
            "not_comparable": row.difference.not_comparable,
            "parts_at": row.difference.parts_at,
            "largest_difference": row.difference.largest,
            "largest_at": row.difference.largest_at,
        }
        for row in comparison.rows
    ]
    return jsonable(records)


def as_json(comparison: Comparison, skipped: Sequence[Skipped]) -> str:
    return json.dumps(
        {
            "reference": comparison.reference.name,
            "tolerance": comparison.tolerance,
            "runs": as_records(comparison),
            "skipped": [{"path": str(one.path), "reason": one.reason} for one in skipped],
        },
        indent=1,
        allow_nan=False,
    )


def as_csv(comparison: Comparison) -> str:
    records = as_records(comparison)
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(records[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue().rstrip("\n")

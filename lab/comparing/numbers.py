"""At which step does each curve first differ from a reference, and by how much?"""

from __future__ import annotations

import itertools
import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lab.comparing.labels import differing_keys, labels, printable, settings, usual_settings
from lab.comparing.selection import matching
from lab.errors import UserError
from lab.recording.reading import RecordedRun


@dataclass(frozen=True)
class Difference:
    """How one curve differs from another, over the n >= 1 steps that both recorded.

    Attributes:
        steps: (n,) these steps.
        relative: (n,) |loss - reference| / |reference| at each; inf where only one is finite.
        first_step: the first step at which they differ by more than the tolerance, or None.
        largest: the largest of `relative`.
        largest_at: the first step that has it.
        complete: whether neither curve goes on after the last of the steps.
        ratio: loss / reference at the last of the steps; a loss that is NaN counts as inf.
        lower: whether the loss at the last of the steps is below that of the reference.
    """

    steps: np.ndarray
    relative: np.ndarray
    first_step: int | None
    largest: float
    largest_at: int
    complete: bool
    ratio: float
    lower: bool


@dataclass(frozen=True)
class Entry:
    """One run of a row.

    Attributes:
        name: its folder, seen from the folder of the comparison.
        difference: from the run of the reference with the same seed, or None.
        not_comparable: why there is no difference; None where there is one, and in the reference.
    """

    run: RecordedRun
    name: str
    difference: Difference | None
    not_comparable: str | None


@dataclass(frozen=True)
class Row:
    """Runs that differ by nothing but the seed, in the order of their seeds."""

    label: str
    entries: list[Entry]

    @property
    def differences(self) -> list[Difference]:
        return [entry.difference for entry in self.entries if entry.difference is not None]

    @property
    def last_losses(self) -> np.ndarray:
        """(runs,) float64; a loss that is not finite counts as inf."""
        losses = np.array([entry.run.losses[-1] for entry in self.entries])
        return np.where(np.isfinite(losses), losses, np.inf)


@dataclass(frozen=True)
class Comparison:
    """Rows, the keys of the settings in which they differ, and the settings of most of them."""

    rows: list[Row]
    reference: Row
    tolerance: float
    folder: Path
    keys: list[str]
    usual: dict[str, Any]


def compare(
    runs: Sequence[RecordedRun], reference: str | None = None, tolerance: float = 0.0
) -> Comparison:
    """Compare runs, row by row, with one of the rows: each run with the one of the same seed.

    Args:
        runs: at least one, of one problem, each with at least one step; see `selection`.
        reference: the label of a row, the folder of a run in it, or the function of exactly one
            row. By default it is the row that has most points in common with the others; of several
            the first of function `builtin`, else the first.
        tolerance: the largest relative difference that still counts as equal; 0 is bit for bit.

    Raises:
        UserError: `reference` names no row, or several.
    """
    folder = Path(os.path.commonpath([run.folder.absolute().parent for run in runs]))
    groups = _rows(runs)
    configs = [settings(group[0]) for group in groups]
    if len(groups) < len(runs):  # several seeds are no name for a row
        for config in configs:
            del config["seed"]
    keys, usual = differing_keys(configs), usual_settings(configs)
    names = [_name(g[0], folder) if len(g) == 1 else g[0].summary.function for g in groups]
    called = labels(configs, keys, usual, names)
    chosen = _most_comparable(groups) if reference is None else _named(groups, called, reference)
    of_seed = {run.summary.seed: run for run in groups[chosen]}
    rows = [
        Row(label, [_entry(run, folder, of_seed.get(run.summary.seed), tolerance) for run in group])
        for label, group in zip(called, groups, strict=True)
    ]
    return Comparison(rows, rows[chosen], tolerance, folder, keys, usual)


def _rows(runs: Sequence[RecordedRun]) -> list[list[RecordedRun]]:
    """Runs that differ by nothing but the seed together; one that repeats a seed starts anew."""
    rows: dict[tuple[str, int], dict[int, RecordedRun]] = defaultdict(dict)
    for run in runs:
        what = repr(sorted((settings(run) | {"seed": None}).items()))
        repetition = next(i for i in itertools.count() if run.summary.seed not in rows[what, i])
        rows[what, repetition][run.summary.seed] = run
    return [[of_seed[seed] for seed in sorted(of_seed)] for of_seed in rows.values()]


def _named(groups: list[list[RecordedRun]], called: Sequence[str], wanted: str) -> int:
    found = {run.folder for run in matching([run for group in groups for run in group], wanted)}
    fits = [i for i, label in enumerate(called) if label == wanted] or [
        i for i, group in enumerate(groups) if any(run.folder in found for run in group)
    ]
    if len(fits) != 1:
        known = ", ".join(called[i] for i in (fits or range(len(called)))[:5])
        raise UserError(f"--reference {wanted} fits {len(fits)} rows; name one, such as {known}")
    return fits[0]


def _most_comparable(groups: list[list[RecordedRun]]) -> int:
    points = defaultdict(list)
    for run in (run for group in groups for run in group):
        points[run.summary.seed].append(len(run.steps))

    def rank(i: int) -> tuple[int, bool]:
        shared = [np.minimum(points[run.summary.seed], len(run.steps)).sum() for run in groups[i]]
        itself = sum(len(run.steps) for run in groups[i])
        return sum(shared) - itself, groups[i][0].summary.function == "builtin"

    return max(range(len(groups)), key=rank)


def _name(run: RecordedRun, folder: Path) -> str:
    return printable(os.path.relpath(run.folder.absolute(), folder))


def _entry(
    run: RecordedRun, folder: Path, reference: RecordedRun | None, tolerance: float
) -> Entry:
    if reference is run:
        return Entry(run, _name(run, folder), None, None)
    found = difference(run, reference, tolerance) if reference else None
    reason = None if found else "no step in common" if reference else "other seed"
    return Entry(run, _name(run, folder), found, reason)


def difference(
    run: RecordedRun, reference: RecordedRun, tolerance: float = 0.0
) -> Difference | None:
    """Compare two curves at the steps that both recorded; None where there is no such step."""
    steps, here, there = np.intersect1d(
        run.steps, reference.steps, assume_unique=True, return_indices=True
    )
    if not len(steps):
        return None
    losses, wanted = run.losses[here], reference.losses[there]
    relative = relative_difference(losses, wanted)
    unequal = relative > tolerance
    largest = int(relative.argmax())
    last, last_wanted = np.nan_to_num([losses[-1], wanted[-1]], nan=np.inf, posinf=np.inf)
    with np.errstate(all="ignore"):
        ratio = 1.0 if relative[-1] == 0 else float(last / last_wanted)
    return Difference(
        steps=steps,
        relative=relative,
        first_step=int(steps[unequal.argmax()]) if unequal.any() else None,
        largest=float(relative[largest]),
        largest_at=int(steps[largest]),
        complete=bool(steps[-1] == max(run.steps[-1], reference.steps[-1])),
        ratio=ratio,
        lower=bool(last < last_wanted),
    )


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

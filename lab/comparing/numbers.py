"""At which step does each curve first differ from a reference, and by how much?"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lab.comparing.labels import differing_keys, labels, settings, typed_keys, usual_settings
from lab.comparing.selection import matching
from lab.errors import UserError
from lab.jsonable import printable
from lab.recording.reading import RecordedRun


class Difference:
    """How one curve differs from another, over the steps that both recorded: step 0 at least.

    Args:
        run, reference: the two curves.
        tolerance: the largest relative difference that still counts as equal; 0 is bit for bit.

    Attributes:
        steps: (n,) these steps.
        relative: (n,) |loss - reference| / |reference| at each; inf where only one is finite.
        first_difference: the first step at which they differ by more than the tolerance, or None.
        largest_difference: the largest of `relative`.
        largest_at: the first step that has it.
        complete: whether neither curve goes on after the last of the steps.
        ratio: loss / reference at the last of the steps; a loss that is NaN counts as inf.
        lower: whether the loss at the last of the steps is below that of the reference.
    """

    def __init__(self, run: RecordedRun, reference: RecordedRun, tolerance: float = 0.0) -> None:
        self.steps, here, there = np.intersect1d(run.steps, reference.steps, return_indices=True)
        losses, wanted = run.losses[here], reference.losses[there]
        self.relative = relative_difference(losses, wanted)
        unequal = self.steps[self.relative > tolerance]
        self.first_difference = int(unequal[0]) if len(unequal) else None
        self.largest_difference = float(self.relative.max())
        self.largest_at = int(self.steps[self.relative.argmax()])
        self.complete = bool(self.steps[-1] == max(run.steps[-1], reference.steps[-1]))
        last, last_wanted = np.nan_to_num([losses[-1], wanted[-1]], nan=np.inf, posinf=np.inf)
        with np.errstate(all="ignore"):
            self.ratio = 1.0 if self.relative[-1] == 0 else float(last / last_wanted)
        self.lower = bool(last < last_wanted)


@dataclass(frozen=True)
class Entry:
    """One run of a row.

    Attributes:
        name: its folder, seen from the folder of the comparison.
        difference: from the run of the reference with the same seed, or None.
        not_comparable: why a run has no difference; None if it has one, and for the reference.
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
    def first_differences(self) -> list[int]:
        """The first step that differs, of each difference that has one."""
        steps = (found.first_difference for found in self.differences)
        return [step for step in steps if step is not None]

    @property
    def last_losses(self) -> np.ndarray:
        """(runs,) float64; a loss that is not finite counts as inf."""
        losses = np.array([entry.run.losses[-1] for entry in self.entries])
        return np.where(np.isfinite(losses), losses, np.inf)


class Comparison:
    """Runs, row by row, compared with one of the rows: each run with the one of the same seed.

    Args:
        runs: at least one, of one problem, each with at least one step; see `selection`.
        reference: the label of a row, the folder of a run in it, or the function of exactly one
            row. By default it is the row that has most points in common with the others; of several
            the first of function `builtin`, else the first.
        tolerance: the largest relative difference that still counts as equal; 0 is bit for bit.

    Attributes:
        folder: the deepest one that holds all runs.
        rows: of runs that differ by nothing but the seed.
        reference: one of the rows.
        keys: of the settings in which the rows differ.
        usual: the settings that most of the rows have.

    Raises:
        UserError: `reference` names no row, or several.
    """

    def __init__(
        self, runs: Sequence[RecordedRun], reference: str | None = None, tolerance: float = 0.0
    ) -> None:
        self.tolerance = tolerance
        self.folder = Path(os.path.commonpath([run.folder.absolute().parent for run in runs]))
        groups = _rows(runs)
        configs = [settings(group[0]) for group in groups]
        if len(groups) < len(runs):  # several seeds are no name for a row
            for config in configs:
                del config["seed"]
        self.keys = differing_keys(configs, typed_keys(runs))
        self.usual = usual_settings(configs)
        names = [self._name(g[0]) if len(g) == 1 else g[0].summary.function for g in groups]
        called = labels(configs, self.keys, self.usual, names)
        chosen = (
            _most_comparable(groups) if reference is None else _named(groups, called, reference)
        )
        of_seed = {run.summary.seed: run for run in groups[chosen]}
        self.rows = [
            Row(label, [self._entry(run, of_seed.get(run.summary.seed)) for run in group])
            for label, group in zip(called, groups, strict=True)
        ]
        self.reference = self.rows[chosen]

    def _name(self, run: RecordedRun) -> str:
        return printable(os.path.relpath(run.folder.absolute(), self.folder))

    def _entry(self, run: RecordedRun, reference: RecordedRun | None) -> Entry:
        if reference is None or reference is run:
            return Entry(run, self._name(run), None, None if reference else "other seed")
        return Entry(run, self._name(run), Difference(run, reference, self.tolerance), None)


def _rows(runs: Sequence[RecordedRun]) -> list[list[RecordedRun]]:
    """Runs that differ by nothing but the seed together; one that repeats a seed starts anew."""
    rows: dict[tuple[str, int], list[RecordedRun]] = defaultdict(list)
    repetitions = Counter[tuple[str, int]]()
    for run in runs:
        what = repr(sorted((settings(run) | {"seed": None}).items()))
        repetitions[what, run.summary.seed] += 1
        rows[what, repetitions[what, run.summary.seed]].append(run)
    return [sorted(group, key=lambda run: run.summary.seed) for group in rows.values()]


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


def relative_difference(losses: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """|losses - reference| / |reference|, elementwise, float64.

    0 where both are the same, NaN and infinities included; inf where only one of them is finite.

    >>> relative_difference(np.array([1.5, np.nan, 0.0, 2.0]), np.array([1.0, np.nan, 0.0, np.nan]))
    array([0.5, 0. , 0. , inf])
    """
    same = (losses == reference) | (np.isnan(losses) & np.isnan(reference))
    with np.errstate(all="ignore"):
        relative = np.abs(losses - reference) / np.abs(reference)
    return np.where(same, 0.0, np.nan_to_num(relative, nan=np.inf, posinf=np.inf))

"""At which step does each curve first differ from a reference, and by how much?"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lab.comparing.labels import labels
from lab.errors import UserError
from lab.recording.reading import RecordedRun


@dataclass(frozen=True)
class Difference:
    """How one curve differs from the reference, over the steps that both recorded.

    Attributes:
        not_comparable: why the two can't be compared, or None; then all below is empty.
        steps: (n,) the common steps.
        relative: (n,) |loss - reference| / |reference| at each; inf where only one is finite.
        first_step: the first step at which they differ by more than the tolerance, or None.
        largest: the largest of `relative`, and the first step that has it.
    """

    not_comparable: str | None = None
    steps: np.ndarray | None = None
    relative: np.ndarray | None = None
    first_step: int | None = None
    largest: float | None = None
    largest_at: int | None = None


@dataclass(frozen=True)
class Row:
    """One run of a comparison: its folder's name, and a label that says what sets it apart."""

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
        reference: name or folder of a run, or the function of exactly one of them. By default it is
            the run that most others can be compared with: of the largest group with the same data
            and seed the first of `builtin`, else the first.
        tolerance: the largest relative difference that still counts as equal; 0 is bit for bit.

    Raises:
        UserError: `reference` names no run, or several.
    """
    folder = Path(os.path.commonpath([run.folder.absolute().parent for run in runs]))
    names = [os.path.relpath(run.folder.absolute(), folder) for run in runs]
    chosen = _most_comparable(runs) if reference is None else _named(runs, names, reference)
    rows = [
        Row(run, name, label, difference(run, runs[chosen], tolerance))
        for run, name, label in zip(runs, names, labels(runs, names), strict=True)
    ]
    return Comparison(rows, rows[chosen], tolerance, folder)


def _named(runs: Sequence[RecordedRun], names: Sequence[str], wanted: str) -> int:
    path = os.path.realpath(wanted)
    fits = [
        i for i, name in enumerate(names)
        if wanted in (name, Path(name).name) or os.path.realpath(runs[i].folder) == path
    ] or [i for i, run in enumerate(runs) if run.function == wanted]  # fmt: skip
    if len(fits) != 1:
        raise UserError(f"--reference {wanted} fits {len(fits)} runs; name the folder of one")
    return fits[0]


def _most_comparable(runs: Sequence[RecordedRun]) -> int:
    problems = [repr(_problem(run)) if len(run.steps) else "" for run in runs]
    # A builtin run that was stopped at once would say too little about the others.
    ranks = [
        (p != "", problems.count(p), len(run.steps) > 1, run.function == "builtin")
        for p, run in zip(problems, runs, strict=True)
    ]
    return ranks.index(max(ranks))


def difference(run: RecordedRun, reference: RecordedRun, tolerance: float = 0.0) -> Difference:
    """Compare two curves by the numbers of their steps. NaN equals NaN at the same step."""
    if not len(run.steps):
        return Difference(not_comparable="no step")
    if other := [
        what for what, value in _problem(run).items() if value != _problem(reference)[what]
    ]:
        return Difference(not_comparable="other " + " and ".join(other))
    steps, here, there = np.intersect1d(
        run.steps, reference.steps, assume_unique=True, return_indices=True
    )
    if not len(steps):
        return Difference(not_comparable="no step in common")
    relative = relative_difference(run.losses[here], reference.losses[there])
    unequal = relative > tolerance
    largest = int(relative.argmax())
    return Difference(
        steps=steps,
        relative=relative,
        first_step=int(steps[unequal.argmax()]) if unequal.any() else None,
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

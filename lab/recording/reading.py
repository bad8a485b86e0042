"""Recorded runs, found on disk and read back.

A damaged run is left out, with a reason. Of a run that is still training, or was killed, the points
that its summary counts are used.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lab.recording.curve import CURVE, read_curve
from lab.recording.summary import SUMMARY, Damaged, Summary


@dataclass(frozen=True)
class RecordedRun:
    """One run as its folder shows it.

    Attributes:
        summary: all of `summary.json`; the attributes after it are taken from there.
        config: the config that the run was started with, flat: `{"optimizer.lr": 1e-06}`.
        steps: (n,) int64, strictly rising.
        losses: (n,) float64, the loss at each of those steps; NaN and infinities are possible.
        seed: a whole number; for a run that failed before its first step, whatever it was given.
    """

    folder: Path
    summary: Summary
    config: dict[str, Any]
    steps: np.ndarray
    losses: np.ndarray
    function: str
    optimizer: str
    device: str
    dtype: str
    seed: Any
    status: str
    steps_per_second: float | None
    test_accuracy: float | None
    error: str | None

    @property
    def first_loss(self) -> float | None:
        """The loss of the first point, or None without a point."""
        return float(self.losses[0]) if len(self.losses) else None

    @property
    def final_loss(self) -> float | None:
        """The loss of the last point, or None without a point."""
        return float(self.losses[-1]) if len(self.losses) else None


@dataclass(frozen=True)
class Skipped:
    """A path that was not used, and the reason."""

    path: Path
    reason: str


def read_runs(paths: Iterable[Path]) -> tuple[list[RecordedRun], list[Skipped]]:
    """Read every run at or below the given paths, each once, one open file at a time."""
    runs, skipped, seen = [], [], set()
    for path in paths:
        folders, empty = find_runs(path)
        skipped += [Skipped(folder, "no run in it") for folder in empty]
        for folder in folders:
            if (real := os.path.realpath(folder)) in seen:
                continue
            seen.add(real)
            try:
                runs.append(read_run(folder))
            except Damaged as damage:
                skipped.append(Skipped(folder, str(damage)))
    return runs, skipped


def notes(skipped: Iterable[Skipped]) -> list[str]:
    """A line for each path that was not used."""
    return [f"skipped {one.path}: {one.reason}" for one in skipped]


def find_runs(path: Path) -> tuple[list[Path], list[Path]]:
    """Run folders at or below `path` in natural order, and the folders that hold no run.

    A file in a run folder stands for it, so `outputs/RUN/curve.csv` finds the run; any other file
    holds none. A folder without a run anywhere below is listed once, not again for each folder in
    it. Hidden folders are not searched.
    """
    folder = path.parent if path.is_file() else path
    if any(os.path.lexists(folder / name) for name in (SUMMARY, CURVE)):
        return [folder], []
    try:
        below = [
            Path(entry)
            for entry in os.scandir(path)
            if entry.is_dir(follow_symlinks=False) and not entry.name.startswith(".")
        ]
    except OSError:
        below = []
    runs, empty = [], []
    for folder in sorted(below, key=_natural_order):
        found, without = find_runs(folder)
        runs += found
        empty += without
    return (runs, empty) if runs else ([], [path])


def _natural_order(folder: Path) -> list[str | int]:
    parts = re.split(r"([0-9]+)", folder.name)
    return [int(part) if index % 2 else part for index, part in enumerate(parts)]


def read_run(folder: Path) -> RecordedRun:
    """Read one run folder.

    Raises:
        Damaged: its summary or its curve is missing, torn or changed since the run wrote it.
    """
    summary = Summary.from_json(_read(folder / SUMMARY))
    steps, losses = read_curve(_read(folder / CURVE), summary)
    return RecordedRun(
        folder=folder,
        summary=summary,
        config=_flat(summary.config) | {"data": summary.data, "model": summary.model},
        steps=steps,
        losses=losses,
        seed=summary.seed,
        status=summary.status,
        steps_per_second=summary.steps_per_second,
        test_accuracy=summary.test_accuracy,
        **{name: _printable(getattr(summary, name)) for name in _NAMES},
        error=None if summary.error is None else _printable(summary.error),
    )


_NAMES = ("function", "optimizer", "device", "dtype")


def _read(file: Path) -> bytes:
    # Reading a pipe or a device under the name of a file might never end.
    if not file.is_file():
        reason = "is not a file" if file.exists() else "is missing"
        raise Damaged(f"{file.name} {reason}")
    try:
        return file.read_bytes()
    except OSError as error:
        raise Damaged(f"{file.name} can't be read: {error.strerror}") from error


def _printable(value: Any) -> str:
    """The value as one line of text; it may be the wrong value for which a job failed."""
    return "".join(c if c.isprintable() else " " for c in str(value))


def _flat(config: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """One level of keys, joined by dots.

    >>> _flat({"seed": 0, "optimizer": {"lr": 1e-06}})
    {'seed': 0, 'optimizer.lr': 1e-06}
    """
    pairs: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, dict):
            pairs |= _flat(value, f"{prefix}{key}.")
        else:
            pairs[prefix + key] = value
    return pairs

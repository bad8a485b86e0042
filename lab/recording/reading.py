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

from lab.jsonable import printable
from lab.recording.curve import CURVE, read_curve
from lab.recording.summary import SUMMARY, Damaged, Summary


@dataclass(frozen=True)
class RecordedRun:
    """One run as its folder shows it.

    Attributes:
        config: the config that the run was started with, flat: `{"optimizer.lr": 1e-06}`.
        steps: (n,) int64, strictly rising.
        losses: (n,) float64, the loss at each of those steps; NaN and infinities are possible.
    """

    folder: Path
    summary: Summary
    config: dict[str, Any]
    steps: np.ndarray
    losses: np.ndarray


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
    return [f"skipped {printable(str(one.path))}: {one.reason}" for one in skipped]


def find_runs(path: Path) -> tuple[list[Path], list[Path]]:
    """Run folders at or below `path` in natural order, and the folders that hold no run.

    A file in a run folder stands for it, so `outputs/RUN/curve.csv` finds the run; any other file
    holds none. A folder without a run anywhere below is listed once, not again for each folder in
    it. Hidden folders are not searched. A folder that may not be read counts as a run.
    """
    if path.is_file() and _holds_run(os.listdir(path.parent)):
        return [path.parent], []
    runs, searched = [], []

    def keep(error: OSError) -> None:  # so that the reader says why it can't be read
        if isinstance(error, PermissionError):
            runs.append(Path(error.filename))

    for name, below, files in os.walk(path, onerror=keep):
        searched.append(Path(name))
        below[:] = sorted((n for n in below if not n.startswith(".")), key=_natural_order)
        if _holds_run(below + files):
            runs.append(Path(name))
            below.clear()
    above = {folder for run in runs for folder in (run, *run.parents)}
    empty = [folder for folder in searched if folder not in above and folder.parent in above]
    return (runs, empty) if runs else ([], [path])


def _holds_run(names: list[str]) -> bool:
    return SUMMARY in names or CURVE in names


def _natural_order(name: str) -> list[str | int]:
    parts = re.split(r"([0-9]+)", name)
    return [int(part) if index % 2 else part for index, part in enumerate(parts)]


def read_run(folder: Path) -> RecordedRun:
    """Read one run folder.

    Raises:
        Damaged: its summary or its curve is missing, torn or changed since the run wrote it.
    """
    summary = read_summary(folder)
    steps, losses = read_curve(_read(folder / CURVE), summary)
    config = _flat(summary.config) | {"data": summary.data, "model": summary.model}
    return RecordedRun(folder, summary, config, steps, losses)


def read_summary(folder: Path) -> Summary:
    """Read the summary of a run folder.

    Raises:
        Damaged: it is missing, torn or changed since the run wrote it.
    """
    return Summary.from_json(_read(folder / SUMMARY))


def _read(file: Path) -> bytes:
    try:
        if not file.is_file():  # reading a pipe of that name might never end
            raise Damaged(f"{file.name} is missing")
        return file.read_bytes()
    except OSError as error:
        raise Damaged(f"{file.name} can't be read: {error.strerror}") from error


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

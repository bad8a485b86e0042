"""Recorded runs, read back from disk.

Nothing here guesses: a file that is not as the run wrote it is named and left out. Of a run that is
still going on, or was killed, the steps are used that its summary vouches for.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

SUMMARY, CURVE = "summary.json", "curve.csv"
STATUSES = ("running", "finished", "diverged", "interrupted", "failed")
HEADER = b"step,loss"
# A number as Python's repr writes it; the bounds keep a damaged field from becoming a huge one.
RECORD = re.compile(rb"(\d{1,15}),(-?\d{1,20}(?:\.\d{1,20})?(?:e[+-]\d{1,3})?|nan|-?inf)")


class Damaged(Exception):
    """A run on disk that can't be trusted; its text is the reason."""


@dataclass(frozen=True)
class RecordedRun:
    """One run as its folder tells it.

    Attributes:
        steps: (n,) int64, strictly rising.
        losses: (n,) float64, the loss at each of those steps; NaN and infinities are possible.
        steps_per_second: as the run measured it, or None.
        test_accuracy: the share of the test set told right at the last step, or None.
        error: why the run stopped, in one line, or None.
        config: the config the run was started with, flat: `{"optimizer.lr": 1e-06}`.
        seed: a whole number; of a run that failed before its first step, whatever it was given.
    """

    folder: Path
    function: str
    optimizer: str
    device: str
    dtype: str
    seed: Any
    status: str
    steps_per_second: float | None
    test_accuracy: float | None
    error: str | None
    config: dict[str, Any]
    steps: np.ndarray
    losses: np.ndarray

    @property
    def first_loss(self) -> float | None:
        return float(self.losses[0]) if len(self.losses) else None

    @property
    def final_loss(self) -> float | None:
        return float(self.losses[-1]) if len(self.losses) else None


@dataclass(frozen=True)
class Skipped:
    """A path of which nothing was used."""

    path: Path
    reason: str


def summary_crc32(summary: dict[str, Any]) -> int:
    """Checksum of a summary without its own checksum, whatever the layout of the file.

    >>> summary_crc32({"seed": 0}) == summary_crc32({"summary_crc32": 7, "seed": 0})
    True
    """
    rest = {key: value for key, value in summary.items() if key != "summary_crc32"}
    return zlib.crc32(json.dumps(rest, sort_keys=True).encode())


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
    summary = _read_summary(folder)
    content = _read(folder / CURVE)
    if summary["status"] == "running":
        content = content[: summary["curve_bytes"]]  # what is behind may be half written
    if summary["curve_crc32"] not in (None, zlib.crc32(content)):
        raise Damaged(f"{CURVE} is not as the run left it: its checksum differs")
    steps, losses, problem = parse_curve(content)
    if problem:
        raise Damaged(f"{CURVE}: {problem}")
    if summary["status"] != "running":
        _check_ends(summary, steps, losses)
    return RecordedRun(
        folder=folder, config=summary["config"], steps=steps, losses=losses,
        **{key: summary[key] for key in _FIELDS},
    )  # fmt: skip


_FIELDS = (
    "function", "optimizer", "device", "dtype", "seed", "status", "steps_per_second",
    "test_accuracy", "error",
)  # fmt: skip


def _read(file: Path) -> bytes:
    # A pipe or a device under the name of a file would be read for ever.
    if not file.is_file():
        raise Damaged(f"{file.name} is missing" if not file.exists() else f"{file.name} is no file")
    try:
        content = file.read_bytes()
    except OSError as error:
        raise Damaged(f"{file.name} can't be read: {error.strerror}") from error
    if not content:
        raise Damaged(f"{file.name} is empty")
    return content


def _read_summary(folder: Path) -> dict[str, Any]:
    content = _read(folder / SUMMARY)
    try:
        summary = json.loads(content)
        # A summary with checksums has both; one written by hand may have neither.
        sealed = isinstance(summary, dict) and not summary.keys().isdisjoint(
            ("curve_crc32", "summary_crc32")
        )
        if sealed and summary.get("summary_crc32") != summary_crc32(summary):
            raise Damaged(f"{SUMMARY} is not as the run wrote it: its checksum differs")
        return _checked(summary)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise Damaged(f"{SUMMARY} is no summary of a run: {_one_line(error)}") from error


def _checked(summary: Any) -> dict[str, Any]:
    if not isinstance(summary, dict):
        raise ValueError("not an object")
    if (status := summary["status"]) not in STATUSES:
        raise ValueError(f"status is {status!r}")
    known = {"status": status, "steps": _typed(summary, "steps", int)}
    never_begun = status == "failed" and known["steps"] == 0
    for key in ("function", "optimizer", "device", "dtype"):
        known[key] = _printable(summary[key]) if never_begun else _typed(summary, key, str)
    # Whatever the job was given: it may have failed for that very value.
    known["seed"] = summary["seed"] if never_begun else _typed(summary, "seed", int)
    for key in ("first_loss", "final_loss", "steps_per_second", "test_accuracy"):
        known[key] = None if summary.get(key) is None else float(summary[key])
    error = summary.get("error")  # any text: it may be an exception of the user's
    known["error"] = error and _printable(error)
    known["config"] = flat(_typed(summary, "config", dict) if "config" in summary else {})
    for choice in ("data", "model"):
        known["config"].setdefault(choice, summary.get(choice))
    known["log_every"] = 1 if never_begun else int(known["config"].get("log_every", 1))
    known["curve_crc32"], known["curve_bytes"] = (
        None if summary.get(key) is None else _typed(summary, key, int)
        for key in ("curve_crc32", "curve_bytes")
    )
    return known


def _typed(summary: dict[str, Any], key: str, kind: type) -> Any:
    value = summary[key]
    if type(value) is not kind or (kind is str and not value.isprintable()):
        raise ValueError(f"{key} is {value!r}")
    return value


def _printable(value: Any) -> str:
    return "".join(c if c.isprintable() else " " for c in str(value))


def _one_line(error: Exception) -> str:
    text = f"no {error}" if isinstance(error, KeyError) else str(error)
    return text if len(text) <= 100 else text[:97] + "..."


def flat(config: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """One level of keys, joined by dots.

    >>> flat({"seed": 0, "optimizer": {"lr": 1e-06}})
    {'seed': 0, 'optimizer.lr': 1e-06}
    """
    pairs: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, dict):
            pairs |= flat(value, f"{prefix}{key}.")
        else:
            pairs[prefix + key] = value
    return pairs


def parse_curve(content: bytes) -> tuple[np.ndarray, np.ndarray, str | None]:
    """Steps and losses of a `curve.csv` up to the first line that can't be right.

    A last line without its line end was cut while it was written: it is no record.

    Returns:
        steps (n,) int64, losses (n,) float64, and what is wrong behind them, or None.

    >>> parse_curve(b"step,loss" + bytes([10]) + b"0,2.5" + bytes([10]) + b"1,1.2")
    (array([0]), array([2.5]), None)
    """
    header, *lines = content.split(b"\n")
    if header != HEADER or not lines:
        return _arrays([], [], f"the first line is not {HEADER.decode()!r}")
    lines.pop()
    steps: list[int] = []
    losses: list[float] = []
    problem = None
    previous = -1
    for number, line in enumerate(lines, start=2):
        record = RECORD.fullmatch(line)
        if record is None:
            problem = f"line {number} is no step and loss"
            break
        step = int(record[1])
        if step <= previous:
            problem = f"line {number} goes from step {previous} to step {step}"
            # Either of the two may be the wrong one.
            steps.pop()
            losses.pop()
            break
        steps.append(step)
        losses.append(float(record[2]))
        previous = step
    return _arrays(steps, losses, problem)


def _arrays(
    steps: list[int], losses: list[float], problem: str | None
) -> tuple[np.ndarray, np.ndarray, str | None]:
    return np.array(steps, dtype=np.int64), np.array(losses, dtype=np.float64), problem


def _check_ends(summary: dict[str, Any], steps: np.ndarray, losses: np.ndarray) -> None:
    ends = (float(losses[0]), float(losses[-1])) if len(losses) else (None, None)
    for key, loss in zip(("first_loss", "final_loss"), ends, strict=True):
        told = summary[key]
        if told is not None and (loss is None or not np.array_equal(told, loss, equal_nan=True)):
            raise Damaged(f"{SUMMARY} says {key} {told!r}, {CURVE} says {loss!r}")
    if summary["status"] == "finished":
        missing = summary["steps"] - 1 - (int(steps[-1]) if len(steps) else -1)
        if not 0 <= missing < summary["log_every"]:
            raise Damaged(f"{SUMMARY} says finished after {summary['steps']} steps, {CURVE} not")

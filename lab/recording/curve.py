"""`curve.csv`: a line for each step and its loss, appended during training and read later.

Every loss is written as Python's repr, so it comes back bit for bit. The functions that write also
count in the summary: the length and checksum of the curve, its first and its last loss.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lab.files import append_whole, write_whole
from lab.recording.summary import Damaged, Summary

CURVE = "curve.csv"
HEADER = b"step,loss\n"

Point = tuple[int, float]  # step, loss


def start_curve(folder: Path, summary: Summary, points: Sequence[Point] = ()) -> None:
    """Write the summary and a curve with the points that a resumed run keeps.

    Args:
        folder: the run folder; both files in it are replaced.

    Raises:
        UserError: no space.
    """
    summary.curve_bytes, summary.curve_crc32 = 0, 0
    content = HEADER + _lines(points)
    _count(summary, content, points)
    # The old file begins with the bytes of the new one, so this summary fits both.
    summary.write(folder)
    write_whole(folder / CURVE, content)


def append_points(folder: Path, summary: Summary, points: Sequence[Point]) -> None:
    """Append all points or none; the caller then writes the summary, which counts them.

    Raises:
        UserError: no space.
    """
    content = _lines(points)
    append_whole(folder / CURVE, content)
    _count(summary, content, points)


def _lines(points: Sequence[Point]) -> bytes:
    return "".join(f"{step},{loss!r}\n" for step, loss in points).encode()


def _count(summary: Summary, content: bytes, points: Sequence[Point]) -> None:
    summary.curve_bytes += len(content)
    summary.curve_crc32 = zlib.crc32(content, summary.curve_crc32)
    if points:
        if summary.first_loss is None:
            summary.first_loss = points[0][1]
        summary.final_loss = points[-1][1]


def read_curve(content: bytes, summary: Summary) -> tuple[np.ndarray, np.ndarray]:
    """Steps (n,) int64 and losses (n,) float64 of a `curve.csv`.

    Args:
        content: of the file. What a killed run wrote after its last summary is left out.
        summary: of the same run.

    Raises:
        Damaged: the content does not have the length and checksum in the summary.
    """
    whole = content[: summary.curve_bytes] if summary.status == "running" else content
    if (len(whole), zlib.crc32(whole)) != (summary.curve_bytes, summary.curve_crc32):
        raise Damaged(f"{CURVE} has changed since the run wrote it: its checksum differs")
    records = [line.split(b",") for line in whole.splitlines()[1:]]
    steps = np.array([int(step) for step, _ in records], dtype=np.int64)
    return steps, np.array([float(loss) for _, loss in records], dtype=np.float64)

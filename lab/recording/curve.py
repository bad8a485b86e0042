"""`curve.csv`: a line for each step and its loss, appended during training and read later.

Every loss is written as Python's repr, so it comes back bit for bit.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np

from lab.files import append_whole, system_errors_named, write_whole
from lab.recording.summary import Damaged, Summary

CURVE = "curve.csv"
HEADER = b"step,loss\n"

Point = tuple[int, float]  # step, loss


class CurveFile:
    """The curve of a run during training.

    Args:
        folder: the run folder; a `curve.csv` in it is replaced.
        summary: of the run; gets the length, checksum, first and last loss of the curve.
        points: those that a resumed run keeps.

    Raises:
        UserError: no space.
    """

    def __init__(self, folder: Path, summary: Summary, points: Sequence[Point] = ()) -> None:
        self._path, self._summary = folder / CURVE, summary
        summary.curve_bytes, summary.curve_crc32 = 0, 0
        content = HEADER + _lines(points)
        self._describe(content, points)
        # The old file begins with the bytes of the new one, so this summary fits both.
        summary.write(folder)
        write_whole(self._path, content)
        with system_errors_named(self._path):
            self._file = self._path.open("ab", buffering=0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()

    def append(self, points: Sequence[Point]) -> None:
        """Append all points or none; the caller then writes the summary, which counts them.

        Raises:
            UserError: no space.
        """
        content = _lines(points)
        append_whole(self._path, self._file, content)
        self._describe(content, points)

    def _describe(self, content: bytes, points: Sequence[Point]) -> None:
        summary = self._summary
        summary.curve_bytes += len(content)
        summary.curve_crc32 = zlib.crc32(content, summary.curve_crc32)
        if points:
            if summary.first_loss is None:
                summary.first_loss = points[0][1]
            summary.final_loss = points[-1][1]


def _lines(points: Sequence[Point]) -> bytes:
    return "".join(f"{step},{loss!r}\n" for step, loss in points).encode()


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
    records = [line.split(b",") for line in whole.split(b"\n")[1:-1]]
    steps = np.array([int(step) for step, _ in records], dtype=np.int64)
    return steps, np.array([float(loss) for _, loss in records], dtype=np.float64)

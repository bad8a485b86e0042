"""A comparison as text: a table for people, JSON and CSV for scripts."""

from __future__ import annotations

import csv
import io
import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from lab.comparing.labels import IDENTITY
from lab.comparing.numbers import Comparison, Row
from lab.jsonable import jsonable
from lab.recording.reading import RecordedRun, Skipped

RESULTS = ("first_loss", "final_loss", "test_accuracy", "steps_per_second")
LEFT_ALIGNED = ("run", "steps", "largest difference", "folder")


def table(comparison: Comparison, width: int | None = None) -> str:
    """The comparison as lines of text.

    The folders of the runs are the last column, left out where a line would be longer than `width`
    characters.
    """
    rows = comparison.rows
    first, largest = zip(*(verdict(row, comparison) for row in rows), strict=True)
    columns = {
        "run": [row.label for row in rows],
        "steps": [steps(row.run) for row in rows],
        "last loss": [number(row.run.final_loss, ".5g") for row in rows],
        "accuracy": [number(row.run.test_accuracy, ".1%") for row in rows],
        "steps/s": [number(row.run.steps_per_second, ",.0f") for row in rows],
        "first difference": first,
        "largest difference": largest,
        "folder": [row.name for row in rows],
    }
    if all(row.run.test_accuracy is None for row in rows):
        del columns["accuracy"]
    lines = _aligned(columns)
    if width is not None and len(max(lines, key=len)) > width:
        lines = _aligned({title: cells for title, cells in columns.items() if title != "folder"})
    if comparison.tolerance:
        lines.append(f"equal: a relative difference of at most {comparison.tolerance:g}")
    lines += [f"{row.label}: {row.run.error}" for row in rows if row.run.error]
    return "\n".join(lines)


def terminal_width() -> int | None:
    """Characters in a line of the terminal; None where standard output is not a terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _aligned(columns: Mapping[str, Sequence[str]]) -> list[str]:
    cells = []
    for title, column in columns.items():
        size = max(map(len, (title, *column)))
        pad = str.ljust if title in LEFT_ALIGNED else str.rjust
        cells.append([pad(cell, size) for cell in (title, "-" * size, *column)])
    return ["  ".join(line).rstrip() for line in zip(*cells, strict=True)]


def steps(run: RecordedRun) -> str:
    return f"{steps_done(run):,}" + ("" if run.status == "finished" else f" {status(run)}")


def steps_done(run: RecordedRun) -> int:
    return int(run.steps[-1]) + 1 if len(run.steps) else 0


def status(run: RecordedRun) -> str:
    # A run that is still in progress and one that was killed look the same on disk.
    return "unfinished" if run.status == "running" else run.status


def number(value: float | None, format: str) -> str:
    return "-" if value is None else f"{value:{format}}"


def verdict(row: Row, comparison: Comparison) -> tuple[str, str]:
    """The first and the largest difference of a row from the reference, in words."""
    found = row.difference
    if row is comparison.reference:
        return "-", "the reference"
    if found.largest is None or found.steps is None:
        return "-", f"not comparable: {found.not_comparable}"
    last = max(int(run.steps[-1]) for run in (row.run, comparison.reference.run))
    over = f" (up to step {found.steps[-1]})" if found.steps[-1] < last else ""
    if found.largest == 0.0:
        return "never", f"equal bit for bit{over}"
    first = "never" if found.first_step is None else f"step {found.first_step}"
    return first, f"{percent(found.largest)} at step {found.largest_at}{over}"


def percent(relative: float) -> str:
    """A relative difference in two digits, in percent while that needs no exponent.

    >>> percent(0.0184), percent(3.2e-7), percent(12.0), percent(float("inf"))
    ('1.8 %', '3.2e-07', '1,200 %', 'inf')
    """
    return f"{float(f'{100 * relative:.2g}'):,g} %" if 1e-4 <= relative < 1e3 else f"{relative:.2g}"


def as_records(comparison: Comparison) -> list[dict[str, Any]]:
    """One flat dict a run; numbers that are not finite as the texts "nan", "inf", "-inf"."""
    records = [
        {
            "name": row.name,
            "label": row.label,
            **{key: getattr(row.run, key) for key in IDENTITY},
            "steps": steps_done(row.run),
            "points": len(row.run.steps),
            "status": status(row.run),
            **{key: getattr(row.run, key) for key in RESULTS},
            "reference": row is comparison.reference,
            "not_comparable": row.difference.not_comparable,
            "first_difference": row.difference.first_step,
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
    records, text = as_records(comparison), io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(records[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue().rstrip("\n")

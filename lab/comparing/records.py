"""A comparison for scripts: JSON and CSV, with every digit."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from typing import Any

from lab.comparing.labels import OF_A_RUN
from lab.comparing.numbers import Comparison, Entry, Row
from lab.comparing.selection import Selection
from lab.comparing.table import status, steps_done
from lab.jsonable import jsonable
from lab.recording.reading import Skipped

RESULTS = ("first_loss", "final_loss", "test_accuracy", "steps_per_second")
DIFFERENCE = ("first_difference", "largest_difference", "largest_at", "ratio")


def as_records(comparison: Comparison) -> list[dict[str, Any]]:
    """One flat dict a run; numbers that are not finite as the texts "nan", "inf", "-inf"."""
    reference = comparison.reference
    return jsonable(
        [_record(row, entry, row is reference) for row in comparison.rows for entry in row.entries]
    )


def _record(row: Row, entry: Entry, is_reference: bool) -> dict[str, Any]:
    run, found = entry.run, entry.difference
    numbers = (
        (found.first_step, found.largest, found.largest_at, found.ratio) if found else [None] * 4
    )
    return {
        "name": entry.name,
        "label": row.label,
        **{key: getattr(run, key) for key in OF_A_RUN},
        "steps": steps_done(run),
        "points": len(run.steps),
        "status": status(run),
        **{key: getattr(run, key) for key in RESULTS},
        "reference": is_reference,
        "not_comparable": entry.not_comparable,
        **dict(zip(DIFFERENCE, numbers, strict=True)),
    }


def as_json(comparison: Comparison, selection: Selection, skipped: Sequence[Skipped]) -> str:
    """The runs compared, and those that were not: of other problems, failed, unreadable."""
    content = {
        "reference": comparison.reference.label,
        "tolerance": comparison.tolerance,
        "runs": as_records(comparison),
        "other_problems": [{"runs": len(runs), **dict(found)} for found, runs in selection.others],
        "failed": [{"path": str(run.folder), "error": run.error} for run in selection.failed],
        "skipped": [{"path": str(one.path), "reason": one.reason} for one in skipped],
    }
    return json.dumps(content, indent=1, allow_nan=False)


def as_csv(comparison: Comparison) -> str:
    """The runs compared, a line each, under a header."""
    records, text = as_records(comparison), io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(records[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue().rstrip("\n")

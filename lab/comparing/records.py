"""A comparison for scripts: JSON and CSV, with every digit."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from typing import Any

from lab.comparing.numbers import Comparison
from lab.comparing.selection import Selection
from lab.comparing.table import status, steps_done
from lab.jsonable import jsonable
from lab.recording.reading import Skipped

OF_A_RUN = (
    "function", "optimizer", "device", "dtype", "seed",
    "first_loss", "final_loss", "test_accuracy", "steps_per_second",
)  # fmt: skip
# Columns, and the attributes of a difference that they hold; empty for the reference.
OF_A_DIFFERENCE = {
    "first_difference": "first_step", "largest_difference": "largest",
    "largest_at": "largest_at", "ratio": "ratio",
}  # fmt: skip


def as_records(comparison: Comparison) -> list[dict[str, Any]]:
    """One flat dict a run; numbers that are not finite as the texts "nan", "inf", "-inf"."""
    return jsonable(
        [
            {"name": entry.name, "label": row.label, "reference": row is comparison.reference}
            | {"steps": steps_done(entry.run), "points": len(entry.run.steps)}
            | {"status": status(entry.run), "not_comparable": entry.not_comparable}
            | {key: getattr(entry.run.summary, key) for key in OF_A_RUN}
            | {key: getattr(entry.difference, name, None) for key, name in OF_A_DIFFERENCE.items()}
            for row in comparison.rows
            for entry in row.entries
        ]
    )


def as_json(comparison: Comparison, selection: Selection, skipped: Sequence[Skipped]) -> str:
    """The runs compared, and those that were not: of other problems, failed, unreadable."""
    reference = comparison.reference
    content = {
        "reference": reference.entries[0].name if len(reference.entries) == 1 else reference.label,
        "tolerance": comparison.tolerance,
        "runs": as_records(comparison),
        "other_problems": [{"runs": len(runs), **dict(found)} for found, runs in selection.others],
        "failed": [{"path": str(r.folder), "error": r.summary.error} for r in selection.failed],
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

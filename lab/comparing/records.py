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
from lab.recording.curves import Skipped

OF_A_RUN = ("function", "optimizer", "device", "dtype", "seed")
RESULTS = ("first_loss", "final_loss", "test_accuracy", "steps_per_second")


def as_records(comparison: Comparison) -> list[dict[str, Any]]:
    """One flat dict a run; numbers that are not finite as the texts "nan", "inf", "-inf"."""
    records = []
    for row in comparison.rows:
        for entry in row.entries:
            run, found = entry.run, entry.difference
            records.append(
                {"name": entry.name, "label": row.label}
                | {key: getattr(run, key) for key in OF_A_RUN}
                | {"steps": steps_done(run), "points": len(run.steps), "status": status(run)}
                | {key: getattr(run, key) for key in RESULTS}
                | {
                    "reference": row is comparison.reference,
                    "not_comparable": entry.not_comparable,
                    "first_difference": found and found.first_step,
                    "largest_difference": found and found.largest,
                    "largest_at": found and found.largest_at,
                    "ratio": found and found.ratio,
                }
            )
    return jsonable(records)


def as_json(comparison: Comparison, selection: Selection, skipped: Sequence[Skipped]) -> str:
    """The runs compared, and those that were not: of other problems, failed, unreadable."""
    return json.dumps(
        {
            "reference": comparison.reference.label,
            "tolerance": comparison.tolerance,
            "runs": as_records(comparison),
            "other_problems": [
                {"filters": dict(filters), "runs": len(runs)}
                for filters, runs in selection.others.items()
            ],
            "failed": [{"path": str(r.folder), "error": r.error} for r in selection.failed],
            "skipped": [{"path": str(one.path), "reason": one.reason} for one in skipped],
        },
        indent=1,
        allow_nan=False,
    )


def as_csv(comparison: Comparison) -> str:
    """The runs compared, a line each, under a header."""
    records, text = as_records(comparison), io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(records[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue().rstrip("\n")

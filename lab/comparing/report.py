"""What a comparison prints: the table or records, what is not in it, and where the plot is."""

from __future__ import annotations

import csv
import io
import json
import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

from lab.comparing.labels import settings, steps_done
from lab.comparing.numbers import Comparison, Difference
from lab.comparing.selection import Selection, select
from lab.comparing.table import status, table
from lab.errors import UserError
from lab.jsonable import jsonable, printable
from lab.recording.reading import RecordedRun, Skipped, notes, read_runs

OF_A_RUN = (
    "function", "optimizer", "device", "dtype", "seed",
    "first_loss", "final_loss", "test_accuracy", "steps_per_second",
)  # fmt: skip
OF_A_DIFFERENCE = ("first_difference", "largest_difference", "largest_at", "ratio")


def end_of_sweep(folder: Path) -> tuple[list[RecordedRun], list[Skipped]]:
    """Print how the runs of a sweep compare, and write `comparison.png` in its folder.

    Returns:
        The runs that were read, failed ones too, and the paths that were skipped.

    Raises:
        UserError: the folder holds no run at all.
    """
    runs, skipped = read_runs([folder])
    for line in notes(skipped):
        print(line, file=sys.stderr)
    if not runs:
        raise UserError(f"no run in {folder} can be read")
    selection = select(runs)
    if selection.runs:
        comparison = Comparison(selection.runs)
        print_comparison(comparison, selection, ["python", "compare.py", os.path.relpath(folder)])
        two = len(runs) == 2 and not selection.failed
        if two and Difference(runs[0], runs[1]).first_difference is not None:
            from lab.comparing.why import why

            print(why(*runs), flush=True)
        write_plot(comparison, sys.stdout)
    return runs, skipped


def print_comparison(comparison: Comparison, selection: Selection, command: Sequence[str]) -> None:
    """Print the table, and what is not in it: runs of other problems, runs without a step.

    Args:
        command: the words of the command that found these runs.
    """
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    print(table(comparison, width))
    if failed := selection.failed:
        name, error = printable(failed[0].folder.name), why_no_step(failed[0])
        print(f"{_runs(len(failed))} never made a step; {name}: {error}")
    if others := selection.others:
        total = sum(len(runs) for _, runs in others)
        print(f"{_runs(total)} not shown, because data or model size differ; to compare them:")
        for settings, runs in others:
            filters = [word for pair in settings for word in ("--filter", "=".join(pair))]
            print(f"  {_runs(len(runs))}: {shlex.join([*command, *filters])}")
    sys.stdout.flush()


def why_no_step(run: RecordedRun) -> str:
    """Why a run has no point."""
    return run.summary.error or f"it has written no point yet, and its status is {status(run)}"


def _runs(count: int) -> str:
    return "1 run" if count == 1 else f"{count} runs"


def write_plot(comparison: Comparison, told: TextIO, plot: str | None = None) -> None:
    """Draw the comparison, as `comparison.png` beside the runs unless `plot` names a file.

    Args:
        told: where to print the name of the file.

    Raises:
        UserError: the file that `plot` names can't be written; for `comparison.png` that is a
            warning.
    """
    # Importing matplotlib takes a second, for which a user without a plot does not wait.
    from lab.comparing.plot import draw

    file = Path(plot or os.path.relpath(comparison.folder / "comparison.png"))
    try:
        draw(comparison, file)
        print(f"plot: {os.path.relpath(file)}", file=told)
    except UserError as error:
        if plot:
            raise UserError(f"--plot {error}") from error
        print(f"warning: no plot: {error}", file=sys.stderr)


def as_records(comparison: Comparison) -> list[dict[str, Any]]:
    """One flat dict a run; numbers that are not finite as the texts "nan", "inf", "-inf"."""
    return jsonable(
        [
            {"name": entry.name, "label": row.label, "reference": row is comparison.reference}
            | {"steps": steps_done(entry.run), "points": len(entry.run.steps)}
            | {"status": status(entry.run), "not_comparable": entry.not_comparable}
            | {key: given.get(key) for key in comparison.keys}
            | {key: getattr(entry.run.summary, key) for key in OF_A_RUN}
            | {key: getattr(entry.difference, key, None) for key in OF_A_DIFFERENCE}
            for row in comparison.rows
            for entry in row.entries
            for given in [settings(entry.run)]
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
        "failed": [
            {"path": str(run.folder), "error": run.summary.error} for run in selection.failed
        ],
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

"""What a comparison prints: the table, what is not in it, and where the picture is."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from lab.comparing.labels import printable
from lab.comparing.numbers import Comparison, Difference
from lab.comparing.selection import Selection, select
from lab.comparing.table import table, terminal_width
from lab.errors import UserError
from lab.recording.reading import RecordedRun, Skipped, notes, read_runs

MOST_PROBLEMS = 5


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
        found = Difference(runs[0], runs[1]) if len(runs) == 2 else None
        if found and found.first_step is not None:
            from lab.comparing.why import why

            print(why(*runs), flush=True)
        write_picture(comparison, sys.stdout)
    return runs, skipped


def print_comparison(comparison: Comparison, selection: Selection, command: Sequence[str]) -> None:
    """Print the table, and what is not in it: runs of other problems, runs without a step.

    Args:
        command: the words of the command that found these runs.
    """
    print(table(comparison, terminal_width()))
    if failed := selection.failed:
        name, error = printable(failed[0].folder.name), failed[0].error
        print(f"{_runs(len(failed))} never made a step; {name}: {error}")
    if others := selection.others:
        total = sum(len(runs) for _, runs in others)
        print(f"{_runs(total)} not shown, because data or model size differ; to compare them:")
        for settings, runs in others[:MOST_PROBLEMS]:
            filters = [word for pair in settings for word in ("--filter", "=".join(pair))]
            print(f"  {_runs(len(runs))}: {shlex.join([*command, *filters])}")
        if others[MOST_PROBLEMS:]:
            print(f"  and {len(others) - MOST_PROBLEMS} more problems")
    sys.stdout.flush()


def _runs(count: int) -> str:
    return "1 run" if count == 1 else f"{count} runs"


def write_picture(comparison: Comparison, told: TextIO, plot: str | None = None) -> None:
    """Draw the comparison, as `comparison.png` beside the runs unless `plot` names a file.

    Args:
        told: where to print the name of the file.

    Raises:
        UserError: the file that `plot` names can't be written; for `comparison.png` that is a
            warning.
    """
    # Matplotlib takes a second to import, for which nobody waits who wants no picture.
    from lab.comparing.picture import draw

    file = Path(plot or os.path.relpath(comparison.folder / "comparison.png"))
    try:
        draw(comparison, file)
        print(f"plot: {os.path.relpath(file)}", file=told)
    except UserError as error:
        if plot:
            raise UserError(f"--plot {error}") from error
        print(f"warning: no plot: {error}", file=sys.stderr)

"""What a comparison prints: the table, what is not in it, and where the picture is."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from lab.comparing.numbers import Comparison, compare
from lab.comparing.selection import Selection, select
from lab.comparing.table import table, terminal_width
from lab.errors import UserError
from lab.recording.curves import RecordedRun, Skipped, notes, read_runs

MOST_NAMED = 5


def end_of_sweep(folder: Path, look_at: str = "") -> tuple[list[RecordedRun], list[Skipped]]:
    """Print how the runs of a sweep compare, and write `comparison.png` in its folder.

    Args:
        look_at: what to look at in the table and the picture; printed last.

    Returns:
        The runs that were read, failed ones too, and the paths that were skipped.

    Raises:
        UserError: the folder holds no run at all.
    """
    runs, skipped = read_runs([folder])
    for line in notes(skipped):
        print(line, file=sys.stderr)
    if not runs:
        raise UserError(f"no job of the sweep left a run in {folder}")
    selection = select(runs)
    if selection.runs:
        comparison = compare(selection.runs)
        print(table(comparison, terminal_width()))
    print_rest(selection, ["python", "compare.py", os.path.relpath(folder)])
    if selection.runs:
        write_picture(comparison)
    if look_at:
        print(look_at)
    sys.stdout.flush()
    return runs, skipped


def print_rest(selection: Selection, command: Sequence[str]) -> None:
    """Count the runs that are not in the table, and say how to see those of other problems."""
    if failed := selection.failed:
        named = [f"{run.folder.name} ({run.error})" for run in failed[:MOST_NAMED]]
        more = ["..."] if len(failed) > MOST_NAMED else []
        print(f"never made a step: {len(failed)} runs: {', '.join(named + more)}")
    if others := selection.others:
        print("runs of other problems are not comparable with these; to compare them:")
        for filters, runs in list(others.items())[:MOST_NAMED]:
            words = [word for key, value in filters for word in ("--filter", f"{key}={value}")]
            print(f"  {len(runs)} runs: {shlex.join([*command, *words])}")
        if len(others) > MOST_NAMED:
            print(f"  and {len(others) - MOST_NAMED} more problems")


def write_picture(comparison: Comparison, plot: str | None = None) -> None:
    """Draw the comparison, as `comparison.png` beside the runs unless `plot` names a file.

    Raises:
        UserError: the file that `plot` names can't be written; else that is a warning.
    """
    # Matplotlib takes a second to import, for which nobody waits who wants no picture.
    from lab.comparing.picture import draw

    file = Path(plot or comparison.folder / "comparison.png")
    try:
        draw(comparison, file)
    except UserError as error:
        if plot:
            raise UserError(f"--plot {error}") from error
        print(f"warning: no picture: {error}", file=sys.stderr)
    else:
        print(f"picture: {os.path.relpath(file)}", file=sys.stderr)

"""How a sweep ends: with the table and the picture of its runs, and with their exit code."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig

from lab.errors import UserError, explained


class CompareRuns(Callback):
    """Compares the runs of a sweep in its folder, whatever launched them."""

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        # Hydra makes a warning of an exception in a callback; an exit it lets through.
        with explained():
            compare_sweep(Path(config.hydra.sweep.dir))


def compare_sweep(folder: Path) -> None:
    """Print the table of the runs in a sweep's folder and write `comparison.png` there.

    Raises:
        SystemExit: a job did not finish: 130 if one was interrupted, else 1.
        UserError: there is no run at all, or the picture can't be written.
    """
    # Only a sweep pays for matplotlib's imports.
    from lab.comparison import compare, table, terminal_width
    from lab.curves import notes, read_runs
    from lab.picture import draw

    runs, skipped = read_runs([folder])
    for line in notes(skipped):
        print(line, file=sys.stderr)
    if not runs:
        raise UserError(f"no job of the sweep left a run in {folder}")
    comparison = compare(runs)
    print(table(comparison, terminal_width()), flush=True)
    draw(comparison, folder / "comparison.png")
    print(f"picture: {folder / 'comparison.png'}")
    print(f"see it: tensorboard --logdir {shlex.quote(str(folder))}", flush=True)
    if any(run.status == "interrupted" for run in runs):
        raise SystemExit(130)
    if skipped or any(run.status != "finished" for run in runs):
        raise SystemExit(1)

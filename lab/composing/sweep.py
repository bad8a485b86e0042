"""A sweep: what it refuses at its start; table, picture and exit code at its end."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig

from lab.errors import UserError, errors_as_messages


class CompareRuns(Callback):
    """Compares the runs of a sweep in its folder, whatever launched them.

    Hydra makes a warning of an exception in a callback, but lets the exit pass that
    `errors_as_messages` makes of it.
    """

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        with errors_as_messages():
            for override in config.hydra.overrides.task:
                key, _, value = override.partition("=")
                if key == "resume" and value != "null":
                    raise UserError(
                        f"{override} is not possible in a sweep: it resumes one run, and a sweep "
                        "makes new ones"
                    )
                if key == "show" and value != "null":
                    raise UserError(
                        f"{override} is not possible in a sweep; show one run at a time"
                    )
                if key == "experiment" and "," in value:
                    raise UserError(f"{override} is not possible; run one experiment at a time")

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        with errors_as_messages():
            compare_sweep(Path(config.hydra.sweep.dir))


def compare_sweep(folder: Path) -> None:
    """Print the table of the runs in a sweep's folder and write `comparison.png` there.

    Raises:
        SystemExit: a job did not finish: 130 if one was interrupted, else 1.
        UserError: there is no run at all, or the picture can't be written.
    """
    # Only a sweep pays for matplotlib's imports.
    from lab.comparing.numbers import compare
    from lab.comparing.picture import draw
    from lab.comparing.table import table, terminal_width
    from lab.recording.reading import notes, read_runs

    runs, skipped = read_runs([folder])
    for line in notes(skipped):
        print(line, file=sys.stderr)
    if not runs:
        raise UserError(f"no job of the sweep left a run in {folder}")
    comparison = compare(runs)
    print(table(comparison, terminal_width()), flush=True)
    draw(comparison, folder / "comparison.png")
    print(f"plot: {os.path.relpath(folder / 'comparison.png')}")
    print(f"view with: tensorboard --logdir {shlex.quote(os.path.relpath(folder))}", flush=True)
    if any(run.status == "interrupted" for run in runs):
        raise SystemExit(130)
    if skipped or any(run.status != "finished" for run in runs):
        raise SystemExit(1)

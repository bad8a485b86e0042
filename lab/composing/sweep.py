"""A sweep: what it refuses at its start; table, picture and exit code at its end."""

from __future__ import annotations

import os
import shlex
import textwrap
from pathlib import Path
from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig

from lab.errors import UserError, errors_as_messages


class CompareRuns(Callback):
    """Compares the runs of a sweep in its folder, whatever launched them.

    Hydra makes a warning of an exception in a callback, but lets the exit pass that
    `errors_as_messages` makes of it.

    Args:
        question: what an experiment asks; printed before its first run.
        look_at: what to look at in its table and plot; printed last.
    """

    def __init__(self, question: str = "", look_at: str = "") -> None:
        self.question = question
        self.look_at = look_at

    def on_run_start(self, config: DictConfig, **kwargs: Any) -> None:
        print_text(self.question)

    def on_run_end(self, config: DictConfig, **kwargs: Any) -> None:
        print_text(self.look_at)

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        with errors_as_messages():
            for override in config.hydra.overrides.task:
                key, _, value = override.partition("=")
                if key == "resume" and value != "null":
                    raise UserError(
                        f"{override} is not possible in a sweep: it resumes one run, and a sweep "
                        "makes new ones"
                    )
                if key == "experiment" and "," in value:
                    raise UserError(f"{override} is not possible; run one experiment at a time")
        print_text(self.question)

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        with errors_as_messages():
            compare_sweep(Path(config.hydra.sweep.dir), self.look_at)


def print_text(text: str) -> None:
    """Print a paragraph, or nothing."""
    if text:
        print(textwrap.fill(text, 80), flush=True)


def compare_sweep(folder: Path, look_at: str = "") -> None:
    """Print how the runs in a sweep's folder compare, and write `comparison.png` there.

    Raises:
        SystemExit: a job did not finish: 130 if one was interrupted, else 1.
        UserError: there is no run at all.
    """
    # Only a sweep pays for NumPy's and matplotlib's imports.
    from lab.comparing.report import end_of_sweep

    runs, skipped = end_of_sweep(folder)
    print(f"view with: tensorboard --logdir {shlex.quote(os.path.relpath(folder))}", flush=True)
    print_text(look_at)
    if any(run.status == "interrupted" for run in runs):
        raise SystemExit(130)
    if skipped or any(run.status != "finished" for run in runs):
        raise SystemExit(1)

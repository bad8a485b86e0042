"""A sweep: what it refuses at its start; table, plot and exit code at its end."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf

from lab import HOME
from lab.composing.names import quoted
from lab.composing.resume import IS_RESUMED, AnotherRun
from lab.errors import UserError, errors_as_messages, is_interruption, one_line
from lab.recording.reading import find_runs
from lab.recording.summary import SUMMARY

SAVING_SECONDS = 2
ONLY_ALONE = {  # keys that a sweep refuses, and what to do instead
    "resume": "it resumes one run; to resume a sweep, start it again with its hydra.sweep.dir",
    "show": "show one run at a time",
}


class Sweep(Callback):
    """The sweep that Hydra runs: it prints what an experiment asks, and compares the runs.

    Hydra turns an exception in a callback into a warning. `errors_as_messages` turns it into a
    SystemExit, which Hydra lets pass.

    Args:
        question: what an experiment asks; printed before its first run.
        look_at: what to look at in its table and plot; printed last, unless the command line
            changed a setting, for which its numbers need not hold.

    Attributes:
        folder: of the sweep.
        is_new: whether its folder did not exist before.
        has_lost: whether the launcher has named jobs that ended without a result.
    """

    folder: Path
    is_new: bool

    def __init__(self, question: str = "", look_at: str = "") -> None:
        self.question = question
        self.look_at = look_at
        self.has_lost = False

    def on_run_start(self, config: DictConfig, **kwargs: Any) -> None:
        if len(config.hydra.overrides.task) > 1:  # more than experiment=NAME
            self.look_at = ""
        print_text(self.question)

    def on_run_end(self, config: DictConfig, **kwargs: Any) -> None:
        print_text(self.look_at)

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        global current  # noqa: PLW0603  Hydra makes its callbacks, and keeps them to itself
        with errors_as_messages():
            _check(config)
            self.folder = Path(config.hydra.sweep.dir)
            self.is_new = not self.folder.exists()
            if (self.folder / SUMMARY).exists():
                raise UserError(f"hydra.sweep.dir={self.folder} holds a run; use another folder")
            current = self
            # For the processes of every launcher: they import the lab from any folder, and know
            # whether an earlier start may have left their run.
            path = [str(HOME), os.environ.get("PYTHONPATH", "")]
            os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, path))
            os.environ[IS_RESUMED] = "" if self.is_new else "1"
            if "joblib" in config.hydra.launcher._target_:
                signal.signal(signal.SIGINT, _let_workers_save)
        self.on_run_start(config)

    def end(self, error: BaseException | None) -> None:
        """Print the table of the runs in the folder and write `comparison.png` there.

        Args:
            error: what stopped the sweep, if anything did.

        Raises:
            SystemExit: 130 if a run was interrupted, 1 if a job did not finish otherwise.
            UserError: nothing was trained; a folder that Hydra made is then removed.
        """
        if not find_runs(self.folder)[0]:
            if self.is_new and not self.has_lost:
                shutil.rmtree(self.folder, ignore_errors=True)
            raise error or UserError(f"no job of the sweep left a run in {self.folder}")
        if isinstance(error, UserError) and not self.is_new:
            raise error
        is_stopped = error is not None and not isinstance(error, AnotherRun)
        if error is not None and not isinstance(error, SystemExit | AnotherRun):
            said = "interrupted" if is_interruption(error) else f"error: {one_line(error)}"
            print(said, file=sys.stderr, flush=True)
        # Only a sweep pays for NumPy's and matplotlib's imports.
        from lab.comparing.report import end_of_sweep

        runs, skipped = end_of_sweep(self.folder)
        folder = os.path.relpath(self.folder)
        print(f"view with: tensorboard --logdir {shlex.quote(folder)}", flush=True)
        for run in runs:
            if run.summary.status == "running" and not self.has_lost:
                said = "its process was killed, or another one is training it"
                print(f"{run.folder.name} has not ended: {said}", file=sys.stderr)
        statuses = {run.summary.status for run in runs}
        if is_stopped or self.has_lost or statuses & {"running", "interrupted"}:
            words = [word for word in sys.argv[1:] if not word.startswith("hydra.sweep.dir=")]
            words.append(f"hydra.sweep.dir={quoted(Path(folder).as_posix())}")
            print(f"resume with: {shlex.join(['python', 'train.py', *words])}", flush=True)
        if error is None:
            print_text(self.look_at)
        if isinstance(error, SystemExit):
            raise error
        if is_interruption(error) or "interrupted" in statuses:
            raise SystemExit(130)
        if error or skipped or self.has_lost or statuses != {"finished"}:
            raise SystemExit(1)


current: Sweep | None = None  # of this process; a worker process has started none


def print_text(text: str) -> None:
    """Print a paragraph, or nothing."""
    if text:
        print(textwrap.fill(text, 80), flush=True)


def _check(config: DictConfig) -> None:
    hydra: Any = OmegaConf.to_container(config.hydra, resolve=False)
    for override in hydra["overrides"]["task"]:
        key, _, value = override.partition("=")
        if key in ONLY_ALONE and value != "null":
            raise UserError(f"{override} is not possible in a sweep: {ONLY_ALONE[key]}")
        if key == "experiment" and "," in value:
            raise UserError(f"{override} is not possible; run one experiment at a time")
    subdir = hydra["sweep"]["subdir"]
    if os.path.isabs(subdir) or ".." in Path(subdir).parts:
        raise UserError(
            f"hydra.sweep.subdir={subdir} is not possible: the runs of a sweep lie in its folder; "
            "use hydra.sweep.dir"
        )


def _let_workers_save(number: int, frame: FrameType | None) -> None:
    """Ctrl-C reaches the workers too: their runs stop and save before joblib kills them."""
    time.sleep(SAVING_SECONDS)
    raise KeyboardInterrupt


@contextmanager
def sweep_compared() -> Iterator[None]:
    """Run Hydra's main; if it was a sweep, compare its runs at the end, whatever ended it."""
    error: BaseException | None = None
    try:
        yield
    except (KeyboardInterrupt, SystemExit, Exception) as stop:
        error = stop
    if current is not None:
        current.end(error)
    elif error is not None:
        raise error

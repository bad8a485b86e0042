"""A sweep: what it refuses at its start; table, picture and exit code at its end."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf

from lab import HOME
from lab.composing.names import quoted
from lab.composing.resume import IS_RESUMED, AnotherRun
from lab.errors import UserError, errors_as_messages, is_interruption, message_of, one_line
from lab.recording.reading import find_runs

SAVING_SECONDS = 2


@dataclass
class Sweep:
    """The sweep that this process has started and not yet ended.

    Attributes:
        is_new: whether its folder did not exist before.
        lost: a line for each job that ended without a result, and why.
    """

    folder: Path
    is_new: bool
    lost: list[str] = field(default_factory=list)


current: Sweep | None = None  # in a worker process too: that one has started none


class CompareRuns(Callback):
    """Compares the runs of a sweep in its folder, whatever launched them.

    Hydra makes a warning of an exception in a callback, but lets the exit pass that
    `errors_as_messages` makes of it.

    Args:
        question: what an experiment asks; printed before its first run.
        look_at: what to look at in its table and plot; printed last, unless the command line
            changed a setting, for which its numbers need not hold.
    """

    def __init__(self, question: str = "", look_at: str = "") -> None:
        self.question = question
        self.look_at = look_at

    def on_run_start(self, config: DictConfig, **kwargs: Any) -> None:
        print_text(self.question)

    def on_run_end(self, config: DictConfig, **kwargs: Any) -> None:
        if self.look_at and len(config.hydra.overrides.task) == 1:  # experiment=NAME
            print_text(self.look_at)

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        global current  # noqa: PLW0603  Hydra makes its callbacks, and keeps them to itself
        with errors_as_messages():
            _check(config)
            folder = Path(config.hydra.sweep.dir)
            current = Sweep(folder, is_new=not folder.exists())
            # For the processes of every launcher: they import the lab from any folder, and know
            # whether an earlier start may have left their run.
            path = [str(HOME), os.environ.get("PYTHONPATH", "")]
            os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, path))
            os.environ[IS_RESUMED] = "" if current.is_new else "1"
            if "joblib" in config.hydra.launcher._target_:
                signal.signal(signal.SIGINT, _let_workers_save)
        print_text(self.question)

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        with errors_as_messages():
            code = compare_sweep(Path(config.hydra.sweep.dir))
            self.on_run_end(config)
            if code:
                raise SystemExit(code)


def print_text(text: str) -> None:
    """Print a paragraph, or nothing."""
    if text:
        print(textwrap.fill(text, 80), flush=True)


def _check(config: DictConfig) -> None:
    hydra: Any = OmegaConf.to_container(config.hydra, resolve=False)
    for override in hydra["overrides"]["task"]:
        key, _, value = override.partition("=")
        if key == "resume" and value != "null":
            raise UserError(
                f"{override} is not possible in a sweep: it resumes one run; to resume a sweep, "
                "start it again with its hydra.sweep.dir"
            )
        if key == "show" and value != "null":
            raise UserError(f"{override} is not possible in a sweep; show one run at a time")
        if key == "experiment" and "," in value:
            raise UserError(f"{override} is not possible; run one experiment at a time")
    if hydra["launcher"].get("n_jobs") == 0:
        raise UserError("hydra.launcher.n_jobs=0 is not valid; use a number of workers, or -1")
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
def sweep_reported() -> Iterator[None]:
    """Give a sweep that an error or Ctrl-C stopped the same end as any other.

    Raises:
        SystemExit: the exit code of the sweep, when it had started jobs; otherwise the error
            passes, and the folder that Hydra made is removed.
    """
    try:
        yield
    except (KeyboardInterrupt, SystemExit, Exception) as error:
        sweep = current
        is_mistake = isinstance(error, UserError) and not isinstance(error, AnotherRun)
        if sweep is None or (is_mistake and not sweep.is_new) or _without_trace(sweep):
            raise
        if not isinstance(error, (SystemExit, AnotherRun)):  # which have said it already
            of_launcher = type(error).__module__.startswith(("joblib", "submitit"))
            message = f"error: {one_line(error)}\n" if of_launcher else message_of(error)[0]
            print(message, end="", file=sys.stderr, flush=True)
        code = compare_sweep(sweep.folder, stopped=not isinstance(error, AnotherRun))
        if isinstance(error, SystemExit):
            raise
        raise SystemExit(130 if is_interruption(error) else code or 1) from None


def _without_trace(sweep: Sweep) -> bool:
    """Whether the sweep left no run; the folder that Hydra made for it is then gone."""
    runs, _ = find_runs(sweep.folder)
    if sweep.is_new and not runs:
        (sweep.folder / "multirun.yaml").unlink(missing_ok=True)
        shutil.rmtree(sweep.folder / ".submitit", ignore_errors=True)
        for folder in (*sweep.folder.glob("*/"), sweep.folder):
            with suppress(OSError):  # it holds files of somebody else
                folder.rmdir()
    return not runs


def compare_sweep(folder: Path, stopped: bool = False) -> int:
    """Print the table of the runs in a sweep's folder and write `comparison.png` there.

    Args:
        stopped: whether jobs may be missing that have left nothing.

    Returns:
        The exit code: 0 if every job finished, 130 if one was interrupted, else 1.

    Raises:
        UserError: there is no run at all.
    """
    global current
    sweep, current = current or Sweep(folder, is_new=False), None
    if _without_trace(sweep):
        raise UserError(f"no job of the sweep left a run in {folder}")
    # Only a sweep pays for NumPy's and matplotlib's imports.
    from lab.comparing.report import end_of_sweep

    runs, skipped = end_of_sweep(folder)
    print(f"view with: tensorboard --logdir {shlex.quote(os.path.relpath(folder))}", flush=True)
    killed = [run for run in runs if run.summary.status == "running"]
    for line in sweep.lost or [
        f"{run.folder.name} was lost: its process was killed" for run in killed
    ]:
        print(line, file=sys.stderr)
    statuses = {run.summary.status for run in runs}
    if stopped or sweep.lost or statuses & {"running", "interrupted"}:
        print(f"resume with: {_resume_command(folder)}", flush=True)
    if "interrupted" in statuses:
        return 130
    return 1 if skipped or sweep.lost or statuses != {"finished"} else 0


def _resume_command(folder: Path) -> str:
    """The command line of this sweep, with its folder."""
    words = [word for word in sys.argv[1:] if not word.startswith("hydra.sweep.dir=")]
    where = f"hydra.sweep.dir={quoted(Path(os.path.relpath(folder)))}"
    return shlex.join(["python", "train.py", *words, where])

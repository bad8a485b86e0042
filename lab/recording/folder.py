"""The folder of a run: who may write there, and what a resumed run finds there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab.config import Config
from lab.errors import UserError, one_line
from lab.files import LOCK, system_errors_named
from lab.recording.checkpoint import CHECKPOINT, WEIGHTS
from lab.recording.curve import CURVE, Point, start_curve
from lab.recording.reading import read_run, read_summary
from lab.recording.summary import CHOICES, SUMMARY, Damaged, Summary


def make_folder(folder: Path) -> None:
    """Make the folder of a new run, or use an empty one.

    Raises:
        UserError: the folder holds a run or other files, or it can't be made.
    """
    with system_errors_named(folder):
        folder.mkdir(parents=True, exist_ok=True)
        # Not counted: the lock, warnings of the parts of this run, and a file that another run is
        # writing at this moment.
        names = [name for name in os.listdir(folder) if name not in (LOCK, "train.log")]
        found = sorted(name for name in names if not name.endswith(".part"))
    if SUMMARY in found or CURVE in found:
        raise UserError(
            f"{folder} already holds a run; use another folder, or resume it with resume={folder}"
        )
    if found:
        raise UserError(f"{folder} is not empty ({found[0]}); use a new folder for a run")


@contextmanager
def resume_refused(folder: Path) -> Iterator[None]:
    """Refuse to resume the run in a folder if the block finds damage.

    Raises:
        UserError: in place of `Damaged`.
    """
    try:
        yield
    except Damaged as damage:
        raise UserError(f"resume={folder} is not possible: {damage}") from damage


def points_to_keep(first_step: int, folder: Path, log_every: int) -> list[Point]:
    """The points of an interrupted run that the resumed run keeps.

    The point at which the run stopped is left out if its step is not a multiple of `log_every`.

    Args:
        first_step: the first step that will be done again.

    Raises:
        Damaged: the run can't be read, or points are missing.
    """
    run = read_run(folder)
    losses = dict(zip(run.steps.tolist(), run.losses.tolist(), strict=True))
    steps = range(0, first_step, log_every)
    if not losses.keys() >= set(steps):
        raise Damaged(f"its checkpoint is of step {first_step}, and its {CURVE} ends before that")
    return [(step, losses[step]) for step in steps]


def recorded_config(folder: Path) -> Config:
    """The config that the run in a folder was started with.

    Raises:
        UserError: the folder holds no run, or its summary is damaged.
    """
    with resume_refused(folder):
        if not (folder / SUMMARY).exists():
            raise Damaged("there is no run in it")
        summary = read_summary(folder)
    choices = {name: getattr(summary, name) for name in CHOICES}
    return Config.from_keys(summary.config, choices, tuple(summary.overrides or ()))


def has_checkpoint(folder: Path) -> bool:
    """Whether the run in a folder can be resumed."""
    return (folder / CHECKPOINT).is_file()


def discard_run(folder: Path) -> None:
    """Delete the files of a run that can't be resumed; files of other names stay.

    The summary goes last: until then the folder is still known as this run's.
    """
    for name in (CHECKPOINT, WEIGHTS, CURVE, "events.out.tfevents.*", "train.log", SUMMARY):
        for file in folder.glob(name):
            file.unlink()


def record_failure(folder: Path, summary: Summary, error: Exception) -> None:
    """Leave a summary and an empty curve for a job of a sweep that failed before its first step."""
    summary.status, summary.error = "failed", one_line(error)
    start_curve(folder, summary)

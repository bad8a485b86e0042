"""Which config does a resumed run have, and which run of a sweep does a job resume?"""

from __future__ import annotations

import dataclasses
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from lab.composing.keys import as_typed
from lab.config import Config
from lab.devices import pick_device
from lab.errors import UserError
from lab.files import locked
from lab.jsonable import jsonable
from lab.recording.folder import discard_run, has_checkpoint, recorded_config
from lab.recording.summary import SUMMARY, Summary

# A resumed run may have values of its own for these keys: none of them changes the curve.
RESUMABLE_KEYS = ("resume", "steps", "progress", "flush_seconds", "checkpoint_every")
ENDED = ("finished", "diverged")  # the same config would end the same again
IS_RESUMED = "LAB_SWEEP_IS_RESUMED"  # environment: not empty in the jobs of a sweep started again


class AnotherRun(Exception):
    """The folder of a job holds a run of another config."""


def resumed(typed: Config, folder: Path) -> Config:
    """The config of the run in a folder, with what the command line may change.

    Args:
        typed: the config of the command line.
        folder: of the run that `typed.resume` names.

    Raises:
        UserError: the command line sets a key that the run has another value for, or the device of
            the run is not here.
    """
    own = recorded_config(folder)
    changes: dict[str, Any] = {"resume": typed.resume}
    for override in typed.overrides:
        key = override.lstrip("+~").partition("=")[0]
        if key == "experiment":
            raise UserError(f"{override} is not possible: a resumed run keeps its own settings")
        if key in RESUMABLE_KEYS:
            changes[key] = getattr(typed, key)
        elif not key.startswith("hydra"):
            before, now = _value(own, key), _value(typed, key)
            if before != now:
                raise UserError(
                    f"{key}={as_typed(now)} is not possible: the run in {folder} has "
                    f"{key}={as_typed(before)}; leave {key} out, or start a new run"
                )
    try:
        pick_device(own.device)
    except UserError:
        raise UserError(
            f"resume={typed.resume} is not possible here: the run used device={own.device}, which "
            "this machine does not have; resume it where there is one, or start a new run"
        ) from None
    return dataclasses.replace(own, **changes)


def _value(config: Config, key: str) -> Any:
    return config.choices.get(key) or OmegaConf.select(OmegaConf.create(config.keys), key)


def earlier_run(config: Config, folder: Path) -> Summary | None:
    """Find the run of this config that an earlier start of the sweep left.

    A run that has ended stays where it is and as it is. One that was interrupted is moved to
    `folder` if the job had another number then; without a checkpoint it is deleted. If another
    process is still training the run, this waits for it.

    Args:
        config: of a job of a sweep.
        folder: of that job; Hydra has made it.

    Returns:
        The summary of a run that has ended, or can be resumed in `folder`; otherwise None.

    Raises:
        AnotherRun: `folder` holds a run of another config.
    """
    place = _place_of(config, folder)
    if place is None:
        return None
    summary = _summary(place)
    if summary.status == "running":
        with locked(place, wait=True):
            summary = _summary(place)
    if place != folder:
        folder.rmdir()
        if summary.status not in ENDED:
            place.rename(folder)
    if summary.status in ENDED:
        return summary
    # A process that was killed between its last checkpoint and its last summary has no step to do.
    if has_checkpoint(folder) and summary.steps < config.steps:
        return summary
    discard_run(folder)
    return None


def _place_of(config: Config, folder: Path) -> Path | None:
    beside = sorted(folder.parent.iterdir()) if os.environ.get(IS_RESUMED) else []
    for place in (folder, *beside):
        # A run that is damaged, or failed for want of a key, is none of this config.
        with suppress(UserError, TypeError):
            if _identity(recorded_config(place)) == _identity(config):
                return place
    if (folder / SUMMARY).exists():
        raise AnotherRun("the folder holds a run of another config; use another folder")
    return None


def _identity(config: Config) -> Any:
    """What makes two runs the same, as JSON has it: all keys that change the curve."""
    free = set(RESUMABLE_KEYS) - {"steps"}
    keys = {key: value for key, value in config.keys.items() if key not in free}
    return jsonable({"choices": dict(config.choices), "keys": keys})


def _summary(folder: Path) -> Summary:
    return Summary.from_json((folder / SUMMARY).read_bytes())

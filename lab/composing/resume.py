"""Which config does a resumed run have?"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from lab.composing.rules import as_typed
from lab.config import Config
from lab.devices import pick_device
from lab.errors import UserError
from lab.recording.folder import recorded_config

# A resumed run may have values of its own for these keys: none of them changes the curve.
RESUMABLE_KEYS = ("resume", "steps", "progress", "flush_seconds", "checkpoint_every")


def resumed(typed: Config, folder: Path) -> Config:
    """The config of the run in a folder, with what the command line may change.

    Args:
        typed: the config of the command line.
        folder: of the run that `typed.resume` names.

    Raises:
        UserError: the command line sets a key that the run has another value for.
    """
    own = recorded_config(folder)
    changes: dict[str, Any] = {"resume": typed.resume}
    for override in typed.overrides:
        key = override.lstrip("+~").partition("=")[0]
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
    except UserError as error:
        raise UserError(
            f"resume={typed.resume} is not possible here: the run used device={own.device}, which "
            "this machine or this PyTorch does not have; resume it where there is one"
        ) from error
    return dataclasses.replace(own, **changes)


def _value(config: Config, key: str) -> Any:
    if key in config.choices:
        return config.choices[key]
    value: Any = config.keys
    for part in key.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value

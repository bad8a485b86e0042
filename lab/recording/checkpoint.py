"""What a run needs to go on: weights, optimizer, step, random state and config, as plain data."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from lab.composing.config import shown
from lab.errors import UserError
from lab.files import write_whole

CHECKPOINT, WEIGHTS = "checkpoint.pt", "weights.pt"
# Keys of which a resumed run may have a value of its own: none of them moves the curve.
FREE = ("resume", "steps", "progress", "flush_seconds", "checkpoint_every")


def save_checkpoint(
    folder: Path, step: int, model: nn.Module, optimizer: Any, summary: dict[str, Any]
) -> None:
    """Keep the state in front of a step.

    Args:
        folder: the run folder; `checkpoint.pt` and `weights.pt` in it are replaced.
        step: the next step to do.
        model, optimizer: whose `state_dict` is kept.
        summary: the run's, for its config and choices.

    Raises:
        UserError: no space; what was there before is unchanged.
    """
    checkpoint = {
        "step": step,
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "random_state": torch.get_rng_state(),
        "device_random_state": _device_random_state(summary["device"]),
        "summary": summary,
    }
    # On the CPU: weights are to load with plain torch.load on any machine.
    weights = {name: tensor.cpu() for name, tensor in model.state_dict().items()}
    for name, state in ((CHECKPOINT, checkpoint), (WEIGHTS, weights)):
        content = io.BytesIO()
        torch.save(state, content)
        write_whole(folder / name, content.getvalue())


def load_checkpoint(folder: Path) -> dict[str, Any]:
    """Read what `save_checkpoint` kept; never runs code, whatever the file holds.

    Raises:
        UserError: there is no checkpoint, it is damaged, or it is none of this lab.
    """
    path = folder / CHECKPOINT
    if not path.is_file():
        raise UserError(
            f"resume={folder}: no {CHECKPOINT} in it; a run writes one at its end, and with "
            "checkpoint_every=N on the way"
        )
    try:
        # torch.load does not look at the checksums in the file, and takes changed weights as given.
        with zipfile.ZipFile(path) as archive:
            if name := archive.testzip():
                raise zipfile.BadZipFile(f"{name} has changed")
        checkpoint = torch.load(path, map_location="cpu", weights_only=True)
        if not isinstance(checkpoint["summary"]["config"], dict):
            raise TypeError("no config")
        checkpoint["model"], checkpoint["optimizer"], checkpoint["random_state"]
    except Exception as error:
        # A damaged file can fail in any way; the reason is told, and the next line is the user's.
        raise UserError(
            f"resume={folder}: {CHECKPOINT} is damaged, or no checkpoint of this lab "
            f"({type(error).__name__})"
        ) from error
    return checkpoint


def resumed_config(
    checkpoint: dict[str, Any],
    config: dict[str, Any],
    choices: dict[str, str],
    overrides: Sequence[str],
) -> dict[str, Any]:
    """The config to go on with: the run's own, with more steps if the command line asks for them.

    Args:
        checkpoint: from `load_checkpoint`.
        config, choices: what Hydra made of the command line.
        overrides: the command line.

    Raises:
        UserError: an override that the run did not have, or nothing left to do.
    """
    own = checkpoint["summary"]["config"]
    folder, step = config["resume"], checkpoint["step"]
    for override in overrides:
        key = override.lstrip("+~").partition("=")[0]
        if key in FREE or key.startswith("hydra"):
            continue
        before = checkpoint["summary"].get(key) if key in choices else _value_at(own, key)
        now = choices[key] if key in choices else _value_at(config, key)
        if before != now:
            raise UserError(
                f"{key}={shown(now)}: the run in {folder} has {key}={shown(before)}; resume it "
                "without that, or start a run of its own"
            )
    given = {override.partition("=")[0] for override in overrides}
    resumed = own | {key: config[key] for key in FREE if key in given}
    if resumed["steps"] <= step:
        raise UserError(
            f"resume={folder}: the run has done {step} steps; ask for more, such as "
            f"steps={2 * step}"
        )
    return resumed


def restore(checkpoint: dict[str, Any], model: nn.Module, optimizer: Any) -> None:
    """Put model, optimizer and random state where the checkpoint found them.

    Raises:
        UserError: the model's code has changed since, and its parameters with it.
    """
    try:
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
    except (RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise UserError(f"{CHECKPOINT} does not fit this model: {reason}") from error
    torch.set_rng_state(checkpoint["random_state"])
    if checkpoint["device_random_state"] is not None:
        torch.cuda.set_rng_state(checkpoint["device_random_state"], checkpoint["summary"]["device"])


def _device_random_state(device: str) -> torch.Tensor | None:
    return torch.cuda.get_rng_state(device) if device.startswith("cuda") else None


def _value_at(config: Any, key: str) -> Any:
    for part in key.split("."):
        config = config.get(part) if isinstance(config, dict) else None
    return config

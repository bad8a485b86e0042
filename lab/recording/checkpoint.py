"""`checkpoint.pt`: weights, optimizer, step and random state, as plain data, to resume a run."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import torch
from torch import nn

from lab.errors import UserError
from lab.files import write_whole
from lab.parts import Optimizer
from lab.recording.summary import Damaged

CHECKPOINT, WEIGHTS = "checkpoint.pt", "weights.pt"


def save_checkpoint(
    folder: Path, step: int, model: nn.Module, optimizer: Optimizer, device: torch.device
) -> None:
    """Save the state before a step: `checkpoint.pt` to resume from, `weights.pt` to use.

    Args:
        folder: the run folder; both files in it are replaced.
        step: the next step to do.
        model, optimizer: whose `state_dict` is saved.
        device: whose random state is saved, in addition to that of the CPU.

    Raises:
        UserError: no space; the old files are unchanged.
    """
    checkpoint = {
        "step": step,
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "random_state": torch.get_rng_state(),
    }
    if device.type != "cpu":
        checkpoint["device_random_state"] = torch.get_device_module(device).get_rng_state(device)
    # On the CPU, so that weights load with plain torch.load on any machine.
    weights = {name: tensor.cpu() for name, tensor in model.state_dict().items()}
    for name, state in ((CHECKPOINT, checkpoint), (WEIGHTS, weights)):
        content = io.BytesIO()
        torch.save(state, content)
        write_whole(folder / name, content.getvalue())


def load_checkpoint(folder: Path) -> dict[str, Any]:
    """Read what `save_checkpoint` saved; code in the file is never run.

    Raises:
        Damaged: the checkpoint is missing, it has changed, or another program wrote it.
    """
    path = folder / CHECKPOINT
    if not path.is_file():
        raise Damaged(
            f"it holds no {CHECKPOINT}; a run writes one at its end, and with checkpoint_every=N "
            "every N steps"
        )
    try:
        # torch.load does not check the checksums in the file, and would load changed weights.
        with zipfile.ZipFile(path) as archive:
            if name := archive.testzip():
                raise zipfile.BadZipFile(f"{name} has changed")
        checkpoint = torch.load(path, map_location="cpu", weights_only=True)
        for key in ("step", "model", "optimizer", "random_state"):
            checkpoint[key]
    except Exception as error:
        # A damaged file can fail in any way, and no code of the user runs here.
        what = f"is damaged, or not from this lab ({type(error).__name__})"
        raise Damaged(f"{CHECKPOINT} {what}") from error
    return checkpoint


def restore(
    checkpoint: dict[str, Any], model: nn.Module, optimizer: Optimizer, device: torch.device
) -> None:
    """Set model, optimizer and random state to what the checkpoint holds.

    Raises:
        UserError: the model has other parameters than the checkpoint.
    """
    try:
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
    except (RuntimeError, ValueError, KeyError) as error:
        reason = " ".join(str(error).split())
        raise UserError(f"{CHECKPOINT} does not fit this model: {reason}") from error
    torch.set_rng_state(checkpoint["random_state"])
    if (state := checkpoint.get("device_random_state")) is not None and device.type != "cpu":
        torch.get_device_module(device).set_rng_state(state, device)

"""From the word in the config to a device that is there."""

from __future__ import annotations

import torch

from lab.errors import UserError

ALLOWED = "cpu, cuda, cuda:N, mps or auto"


def pick_device(name: str) -> torch.device:
    """The device of that name, checked to exist.

    Args:
        name: cpu, cuda, cuda:1, mps, or auto: the accelerator that PyTorch finds, else the CPU.

    Raises:
        UserError: no such name, or no such device on this machine; says what to do.

    >>> pick_device("cpu")
    device(type='cpu')
    """
    if name == "auto":
        # An accelerator that PyTorch was built for may still be missing from the machine.
        found = torch.accelerator.current_accelerator(check_available=True)
        return found or torch.device("cpu")
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError):
        raise UserError(f"device={name} is not a device; use {ALLOWED}") from None
    if device.type == "cuda":
        if not torch.cuda.is_available():
            raise UserError(
                f"device={name} is not available: this PyTorch finds no CUDA; use device=cpu or "
                "device=auto, or install a CUDA build of PyTorch and an NVIDIA driver"
            )
        count = torch.cuda.device_count()
        if device.index is not None and device.index >= count:
            raise UserError(
                f"device={name} does not exist; this machine has cuda:0 to cuda:{count - 1}"
            )
    elif device.type == "mps":
        if not torch.backends.mps.is_available():
            raise UserError(
                f"device={name} is not available: this PyTorch finds no MPS; use device=cpu"
            )
    elif name != "cpu":
        raise UserError(f"device={name} is not a device; use {ALLOWED}")
    return device

"""From the name of a device in the config to a device that exists."""

from __future__ import annotations

import torch

from lab.errors import UserError

ALLOWED = "cpu, cuda, cuda:N, mps or auto"


def pick_device(name: str) -> torch.device:
    """Return the device of that name, after checking that it exists.

    Args:
        name: cpu, cuda, cuda:1, mps, or auto for the accelerator that PyTorch finds, else the CPU.

    Raises:
        UserError: no such name, or no such device on this machine; says what to do.

    >>> pick_device("cpu")
    device(type='cpu')
    """
    # PyTorch may be built for an accelerator that this machine does not have.
    found = torch.accelerator.current_accelerator(check_available=True)
    if name == "auto":
        return found or torch.device("cpu")
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError):
        raise UserError(f"device={name} is not a device; use {ALLOWED}") from None
    if name == "cpu":
        return device
    if found is not None and device.type == found.type:
        last = torch.accelerator.device_count() - 1
        if device.index is not None and device.index > last:
            raise UserError(
                f"device={name} does not exist; this machine has {found.type}:0 to "
                f"{found.type}:{last}"
            )
        return device
    if device.type in ("cuda", "mps"):
        raise UserError(
            f"device={name} is not available: this PyTorch finds no {device.type.upper()}; use "
            "device=cpu, or see docs/troubleshooting.md"
        )
    raise UserError(f"device={name} is not a device; use {ALLOWED}")

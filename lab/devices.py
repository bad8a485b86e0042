"""From the name of a device in the config to a device that exists."""

from __future__ import annotations

import re

import torch

from lab.errors import UserError

ALLOWED = "cpu, cuda, cuda:N, mps or auto"


def pick_device(name: str) -> torch.device:
    """Return the device of that name, after checking that it exists.

    Args:
        name: cpu, cuda, cuda:1, mps, or auto for the accelerator that PyTorch finds, else the CPU.

    Raises:
        UserError: the name is not a device, or this machine does not have it; says what to do.

    >>> pick_device("cpu")
    device(type='cpu')
    """
    # PyTorch may be built for an accelerator that this machine does not have.
    found = torch.accelerator.current_accelerator(check_available=True)
    if name == "auto":
        return found or torch.device("cpu")
    here = ["cpu"]
    if found is not None:
        count = torch.accelerator.device_count()
        here += [found.type, *(f"{found.type}:{index}" for index in range(count))]
    if name in here:
        return torch.device(name)
    if re.fullmatch(r"(cuda|mps)(:\d+)?", name):
        raise UserError(
            f"device={name} is not available: this PyTorch finds {', '.join(here)}; use one of "
            "them, or see docs/troubleshooting.md"
        )
    raise UserError(f"device={name} is not a device; use {ALLOWED}")

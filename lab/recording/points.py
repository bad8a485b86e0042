"""Scalars that were computed and are not written yet."""

from __future__ import annotations

import time
from typing import NamedTuple

import torch
from torch import Tensor


class Scalar(NamedTuple):
    """One number of one step; `seconds` since the epoch."""

    tag: str
    step: int
    value: float
    seconds: float


class Unread:
    """Scalars that were recorded and not read yet, so that no step waits for an accelerator."""

    def __init__(self) -> None:
        self._waiting: list[tuple[str, int, float | Tensor, float]] = []

    def add(self, tag: str, step: int, value: float | Tensor) -> None:
        """Add a scalar: a number, or a detached tensor without dimensions."""
        self._waiting.append((tag, step, value, time.time()))

    def read(self) -> list[Scalar]:
        """Return all of them as numbers, with one read of the device; they stay until `clear`."""
        tensors = [value for _, _, value, _ in self._waiting if isinstance(value, Tensor)]
        numbers = iter(torch.stack(tensors).tolist() if tensors else ())
        return [
            Scalar(tag, step, next(numbers) if isinstance(value, Tensor) else value, seconds)
            for tag, step, value, seconds in self._waiting
        ]

    def clear(self) -> None:
        """Remove them, once they are on disk."""
        self._waiting = []

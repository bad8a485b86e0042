"""One problem: the full batch, its loss, and what is kept for the test."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor


class Data(NamedTuple):
    """A full batch and the loss that it is fitted with.

    Attributes:
        x: inputs (samples, features), or None where the model needs none.
        y: targets: (samples, targets) numbers, or (samples,) int64 classes, or None.
        loss: (output of the model, y) -> scalar.
        x_test, y_test: the same for a test set of a classification, or None.
    """

    x: Tensor | None
    y: Tensor | None
    loss: Callable[[Tensor, Tensor], Tensor]
    x_test: Tensor | None = None
    y_test: Tensor | None = None

    def to(self, device: torch.device, dtype: torch.dtype) -> Data:
        """Move all tensors to the device, and those of floating point to the dtype."""
        return Data(
            *(
                part.to(device, dtype if part.is_floating_point() else part.dtype)
                if isinstance(part, Tensor)
                else part
                for part in self
            )
        )

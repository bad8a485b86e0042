"""One data set: the full batch, its loss, and a test set."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor


class Data(NamedTuple):
    """A full batch and the loss to minimise.

    Attributes:
        x: inputs (samples, features) or (samples,), or None where the model needs none.
        y: targets: (samples, targets) or (samples,) numbers, (samples,) int64 classes, or None.
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

        def moved(tensor: Tensor | None) -> Tensor | None:
            if tensor is None:
                return None
            return tensor.to(device, dtype if tensor.is_floating_point() else tensor.dtype)

        return Data(moved(self.x), moved(self.y), self.loss, moved(self.x_test), moved(self.y_test))

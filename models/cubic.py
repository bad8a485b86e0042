"""The model of today's "Learning PyTorch with Examples": four numbers, no layers."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn


class Cubic(nn.Module):
    """y = a + b * activation(c + d * x), with four scalar parameters.

    Args:
        a, b, c, d: values to start from.
        activation: tensor -> tensor of the same shape. With `LegendrePolynomial3.apply`, y is a
            cubic polynomial of x.

    >>> model = Cubic(1.0, 2.0, 0.0, 3.0, activation=torch.abs)
    >>> model(torch.tensor([-1.0, 0.5])).tolist()
    [7.0, 4.0]
    """

    def __init__(
        self, a: float, b: float, c: float, d: float, *, activation: Callable[[Tensor], Tensor]
    ) -> None:
        super().__init__()
        self.a, self.b, self.c, self.d = (
            nn.Parameter(torch.tensor(float(value))) for value in (a, b, c, d)
        )
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        """Map (samples,) to (samples,)."""
        return self.a + self.b * self.activation(self.c + self.d * x)

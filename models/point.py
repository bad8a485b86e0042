"""Two numbers instead of a network: gradient descent moves them downhill on a surface."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn


class Point(nn.Module):
    """The parameters x and y, and the height of a surface at (x, y).

    Args:
        x, y: where the descent starts.
        function: (x, y) -> height, all of them scalars, such as `SqrtReciprocalSquare.apply`.

    >>> Point(3.0, 2.0, function=lambda x, y: x * y)(None).item()
    6.0
    """

    def __init__(self, x: float, y: float, *, function: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.x = nn.Parameter(torch.tensor(float(x)))
        self.y = nn.Parameter(torch.tensor(float(y)))
        self.function = function

    def forward(self, _: None) -> Tensor:
        """The height at (x, y), a scalar; it takes no input."""
        return self.function(self.x, self.y)

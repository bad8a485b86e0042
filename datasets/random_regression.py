"""The data of the older "Learning PyTorch with Examples": random inputs and random targets."""

from __future__ import annotations

import torch
from torch.nn.functional import mse_loss

from .data import Data


def sum_of_squares(output: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The loss of the tutorial, `(output - y).pow(2).sum()`, as one operation with the same bits.

    >>> sum_of_squares(torch.tensor([1.0, 2.0]), torch.tensor([0.0, 4.0])).item()
    5.0
    """
    return mse_loss(output, y, reduction="sum")


def random_regression(samples: int, features: int, targets: int) -> Data:
    """Draw x, then y, from N(0, 1) on the CPU, as a script does after `torch.manual_seed`.

    Args:
        samples, features, targets: sizes; x is (samples, features), y is (samples, targets).

    Returns:
        Data in float32 with the sum of squared errors as its loss and no test set.

    >>> _ = torch.manual_seed(0)
    >>> random_regression(samples=2, features=3, targets=1).x.shape
    torch.Size([2, 3])
    """
    x = torch.randn(samples, features)
    y = torch.randn(samples, targets)
    return Data(x, y, sum_of_squares)

"""The data of today's "Learning PyTorch with Examples": one period of sin(x)."""

from __future__ import annotations

import math

import torch

from .data import Data
from .random_regression import sum_of_squares


def sine(samples: int) -> Data:
    """Points on sin(x), x evenly spaced from -pi to pi, both ends included.

    Args:
        samples: how many.

    Returns:
        Data with x and y of shape (samples,) in float32, the sum of squared errors as its loss,
        and no test set.

    >>> sine(samples=3).y.abs().max().item() < 1e-6  # sin(-pi), sin(0), sin(pi)
    True
    """
    x = torch.linspace(-math.pi, math.pi, samples)
    return Data(x, x.sin(), sum_of_squares)

"""Today's "Learning PyTorch with Examples" as one plain script: a cubic is fitted to sin(x).

python benchmarks/plain_sine.py    # 2,000 steps, each loss printed
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor


class P3(torch.autograd.Function):
    """The third Legendre polynomial, (5 x^3 - 3 x) / 2, elementwise."""

    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return 0.5 * (5 * x**3 - 3 * x)

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad_output * 1.5 * (5 * x**2 - 1)


def fit(
    steps: int = 2000, lr: float = 5e-6, *, record: Callable[[int, float], object] = print
) -> list[float]:
    """Run the plain loop.

    Args:
        record: gets each step and its loss.

    Returns:
        a, b, c and d of y = a + b * P3(c + d * x), after the last update.
    """
    x = torch.linspace(-math.pi, math.pi, 2000)
    y = torch.sin(x)
    a, b, c, d = (torch.tensor(value, requires_grad=True) for value in (0.0, -1.0, 0.0, 0.3))
    for step in range(steps):
        y_pred = a + b * P3.apply(c + d * x)
        loss = (y_pred - y).pow(2).sum()
        record(step, loss.item())
        loss.backward()
        with torch.no_grad():
            for weight in (a, b, c, d):
                weight -= lr * weight.grad
                weight.grad = None
    return [weight.item() for weight in (a, b, c, d)]


if __name__ == "__main__":
    fit()

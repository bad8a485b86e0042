"""Sigmoid: y = 1 / (1 + exp(-x)), elementwise.

Derivation. With u = exp(-x), y = 1 / (1 + u) and du/dx = -u, so

    dy/dx = u / (1 + u)^2 = [1 / (1 + u)] [u / (1 + u)] = y (1 - y)

because 1 - y = u / (1 + u). Nothing but y is needed.
"""

import torch
from torch import Tensor

HINT = "Differentiate it by x first. Then find 1 - y, and write the slope in y alone."


class Sigmoid(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        y = 1 / (1 + torch.exp(-x))
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return grad_output * y * (1 - y)

    @staticmethod
    def sample_inputs() -> list[tuple]:
        return [(torch.tensor([[-3.0, -0.5, 0.0], [0.75, 1.5, 4.0]]),)]


class OutputTakenForInput(Sigmoid):
    """What was saved is y, the sigmoid already. This takes the sigmoid of it once more."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return grad_output * y.sigmoid() * (1 - y.sigmoid())


class ForwardOnceMore(Sigmoid):
    """This multiplies by the value y. The slope is smaller: it dies out at both ends, and y only
    at one."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return grad_output * y


class OneMinusOutput(Sigmoid):
    """This multiplies by 1 - y. The slope is smaller: it dies out at both ends, and 1 - y only at
    one."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return grad_output * (1 - y)

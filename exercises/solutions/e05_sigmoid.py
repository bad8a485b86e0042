"""Sigmoid: y = 1 / (1 + exp(-x)), elementwise.

Derivation. With u = exp(-x), y = 1 / (1 + u) and du/dx = -u, so

    dy/dx = u / (1 + u)^2 = [1 / (1 + u)] [u / (1 + u)] = y (1 - y)

because 1 - y = u / (1 + u). Nothing but y is needed.
"""

import torch
from torch import Tensor

HINTS = (
    "Differentiate with respect to x first. Then work out 1 - y, and write the slope in terms of "
    "y alone.",
    "`return grad_output * y * (...)`. The slope is a product of y and one more factor.",
)


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
        return [
            (torch.tensor([[-3.0, -0.5, 0.0], [0.75, 1.5, 4.0]]),),
            (torch.tensor([[-1000.0], [-40.0], [1.0], [40.0]]),),
        ]


class SigmoidTwice(Sigmoid):
    """The saved tensor is y, already the sigmoid of x. This takes the sigmoid of it once more: use
    y as it is."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return grad_output * y.sigmoid() * (1 - y.sigmoid())


class ValueInsteadOfSlope(Sigmoid):
    """This multiplies by the value y. The slope goes to 0 at both ends, and y only at one: a second
    factor is missing."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return grad_output * y


class OneMinusOutput(Sigmoid):
    """This multiplies by 1 - y. The slope goes to 0 at both ends, and 1 - y only at one: a second
    factor is missing."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return grad_output * (1 - y)


class SlopeOfTanh(Sigmoid):
    """This multiplies by 1 - y^2, the slope of tanh. The sigmoid has another slope: differentiate 1
    / (1 + exp(-x))."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return grad_output * (1 - y**2)


class ParenthesesForgotten(Sigmoid):
    """Without parentheses Python multiplies first: this computes (grad_output * y) - y. Write 1 - y
    in parentheses."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return grad_output * y * 1 - y

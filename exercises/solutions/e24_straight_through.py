"""StraightThrough: y = x clamped to [-1, 1], with the gradient of y = x.

Derivation. There is none, on purpose: backward is a surrogate. The derivative of y = x is 1, so

    dL/dx = grad_output

Inside [-1, 1] that is the derivative of the clamp as well. Outside it is not, and lets x move back.
Source: the straight-through estimator of Bengio, Leonard, Courville, 2013 (arXiv:1308.3432).
"""

import torch
from torch import Tensor

HINTS = (
    "Imagine that forward were `return x`. What would backward be then?",
    "`return ...`, without any mask.",
)


class StraightThrough(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        return x.clamp(-1, 1)

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        return grad_output

    @staticmethod
    def surrogate(x: Tensor) -> Tensor:
        return x

    @staticmethod
    def sample_inputs() -> list[tuple]:
        return [(torch.tensor([[-2.0, -0.5, 0.25], [0.75, -0.1, 3.0]]),), (torch.zeros(1, 1),)]


class _SavesX(StraightThrough):
    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.clamp(-1, 1)


class TrueDerivative(_SavesX):
    """This is the true derivative of the clamp: it stops the gradient outside [-1, 1]. The task
    asks for a surrogate, which lets the gradient pass there as well: drop the mask."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad_output * (x.abs() <= 1)


class MaskInverted(_SavesX):
    """The gradient passes only outside [-1, 1]. It must pass everywhere: drop the mask."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad_output * (x.abs() > 1)


class ClampsGradOutput(StraightThrough):
    """This clamps grad_output. The clamp in forward applies to the values; a gradient may be of any
    size and must pass unchanged."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        return grad_output.clamp(-1, 1)


class ValueInsteadOfSlope(_SavesX):
    """This multiplies by the value of y. The surrogate is y = x, whose slope is 1: return
    grad_output unchanged."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad_output * x.clamp(-1, 1)


class MultipliedByX(_SavesX):
    """This multiplies by x, the value of the surrogate. Backward needs its slope, which is 1:
    return grad_output unchanged."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad_output * x

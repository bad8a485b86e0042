"""Scale: y = factor x, elementwise, for a number `factor`.

Derivation. If x_i grows by 1, y_i grows by factor, and no other element of y changes. So

    dL/dx_i = dL/dy_i dy_i/dx_i = grad_output_i factor

The factor is a plain number. Autograd computes gradients of tensors only, so its place holds None.
"""

import torch
from torch import Tensor

HINTS = (
    "If one element of x grows by 1, by how much does that element of y grow? Multiply "
    "grad_output by that.",
    "`return grad_output * ..., None`. The number in place of the dots is on ctx.",
)


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, factor: float) -> Tensor:
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, None]:
        return grad_output * ctx.factor, None

    @staticmethod
    def sample_inputs() -> list[tuple]:
        return [
            (torch.tensor([-2.0, 0.0, 0.5]), 3.0),
            (torch.randn(5, 3), -0.5),
            (torch.tensor([[4.0]]), 0.0),
        ]


class FactorForgotten(Scale):
    """This returns grad_output unchanged, as for a slope of 1. If x grows by 1, y grows by factor:
    multiply grad_output by ctx.factor."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, None]:
        return grad_output, None


class DividedByFactor(Scale):
    """This divides by factor, as if backward had to undo forward. Backward needs the slope of
    forward: multiply by ctx.factor instead."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, None]:
        return grad_output / ctx.factor, None


class FactorSquared(Scale):
    """This multiplies by factor twice. The slope of y is factor: multiply grad_output by it
    once."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, None]:
        return grad_output * ctx.factor**2, None


class MultipliedByX(Scale):
    """This multiplies by x, which is how fast y changes with factor. What counts here is how fast y
    changes with x: multiply by ctx.factor."""

    @staticmethod
    def forward(ctx, x: Tensor, factor: float) -> Tensor:
        ctx.save_for_backward(x)
        return x * factor

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, None]:
        (x,) = ctx.saved_tensors
        return grad_output * x, None


class ValueInsteadOfSlope(MultipliedByX):
    """This multiplies by the value of y. Backward needs the slope of y, which is factor alone."""

    @staticmethod
    def forward(ctx, x: Tensor, factor: float) -> Tensor:
        ctx.save_for_backward(x * factor)
        return x * factor


class FactorAdded(Scale):
    """This adds the slope to grad_output. The chain rule multiplies the two."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, None]:
        return grad_output + ctx.factor, None

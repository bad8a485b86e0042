"""Square: y = x^2, elementwise.

Derivation. dy/dx = 2 x, and y_i depends on x_i alone. By the chain rule

    dL/dx_i = dL/dy_i dy_i/dx_i = grad_output_i 2 x_i
"""

import torch
from torch import Tensor

HINTS = (
    "What is the slope of x^2 at x = 3? Multiply grad_output by the slope at each x.",
    "`return grad_output * ...`, with the derivative of x^2 in place of the dots.",
)


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x**2

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad_output * 2 * x

    @staticmethod
    def sample_inputs() -> list[tuple]:
        return [
            (torch.tensor([-1.5, 0.5, 3.0]),),
            (torch.randn(5, 3),),
            (torch.tensor([[0.0], [100.0]]),),
        ]


class SameSlopeEverywhere(Square):
    """This uses the same slope, 2, at every x. But x^2 is flat at 0 and steep far from it: its
    slope is 2 x."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        return 2 * grad_output


class ValueInsteadOfSlope(Square):
    """This multiplies by the value x^2. Backward needs the slope of x^2: how fast the value
    changes."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad_output * x**2


class OneFactorOnly(Square):
    """This multiplies by x, which is half of the slope. x^2 is x times x, and both factors change:
    each contributes x."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad_output * x


class PowerNotLowered(Square):
    """This multiplies by 2 x^2. In the derivative the power is lowered by one: 2 x."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad_output * 2 * x**2


class SlopeAdded(Square):
    """This adds the slope to grad_output. The chain rule multiplies the two."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad_output + 2 * x


class SizeOfXOnly(Square):
    """This loses the sign of x. Left of 0 the parabola falls, so its slope is negative there: use 2
    x, not 2 |x|."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad_output * 2 * x.abs()

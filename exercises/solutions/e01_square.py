"""Square: y = x^2, elementwise.

Derivation. dy/dx = 2 x, and y_i depends on x_i alone. By the chain rule

    dL/dx_i = dL/dy_i dy_i/dx_i = grad_output_i 2 x_i
"""

import torch
from torch import Tensor

HINT = "What is the slope of x^2 at x = 3? Multiply grad_output by the slope at each x."


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
        return [(torch.tensor([-1.5, 0.5, 3.0]),), (torch.randn(5, 3),)]


class SameSlopeEverywhere(Square):
    """The slope of x^2 is not the same at every x: it is flat at 0 and steep far out."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        return 2 * grad_output


class ForwardOnceMore(Square):
    """This multiplies by the value x^2. Backward needs its slope: how fast the value changes."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad_output * x**2

"""Product: z = x y, elementwise.

Derivation. Hold y and move x: dz/dx = y. Hold x and move y: dz/dy = x. So

    dL/dx = grad_output y        dL/dy = grad_output x
"""

import torch
from torch import Tensor

HINT = "Hold y still and move x a little: how fast does x y change? Then the other way round."


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, Tensor]:
        x, y = ctx.saved_tensors
        return grad_output * y, grad_output * x

    @staticmethod
    def sample_inputs() -> list[tuple]:
        return [(torch.randn(5, 3), torch.randn(5, 3))]


class ForwardOnceMore(Product):
    """This multiplies by the value x y. Each gradient needs the slope in its own direction."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, Tensor]:
        x, y = ctx.saved_tensors
        return grad_output * x * y, grad_output * x * y

"""Product: z = x y, elementwise.

Derivation. Hold y and move x: dz/dx = y. Hold x and move y: dz/dy = x. So

    dL/dx = grad_output y        dL/dy = grad_output x
"""

import torch
from torch import Tensor

HINTS = (
    "Hold y still and move x a little: how fast does x y change? Then hold x and move y.",
    "`return grad_output * ..., grad_output * ...`. The gradient of x comes first.",
)


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
        return [
            (torch.randn(5, 3), torch.randn(5, 3)),
            (torch.tensor([0.0, 2.0, 0.0]), torch.tensor([3.0, 0.0, 0.0])),
            (torch.tensor([[2.0]]), torch.tensor([[-1.5]])),
        ]


class ValueInsteadOfSlope(Product):
    """This multiplies by the value x y. Each gradient needs the slope in its own direction: y for
    x, and x for y."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, Tensor]:
        x, y = ctx.saved_tensors
        return grad_output * x * y, grad_output * x * y


class DividedByTheInput(Product):
    """This computes the slope as x y / x, which is 0 / 0 = nan at x = 0. The slope is y itself: no
    division is needed."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, Tensor]:
        x, y = ctx.saved_tensors
        return grad_output * (x * y) / x, grad_output * (x * y) / y


class YForBoth(Product):
    """Both gradients are multiplied by y. That is right for x; where y moves, the slope of z
    is x."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, Tensor]:
        _, y = ctx.saved_tensors
        return grad_output * y, grad_output * y


class XForBoth(Product):
    """Both gradients are multiplied by x. That is right for y; where x moves, the slope of z
    is y."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, Tensor]:
        x, _ = ctx.saved_tensors
        return grad_output * x, grad_output * x


class GradientOfASum(Product):
    """Both gradients are grad_output itself, which is right for x + y. In a product the slope for
    one input is the other input: multiply by it."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, Tensor]:
        return grad_output, grad_output

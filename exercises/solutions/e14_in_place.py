"""InPlace: y = x where x > 0, else x / 10, written over x (a leaky ReLU).

Derivation. The slope is 1 where x > 0, else 0.1:

    dL/dx = grad_output where x > 0, else grad_output / 10

x is gone, but y has its sign: x > 0 exactly where y > 0. So saving y is enough, and y costs no
memory, which is why one works in place.
"""

import torch
from torch import Tensor

HINT = (
    "Forward: first mark_dirty, then write over x, then save it; what is saved is y. Backward has "
    "to know where the old x was positive. What does y say about that?"
)


class InPlace(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        ctx.mark_dirty(x)
        x.mul_(torch.where(x > 0, 1.0, 0.1))
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return grad_output * torch.where(y > 0, 1.0, 0.1).to(grad_output)

    @staticmethod
    def sample_inputs() -> list[tuple]:
        return [(torch.tensor([[-2.0, -0.5, 0.7], [1.5, -1.0, 3.0]]),)]


class SlopeForgotten(InPlace):
    """The gradient passes as it is everywhere. For negative numbers y moves only a tenth as fast as
    x."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        return grad_output


class StopsBelowZero(InPlace):
    """This is the backward of a plain ReLU: it stops the gradient for negative numbers. A tenth is
    to pass there."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return grad_output * (y > 0)


class WrongWayRound(InPlace):
    """The two slopes are exchanged: 1 belongs to the positive numbers, a tenth to the others."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return grad_output * torch.where(y > 0, 0.1, 1.0).to(grad_output)

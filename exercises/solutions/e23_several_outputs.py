"""ClampAndRest: x clamped to [-1, 1], the rest x - clamped, and on which side x was cut.

Derivation. Inside [-1, 1], clamped = x and rest = 0: the slopes are 1 and 0. Outside, clamped is
constant and rest = x -+ 1: the slopes are 0 and 1. The loss depends on x through both, so the two
contributions add up:

    dL/dx = grad_clamped inside [-1, 1], grad_rest outside

side is an integer and jumps; it has no derivative. Backward gets a grad_side all the same, full of
zeros, and ignores it.
"""

import torch
from torch import Tensor

HINTS = (
    "For x inside [-1, 1]: how fast do clamped and rest change with x? And outside? The gradients "
    "that arrive through the two outputs add up.",
    "`inside = side == 0`, a mask.",
)


class ClampAndRest(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        clamped = x.clamp(-1, 1)
        side = (x > 1).long() - (x < -1).long()
        ctx.save_for_backward(side)
        ctx.mark_non_differentiable(side)
        return clamped, x - clamped, side

    @staticmethod
    def backward(ctx, grad_clamped: Tensor, grad_rest: Tensor, grad_side: Tensor) -> Tensor:
        (side,) = ctx.saved_tensors
        inside = side == 0
        return grad_clamped * inside + grad_rest * ~inside

    @staticmethod
    def sample_inputs() -> list[tuple]:
        return [
            (torch.tensor([[-2.0, -0.5, 0.0], [0.75, 1.5, 3.0]]),),
            (torch.tensor([[100.0]]),),
        ]


class RestForgotten(ClampAndRest):
    """This uses grad_clamped alone. Outside [-1, 1] x affects the loss through rest: add grad_rest
    there."""

    @staticmethod
    def backward(ctx, grad_clamped: Tensor, grad_rest: Tensor, grad_side: Tensor) -> Tensor:
        (side,) = ctx.saved_tensors
        return grad_clamped * (side == 0)


class ClampedForgotten(ClampAndRest):
    """This uses grad_rest alone. Inside [-1, 1] x affects the loss through clamped: add
    grad_clamped there."""

    @staticmethod
    def backward(ctx, grad_clamped: Tensor, grad_rest: Tensor, grad_side: Tensor) -> Tensor:
        (side,) = ctx.saved_tensors
        return grad_rest * (side != 0)


class NoMask(ClampAndRest):
    """This adds both gradients everywhere. Inside [-1, 1] only clamped changes with x, outside only
    rest: use the mask side == 0."""

    @staticmethod
    def backward(ctx, grad_clamped: Tensor, grad_rest: Tensor, grad_side: Tensor) -> Tensor:
        return grad_clamped + grad_rest


class Exchanged(ClampAndRest):
    """The two gradients are exchanged: grad_clamped counts inside [-1, 1], and grad_rest
    outside."""

    @staticmethod
    def backward(ctx, grad_clamped: Tensor, grad_rest: Tensor, grad_side: Tensor) -> Tensor:
        (side,) = ctx.saved_tensors
        return torch.where(side == 0, grad_rest, grad_clamped)


class SideAsFactor(ClampAndRest):
    """This multiplies grad_rest by side, which is -1 below -1. But rest = x + 1 there, and its
    slope is 1: use the mask side != 0."""

    @staticmethod
    def backward(ctx, grad_clamped: Tensor, grad_rest: Tensor, grad_side: Tensor) -> Tensor:
        (side,) = ctx.saved_tensors
        return grad_clamped * (side == 0) + grad_rest * side

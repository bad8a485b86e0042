"""InPlace: y = x where x > 0, else x / 10, computed in place (a leaky ReLU).

Derivation. The slope is 1 where x > 0, else 0.1:

    dL/dx = grad_output where x > 0, else grad_output / 10

The old x is gone, but y has the same sign: x > 0 exactly where y > 0. So saving y is enough, and
that costs no memory, which is the reason to work in place.
"""

import torch
from torch import Tensor

HINTS = (
    "Backward has to know where the old x was positive. What does y tell you about that?",
    "`ctx.mark_dirty(x)` in forward. Then overwrite x and call `ctx.save_for_backward(x)`, which "
    "now saves y. In backward, `(y,) = ctx.saved_tensors`.",
)


class InPlace(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        ctx.mark_dirty(x)
        x.copy_(torch.where(x > 0, x, x / 10))
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return torch.where(y > 0, grad_output, grad_output / 10)

    @staticmethod
    def sample_inputs() -> list[tuple]:
        return [
            (torch.tensor([[-2.0, -0.5, 0.7], [1.5, -1.0, 3.0]]),),
            (torch.tensor([[-100.0]]),),
        ]


class SlopeForgotten(InPlace):
    """This returns grad_output unchanged everywhere. For negative x, y changes only a tenth as fast
    as x: divide by 10 there."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        return grad_output


class StopsBelowZero(InPlace):
    """This is the backward of a plain ReLU: it stops the gradient for negative x. A tenth must pass
    there."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return grad_output * (y > 0)


class SlopesExchanged(InPlace):
    """The two slopes are exchanged: 1 belongs to the positive x, a tenth to the negative ones."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return torch.where(y > 0, grad_output / 10, grad_output)


class HundredthForTenth(InPlace):
    """For negative x this multiplies by 0.01, the usual slope of a leaky ReLU. Forward divides by
    10 here, so the slope is 0.1."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return torch.where(y > 0, grad_output, grad_output / 100)


class ForwardUndone(InPlace):
    """For negative x this multiplies by 10, as if backward had to undo forward. Backward needs the
    slope of forward: divide by 10."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return torch.where(y > 0, grad_output, grad_output * 10)


class MaskFromGradOutput(InPlace):
    """This makes the mask from grad_output: it divides the negative gradients by 10. What decides
    is the sign of x, which is that of y."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        return torch.where(grad_output > 0, grad_output, grad_output / 10)

"""ReLU: y = max(x, 0), elementwise.

Derivation. For x > 0, y = x and the slope is 1; for x < 0, y = 0 and the slope is 0:

    dL/dx = grad_output where x > 0, else 0

At 0 the slope is 0 from the left and 1 from the right. This answer takes 0, as `torch.relu` does;
1 is as right.
"""

import torch
from torch import Tensor

HINT = "Draw it. Where the drawing is flat, x can move and the loss does not notice."


class ReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.clamp(min=0)

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad_output * (x > 0)

    @staticmethod
    def sample_inputs() -> list[tuple]:
        return [(torch.tensor([[-2.0, -0.5, 0.7], [1.5, -1.0, 3.0]]),)]


class MaskWrongWayRound(ReLU):
    """The mask is the wrong way round: the gradient passes where x is negative, and stops where
    it is positive."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad_output * (x < 0)


class MaskOfGradOutput(ReLU):
    """The mask is made from grad_output, but what decides is where x was negative. A gradient may
    well be negative."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        return grad_output.clamp(min=0)


class ForwardOnceMore(ReLU):
    """This multiplies by the value of y. The slope of y is needed: how fast it changes with x."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad_output * x.clamp(min=0)

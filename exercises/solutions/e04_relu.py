"""ReLU: y = max(x, 0), elementwise.

Derivation. For x > 0, y = x and the slope is 1; for x < 0, y = 0 and the slope is 0:

    dL/dx = grad_output where x > 0, else 0

At 0 the slope is 0 from the left and 1 from the right. This answer takes 0, as `torch.relu` does;
1 is just as right.
"""

import torch
from torch import Tensor

HINTS = (
    "Draw it. Where the drawing is flat, x can move and the loss does not notice.",
    "`return grad_output * (...)`, with a condition on x that is True where y rises.",
)


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
        return [
            (torch.tensor([[-2.0, -0.5, 0.7], [1.5, -1.0, 3.0]]),),
            (torch.tensor([[100.0]]),),
        ]


class NoMask(ReLU):
    """The gradient passes everywhere, also where x is negative. Forward is flat there, so the slope
    is 0: let the gradient pass only where x is positive."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        return grad_output.clone()


class MaskInverted(ReLU):
    """The mask is inverted: the gradient passes where x is negative, and stops where x is positive.
    Turn the comparison around."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad_output * (x < 0)


class MaskFromGradOutput(ReLU):
    """The mask is made from grad_output, so negative gradients are lost. A gradient may well be
    negative; what decides is where x is positive."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        return grad_output.clamp(min=0)


class ValueInsteadOfSlope(ReLU):
    """This multiplies by the value of y. Backward needs the slope of y: how fast y changes with x,
    which is 0 or 1."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad_output * x.clamp(min=0)


class SignForMask(ReLU):
    """This multiplies by -1 where x is negative. Forward is flat there, so the slope is 0, not
    -1."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad_output * x.sign()


class LeakyMask(ReLU):
    """Where x is negative, a hundredth of the gradient passes, as in a leaky ReLU. This forward is
    flat there: let nothing pass."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad_output * ((x > 0) + 0.01 * (x < 0))

"""Network: y = max(x w1, 0) w2, a two-layer network in one Function.

Derivation. From the last line of forward to the first. With G = grad_output, exercise 11 gives

    dL/dw2 = active^T G        dL/dactive = G w2^T

exercise 4 takes the gradient through the maximum,

    dL/dhidden = dL/dactive where hidden >= 0, else 0

and exercise 11 once more:

    dL/dw1 = x^T dL/dhidden    dL/dx = dL/dhidden w1^T

This is what autograd does too: one backward for each operation, in the reverse order.
"""

import torch
from torch import Tensor

HINTS = (
    "Start at the end, y = active w2: exercise 11 gives dL/dw2 and dL/dactive. The second one is "
    "the grad_output of the line before, a ReLU, and so on.",
    "`grad_active = grad_output.mm(w2.t())`, then `grad_hidden = grad_active * (...)`, with the "
    "mask of exercise 4, made from hidden.",
)


class Network(torch.autograd.Function):
    asks_for = ("needs_input_grad",)

    @staticmethod
    def forward(ctx, x: Tensor, w1: Tensor, w2: Tensor) -> Tensor:
        ctx.save_for_backward(x, w1, w2)
        hidden = x.mm(w1)
        active = hidden.clamp(min=0)
        return active.mm(w2)

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        x, w1, w2 = ctx.saved_tensors
        hidden = x.mm(w1)
        active = hidden.clamp(min=0)
        grad_active = grad_output.mm(w2.t())
        grad_hidden = grad_active * (hidden >= 0)
        grad_x = grad_hidden.mm(w1.t()) if ctx.needs_input_grad[0] else None
        return grad_x, x.t().mm(grad_hidden), active.t().mm(grad_output)

    @staticmethod
    def sample_inputs() -> list[tuple]:
        return [
            (torch.randn(3, 3), torch.randn(3, 3), torch.randn(3, 3)),
            (torch.randn(4, 2), torch.randn(2, 5), torch.randn(5, 3)),
            (torch.zeros(1, 1), torch.ones(1, 2), torch.ones(2, 1)),
        ]


def _gradients(
    ctx, grad_hidden: Tensor, active: Tensor, grad_output: Tensor
) -> tuple[Tensor | None, Tensor, Tensor]:
    x, w1, _ = ctx.saved_tensors
    grad_x = grad_hidden.mm(w1.t()) if ctx.needs_input_grad[0] else None
    return grad_x, x.t().mm(grad_hidden), active.t().mm(grad_output)


class NoMask(Network):
    """The gradient passes the ReLU everywhere. Where hidden is negative, active is 0 and does not
    change: multiply the gradient by a mask made from hidden."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        x, w1, w2 = ctx.saved_tensors
        return _gradients(ctx, grad_output.mm(w2.t()), x.mm(w1).clamp(min=0), grad_output)


class MaskFromGradient(Network):
    """The mask is made from the gradient, so its negative elements are lost. What decides is where
    hidden is positive."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        x, w1, w2 = ctx.saved_tensors
        grad_hidden = grad_output.mm(w2.t()).clamp(min=0)
        return _gradients(ctx, grad_hidden, x.mm(w1).clamp(min=0), grad_output)


class ActiveForMask(Network):
    """The gradient that passes the ReLU is multiplied by active, the value. Multiply it by the
    slope of the ReLU instead, a mask: 1 where hidden is positive, else 0."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        x, w1, w2 = ctx.saved_tensors
        active = x.mm(w1).clamp(min=0)
        return _gradients(ctx, grad_output.mm(w2.t()) * active, active, grad_output)


class HiddenForActive(Network):
    """The gradient of w2 is made from hidden. Forward multiplied w2 by active, the output of the
    ReLU: use active."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        x, w1, w2 = ctx.saved_tensors
        hidden = x.mm(w1)
        return _gradients(ctx, grad_output.mm(w2.t()) * (hidden >= 0), hidden, grad_output)


class W2NotTransposed(Network):
    """In the gradient of active, w2 is not transposed. The shapes fit only where w2 is square: use
    grad_output.mm(w2.t())."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        x, w1, w2 = ctx.saved_tensors
        hidden = x.mm(w1)
        grad_hidden = grad_output.mm(w2) * (hidden >= 0)
        return _gradients(ctx, grad_hidden, hidden.clamp(min=0), grad_output)


class GradientOfXForgotten(Network):
    """The gradients of w1 and w2 are right, but that of x is always None. Where
    ctx.needs_input_grad[0] is True, return the gradient of hidden times the transpose of w1."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        x, w1, w2 = ctx.saved_tensors
        hidden = x.mm(w1)
        grad_hidden = grad_output.mm(w2.t()) * (hidden >= 0)
        return None, x.t().mm(grad_hidden), hidden.clamp(min=0).t().mm(grad_output)

"""SqrtReciprocalSquare: z = sqrt(x) + 1/x + 2 y^2.

    dz/dx = 1 / (2 sqrt(x)) - 1 / x^2        dz/dy = 4 y

Both are 0 at the minimum, x = 2^(2/3) and y = 0, where z = 1.88988.
"""

from __future__ import annotations

import torch


class SqrtReciprocalSquare(torch.autograd.Function):
    """A function of two tensors, elementwise, with one gradient for each.

    Args:
        x: (*), any shape, floating point, positive.
        y: (*), shape and dtype of x.

    Returns:
        (*), the dtype of x; NaN where x is negative, as with `torch.sqrt`.

    Saved: `x` and `y`. backward recomputes the square root and the reciprocal, because a second
    derivative would treat values stored on ctx as constants.

    Differentiable for x > 0, to every order.

    Source: calculus; a first example with two inputs.

    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> y = torch.tensor(2.0, requires_grad=True)
    >>> z = SqrtReciprocalSquare.apply(x, y)
    >>> round(z.item(), 4)
    10.0654
    >>> z.backward(retain_graph=True)
    >>> round(x.grad.item(), 4), y.grad.item()
    (0.1776, 8.0)
    >>> x.grad = y.grad = None
    >>> z.backward(gradient=torch.tensor(2.5))
    >>> round(x.grad.item(), 4), y.grad.item()
    (0.4439, 20.0)
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x.sqrt() + 1 / x + 2 * y**2

    @staticmethod
    def setup_context(ctx, inputs: tuple, output: torch.Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad_output: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x, y = ctx.saved_tensors
        return grad_output * (0.5 / x.sqrt() - 1 / x**2), grad_output * 4 * y

    @staticmethod
    def sample_inputs() -> list[tuple]:
        return [(torch.rand(2, 3) + 0.5, torch.randn(2, 3))]

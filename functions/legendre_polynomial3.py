"""LegendrePolynomial3: P3(x) = (5 x^3 - 3 x) / 2, the third Legendre polynomial.

dP3/dx = 3 (5 x^2 - 1) / 2
"""

from __future__ import annotations

import torch


class LegendrePolynomial3(torch.autograd.Function):
    """The third Legendre polynomial, elementwise.

    Args:
        input: (*), any shape, floating point.

    Returns:
        (*), the dtype of input.

    Saved: `input`, from which backward computes the derivative.

    Differentiable everywhere, to every order.

    Source: "PyTorch: Defining new autograd functions", today's edition of the PyTorch tutorial
    "Learning PyTorch with Examples". It fits a + b P3(c + d x) to sin(x), and so does
    `python train.py experiment=sine`.

    >>> x = torch.tensor([-1.0, 0.0, 2.0], requires_grad=True)
    >>> y = LegendrePolynomial3.apply(x)
    >>> y.tolist()
    [-1.0, 0.0, 17.0]
    >>> y.sum().backward()
    >>> x.grad.tolist()
    [6.0, -1.5, 28.5]
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(input: torch.Tensor) -> torch.Tensor:
        return 0.5 * (5 * input**3 - 3 * input)

    @staticmethod
    def setup_context(ctx, inputs: tuple, output: torch.Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad_output: torch.Tensor) -> torch.Tensor:
        (input,) = ctx.saved_tensors
        return grad_output * 1.5 * (5 * input**2 - 1)

    @staticmethod
    def sample_inputs() -> list[tuple]:
        return [(torch.tensor([[-1.5, -0.4, 0.0], [0.3, 0.9, 2.0]]),)]

"""Template: y = x^3; derivative 3 x^2. Copy this file and replace the formula."""

from __future__ import annotations

import torch


class Template(torch.autograd.Function):
    """The cube, elementwise.

    Args:
        input: (*), any shape, floating point.

    Returns:
        (*), the dtype of input.

    Saved: `input`, from which backward computes the derivative.

    Differentiable everywhere, to every order.

    Source: where your formula comes from.

    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> y = Template.apply(x)
    >>> y.tolist()
    [1.0, 8.0]
    >>> y.sum().backward()
    >>> x.grad.tolist()
    [3.0, 12.0]
    """

    # PyTorch generates the rule for torch.func.vmap from the methods below. That works if they use
    # only PyTorch operations and do not branch on values.
    generate_vmap_rule = True

    @staticmethod
    def forward(input: torch.Tensor) -> torch.Tensor:
        return input**3

    @staticmethod
    def setup_context(ctx, inputs: tuple, output: torch.Tensor) -> None:
        # Save input and output tensors with save_for_backward; store anything else on ctx.
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad_output: torch.Tensor) -> torch.Tensor:
        # Return one gradient for each input of forward, and None for an input that needs none.
        (input,) = ctx.saved_tensors
        return grad_output * 3 * input**2

    # For check.py: a list of argument tuples at which the formula is defined and smooth. Without
    # this method it tries random numbers of a few shapes.
    @staticmethod
    def sample_inputs() -> list[tuple]:
        return [(torch.randn(2, 3),)]

"""BorrowedGradient: y = f(x), with the derivative of another function g in place of f's.

    dy/dx = g'(x), on purpose

Use it for an f whose own derivative is useless, such as a step function, a table or rounding.
"""

from __future__ import annotations

from collections.abc import Callable

import torch


class BorrowedGradient(torch.autograd.Function):
    """Any callable, with the gradient of another.

    Args:
        function: tensor -> tensor; forward computes it.
        stand_in: tensor -> tensor of the same shape, made of PyTorch operations; backward
            returns its gradient.
        input: (*), any shape, floating point.

    Returns:
        (*), `function(input)`.

    Saved: `input`. `stand_in` is stored on ctx directly, like anything that is not a tensor.

    Differentiable, to every order, where `stand_in` is; `function` need not be. Whether the two
    derivatives are close enough is up to the caller.

    Source: surrogate gradients; Neftci, Mostafa, Zenke, "Surrogate Gradient Learning in Spiking
    Neural Networks", 2019 (arXiv:1901.09948).

    >>> x = torch.tensor([-1.0, 0.25], requires_grad=True)
    >>> y = BorrowedGradient.apply(torch.sign, torch.tanh, x)
    >>> y.tolist()
    [-1.0, 1.0]
    >>> y.sum().backward()
    >>> [round(slope, 4) for slope in x.grad.tolist()]
    [0.42, 0.94]
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(
        function: Callable[[torch.Tensor], torch.Tensor],
        stand_in: Callable[[torch.Tensor], torch.Tensor],
        input: torch.Tensor,
    ) -> torch.Tensor:
        return function(input)

    @staticmethod
    def setup_context(ctx, inputs: tuple, output: torch.Tensor) -> None:
        _, ctx.stand_in, input = inputs
        ctx.save_for_backward(input)

    @staticmethod
    def backward(ctx, grad_output: torch.Tensor) -> tuple[None, None, torch.Tensor]:
        (input,) = ctx.saved_tensors
        backward_of_stand_in = torch.func.vjp(ctx.stand_in, input)[1]
        return None, None, *backward_of_stand_in(grad_output)

    @staticmethod
    def surrogate(function, stand_in, input: torch.Tensor) -> torch.Tensor:
        return stand_in(input)

    @staticmethod
    def sample_inputs() -> list[tuple]:
        return [(torch.sign, torch.tanh, torch.tensor([[-2.0, -0.5, 0.25], [0.75, -0.1, 3.0]]))]

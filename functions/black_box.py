"""BlackBox: y = f(x) for any elementwise Python callable f; the gradient is estimated.

    dy/dx = (f(x + h) - f(x - h)) / 2h, the central difference

The step h is the cube root of the machine epsilon (6e-6 in float64, 5e-3 in float32), multiplied by
|x| where |x| > 1. With this step the rounding error and the truncation error are about equal.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.autograd.function import once_differentiable


class BlackBox(torch.autograd.Function):
    """Any callable, with an estimated gradient.

    Args:
        function: tensor -> tensor of the same shape, elementwise. It may use anything inside:
            NumPy, a table, a compiled library. forward calls it once, backward twice.
        input: (*), any shape, floating point.

    Returns:
        (*), `function(input)`.

    Saved: `input`. `function` is stored on ctx directly, like anything that is not a tensor.

    Differentiable where `function` is; closer than h to a kink the estimate is wrong. PyTorch can't
    see into the callable, so a second derivative would silently be zero; `once_differentiable`
    raises an error instead.

    Source: central differences, as in `torch.autograd.gradcheck`.

    >>> x = torch.tensor([0.0, 1.0], dtype=torch.float64, requires_grad=True)
    >>> y = BlackBox.apply(torch.sin, x)
    >>> y.sum().backward()
    >>> [round(slope, 6) for slope in x.grad.tolist()]
    [1.0, 0.540302]
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(function: Callable[[torch.Tensor], torch.Tensor], input: torch.Tensor):
        return function(input)

    @staticmethod
    def setup_context(ctx, inputs: tuple, output: torch.Tensor) -> None:
        ctx.function, input = inputs
        ctx.save_for_backward(input)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output: torch.Tensor) -> tuple[None, torch.Tensor]:
        (input,) = ctx.saved_tensors
        h = torch.finfo(input.dtype).eps ** (1 / 3) * input.abs().clamp(min=1)
        slope = (ctx.function(input + h) - ctx.function(input - h)) / (2 * h)
        return None, grad_output * slope

    @staticmethod
    def sample_inputs() -> list[tuple]:
        return [(torch.tanh, torch.tensor([[-2.0, -0.5, 0.1], [0.75, 1.5, 3.0]]))]

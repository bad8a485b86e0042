"""SumSqrt: z = the sum over all elements of sqrt(x^2 - 1), for |x| > 1.

dz/dx = x / sqrt(x^2 - 1)
"""

from __future__ import annotations

import torch


class SumSqrt(torch.autograd.Function):
    """A sum over all elements, so that the gradient of one number is spread over a whole tensor.

    Args:
        input: (*), any shape, floating point, every element outside [-1, 1].

    Returns:
        (), the dtype of input.

    Raises:
        ValueError: an element of input lies in [-1, 1] or is NaN. Under `torch.compile`,
            which allows no branch on values, the result is NaN instead.

    Saved: `input`.

    Differentiable for |x| > 1, to every order. It does not work under `torch.func.vmap`, which
    forbids the branch on values that checks the domain.

    Source: calculus; a first example of a reduction.

    >>> x = torch.tensor([2.0, 3.0, 4.0], requires_grad=True)
    >>> z = SumSqrt.apply(x)
    >>> round(z.item(), 4)
    8.4335
    >>> z.backward()
    >>> [round(slope, 4) for slope in x.grad.tolist()]
    [1.1547, 1.0607, 1.0328]
    >>> SumSqrt.apply(torch.tensor([2.0, 0.5]))
    Traceback (most recent call last):
    ValueError: SumSqrt: sqrt(x^2 - 1) needs |x| > 1 everywhere; got x = 0.5
    """

    @staticmethod
    def forward(input: torch.Tensor) -> torch.Tensor:
        if not torch.compiler.is_compiling():
            outside = input[~(input.abs() > 1)]
            if outside.numel():
                raise ValueError(
                    "SumSqrt: sqrt(x^2 - 1) needs |x| > 1 everywhere; "
                    f"got x = {outside[0].item():.6g}"
                )
        return (input**2 - 1).sqrt().sum()

    @staticmethod
    def setup_context(ctx, inputs: tuple, output: torch.Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad_output: torch.Tensor) -> torch.Tensor:
        (input,) = ctx.saved_tensors
        return grad_output * input / (input**2 - 1).sqrt()

    @staticmethod
    def sample_inputs() -> list[tuple]:
        return [(torch.tensor([2.0, 3.0, 4.0]),), (torch.tensor([[-1.5, 1.5], [-6.0, 2.5]]),)]

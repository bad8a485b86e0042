"""SignSTE: forward sign(x), with a straight-through estimate in place of its derivative.

The derivative of sign is 0 wherever it exists, so the layers before it would not learn. backward
uses the derivative of clamp(x, -1, 1) instead: it passes the gradient where |x| <= 1 and stops it
elsewhere, where a small change of x does not change the sign.
"""

from __future__ import annotations

import torch


class SignSTE(torch.autograd.Function):
    """The sign, elementwise, with a surrogate gradient.

    Args:
        input: (*), any shape, floating point.

    Returns:
        (*), the dtype of input: -1, 0 or 1.

    Saved: `input`, because backward must know where |x| <= 1.

    Not differentiable at 0; the derivative is 0 everywhere else. The surrogate has kinks at -1 and
    1, where backward passes the gradient on.

    Source: Bengio, Leonard, Courville, "Estimating or Propagating Gradients Through Stochastic
    Neurons for Conditional Computation", 2013 (arXiv:1308.3432); clipped as in Hubara et al.,
    "Binarized Neural Networks", 2016.

    >>> x = torch.tensor([-3.0, -0.5, 0.25, 2.0], requires_grad=True)
    >>> y = SignSTE.apply(x)
    >>> y.tolist()
    [-1.0, -1.0, 1.0, 1.0]
    >>> y.sum().backward()
    >>> x.grad.tolist()
    [0.0, 1.0, 1.0, 0.0]
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(input: torch.Tensor) -> torch.Tensor:
        return input.sign()

    @staticmethod
    def setup_context(ctx, inputs: tuple, output: torch.Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad_output: torch.Tensor) -> torch.Tensor:
        (input,) = ctx.saved_tensors
        return grad_output.masked_fill(input.abs() > 1, 0)

    @staticmethod
    def surrogate(input: torch.Tensor) -> torch.Tensor:
        return input.clamp(-1, 1)

    @staticmethod
    def sample_inputs() -> list[tuple]:
        return [(torch.tensor([[-2.0, -0.5, 0.25], [0.75, -0.1, 3.0]]),)]

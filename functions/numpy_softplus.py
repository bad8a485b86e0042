"""NumpySoftplus: log(1 + exp(x)), computed by NumPy; derivative 1 / (1 + exp(-x)).

PyTorch can't see into NumPy, so the derivative is written by hand.
"""

from __future__ import annotations

import numpy as np
import torch
from torch.autograd.function import once_differentiable


class NumpySoftplus(torch.autograd.Function):
    """Softplus, elementwise, computed outside PyTorch.

    Args:
        input: (*), any shape, floating point, on any device.

    Returns:
        (*), the dtype and device of input. NumPy computes on the CPU in float64, so the
        data is copied there and back.

    Saved: `input`.

    Differentiable everywhere, once. backward uses NumPy too, so a second derivative would silently
    be zero; `once_differentiable` raises an error instead. This Function does not work under
    `torch.func`, whose tensors have no NumPy array.

    Source: Dugas et al., "Incorporating Second-Order Functional Knowledge for Better Option
    Pricing", 2001.

    >>> x = torch.tensor([-1.0, 0.0, 2.0], requires_grad=True)
    >>> y = NumpySoftplus.apply(x)
    >>> [round(value, 4) for value in y.tolist()]
    [0.3133, 0.6931, 2.1269]
    >>> y.sum().backward()
    >>> [round(slope, 4) for slope in x.grad.tolist()]
    [0.2689, 0.5, 0.8808]
    """

    @staticmethod
    def forward(input: torch.Tensor) -> torch.Tensor:
        array = input.detach().cpu().double().numpy()
        return torch.as_tensor(np.logaddexp(0, array), dtype=input.dtype, device=input.device)

    @staticmethod
    def setup_context(ctx, inputs: tuple, output: torch.Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output: torch.Tensor) -> torch.Tensor:
        (input,) = ctx.saved_tensors
        array = input.detach().cpu().double().numpy()
        # exp(-softplus(-x)) is 1 / (1 + exp(-x)), and never overflows.
        slope = np.exp(-np.logaddexp(0, -array))
        return grad_output * torch.as_tensor(slope, dtype=input.dtype, device=input.device)

    @staticmethod
    def sample_inputs() -> list[tuple]:
        return [(torch.tensor([[-3.0, -0.5, 0.0], [1.0, 2.5, 20.0]]),)]

"""NumpySort: y_ij = x_i,order_ij.

Derivation. Place j of a row is filled by the element at order_j, with slope 1, and by no other:

    dL/dx at order_j = grad_output_j

So each number of grad_output goes back to where its element came from. `scatter` does that: it
writes the j-th number to the place order_j. The permutation does not change under small moves of
x, so there is nothing else to differentiate.
"""

import numpy as np
import torch
from torch import Tensor

HINT = (
    "For [30, 10, 20], order is [1, 2, 0]. To which place of x does the first number of "
    "grad_output belong? `scatter` writes to places, `gather` reads from them."
)


class NumpySort(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        array = x.detach().cpu().numpy()
        order = np.argsort(array, axis=1)
        ctx.order = torch.from_numpy(order).to(x.device)
        return torch.from_numpy(np.take_along_axis(array, order, axis=1)).to(x)

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        return torch.zeros_like(grad_output).scatter(1, ctx.order, grad_output)

    @staticmethod
    def sample_inputs() -> list[tuple]:
        return [(torch.tensor([[3.0, -1.0, 2.0, 0.5], [-2.0, 4.0, 1.0, -0.5]]),)]


class NotMovedAtAll(NumpySort):
    """grad_output is in the order of y, the sorted one. Its numbers must go back to where the
    elements of x came from."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        return grad_output


class SortedOnceMore(NumpySort):
    """This moves the gradients the way forward moved x. They must go the way back, which undoes it.
    The two are the same only for an exchange of two."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        return grad_output.gather(1, ctx.order)


class SortsGradOutput(NumpySort):
    """This sorts grad_output by its own size. The order that counts is that of x, on ctx.order."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        return grad_output.sort(dim=1).values

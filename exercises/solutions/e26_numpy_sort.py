"""NumpySort: y[i, j] = x[i, order[i, j]].

Derivation. y[i, j] is a copy of one element of x, with slope 1, and of no other:

    dL/dx[i, order[i, j]] = grad_output[i, j]

So each number of grad_output goes back to where its element came from. `scatter` does that: it
writes number j of a row to the place order[i, j]. The order does not change if x moves a little, so
there is nothing else to differentiate.
"""

import numpy as np
import torch
from torch import Tensor

HINTS = (
    "For [30, 10, 20], order is [1, 2, 0]. To which place of x does the first number of "
    "grad_output belong?",
    "`grad = torch.zeros_like(grad_output)`. Its method `scatter(1, order, values)` writes values "
    "to the places in order; `gather` would read from them.",
)


class NumpySort(torch.autograd.Function):
    asks_for = ("once_differentiable",)

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
        return [
            (torch.tensor([[3.0, -1.0, 2.0, 0.5], [-2.0, 4.0, 1.0, -0.5]]),),
            (torch.tensor([[30.0, 0.0, 20.0]]),),
            (torch.tensor([[1.0], [-1.0]]),),
        ]


class NotMovedBack(NumpySort):
    """grad_output is in the order of y, the sorted one, and this leaves it there. Move its numbers
    back to where the elements of x came from."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        return grad_output


class GatherForScatter(NumpySort):
    """This reorders grad_output in the same way as forward reordered x. Backward must undo that:
    write to the places in order (`scatter`) instead of reading from them (`gather`). The two agree
    only where the permutation is its own inverse."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        return grad_output.gather(1, ctx.order)


class SortsGradOutput(NumpySort):
    """This sorts grad_output by its own size. What counts is the order of x: use ctx.order."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        return grad_output.sort(dim=1).values


class LargestFirst(NumpySort):
    """This moves the numbers back as if the largest came first. Forward sorts the smallest first:
    use ctx.order as it is."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        return torch.zeros_like(grad_output).scatter(1, ctx.order.flip(1), grad_output)

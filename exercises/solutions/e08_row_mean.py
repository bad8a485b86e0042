"""RowMean: y_i = the mean over j of x_ij.

Derivation. y_i is the sum of row i divided by D, so each slope is that of exercise 7 divided by D:

    dL/dx_ij = grad_output_i / D, the same for all j
"""

import torch
from torch import Tensor

HINTS = (
    "If x_ij grows by 1, by how much does the mean of its row grow? The rest is exercise 7.",
    "`return grad_output.unsqueeze(1).expand(ctx.shape) / ...`, with the number of elements in a "
    "row in place of the dots.",
)


class RowMean(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        ctx.shape = x.shape
        return x.mean(dim=1)

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        return grad_output.unsqueeze(1).expand(ctx.shape) / ctx.shape[1]

    @staticmethod
    def sample_inputs() -> list[tuple]:
        return [(torch.randn(3, 3),), (torch.randn(2, 5),), (torch.randn(4, 1),)]


class SumForMean(RowMean):
    """This is the gradient of a sum. In a mean each of the D elements counts only 1/D: divide by
    ctx.shape[1]."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        return grad_output.unsqueeze(1).expand(ctx.shape)


class DividedByTheRows(RowMean):
    """This divides by N, the number of rows. The mean runs over the D elements within a row: divide
    by ctx.shape[1]."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        return grad_output.unsqueeze(1).expand(ctx.shape) / ctx.shape[0]


class DividedByAllElements(RowMean):
    """This divides by N times D, the number of all elements. The mean runs over the D elements
    within a row: divide by ctx.shape[1]."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        return grad_output.unsqueeze(1).expand(ctx.shape) / ctx.shape.numel()


class MultipliedByTheColumns(RowMean):
    """This multiplies by D, as if backward had to undo the division of forward. The slope of a mean
    is 1/D: divide by ctx.shape[1]."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        return grad_output.unsqueeze(1).expand(ctx.shape) * ctx.shape[1]


class MeanOfGradOutput(RowMean):
    """Every element gets the mean of grad_output. But x_ij is part of the mean of its own row only:
    give it grad_output_i / D."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        return grad_output.mean().expand(ctx.shape)


class AlongTheColumns(RowMean):
    """Each number of grad_output belongs to a row of x; here it goes to a column. Turn grad_output
    into a column, (N, 1), first."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        return grad_output.expand(ctx.shape) / ctx.shape[1]

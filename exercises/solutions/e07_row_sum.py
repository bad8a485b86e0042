"""RowSum: y_i = the sum over j of x_ij.

Derivation. Each x_ij is part of one sum, with slope 1: dy_i/dx_ij = 1. So

    dL/dx_ij = grad_output_i, the same for all j

The number of each row is repeated along the row. `expand` repeats it without copying.
"""

import torch
from torch import Tensor

HINTS = (
    "If x_ij grows by 1, which of the sums grow, and by how much? Give every element of x the "
    "gradient of its row's sum.",
    "`column = grad_output.unsqueeze(1)`, of shape (N, 1). Repeat it along the rows: `expand` "
    "does that.",
)


class RowSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        ctx.shape = x.shape
        return x.sum(dim=1)

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        return grad_output.unsqueeze(1).expand(ctx.shape)

    @staticmethod
    def sample_inputs() -> list[tuple]:
        return [(torch.randn(3, 3),), (torch.randn(2, 5),), (torch.randn(4, 1),)]


class AlongTheColumns(RowSum):
    """Each number of grad_output belongs to a row of x; here it goes to a column. Broadcasting
    lines up the last dimensions, so turn grad_output into a column, (N, 1), first."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        return grad_output.expand(ctx.shape)


class SumOfAllRows(RowSum):
    """Every element gets the sum of grad_output over all rows. But x_ij is part of the sum of its
    own row only: give it grad_output_i."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        return grad_output.sum().expand(ctx.shape)


class MeanForSum(RowSum):
    """This divides by the number of columns, which is right for a mean. In a sum each element
    counts fully: its slope is 1."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        return grad_output.unsqueeze(1).expand(ctx.shape) / ctx.shape[1]


class FirstColumnOnly(RowSum):
    """Only the first element of each row gets a gradient. All elements of a row are in its sum,
    each with slope 1."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        grad = grad_output.new_zeros(ctx.shape)
        grad[:, 0] = grad_output
        return grad


class RepeatedInTheWrongOrder(RowSum):
    """`repeat` writes the whole of grad_output again and again, so its numbers end up in other
    rows. Use `grad_output.unsqueeze(1).expand(ctx.shape)`, or `repeat_interleave`."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        return grad_output.repeat(ctx.shape[1]).reshape(ctx.shape)

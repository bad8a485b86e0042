"""CenterRows: y_i = x_i - mean, within each row of D numbers.

Derivation. Moving x_j moves y_j directly, and every y_i of the row through the mean, by -1/D:

    dy_i/dx_j = (1 if i = j, else 0) - 1/D

Multiplied by g_i = grad_output_i and summed over i:

    dL/dx_j = g_j - mean(g)

Backward is the same operation as forward: it centers the rows of grad_output.
"""

import torch
from torch import Tensor

HINTS = (
    "x_j affects its own y_j with slope 1, and every y_i of the row through the mean, with slope "
    "-1/D. Multiply each by grad_output_i and add them up.",
    "`return grad_output - ...`, with one number per row in place of the dots. keepdim=True keeps "
    "these numbers a column.",
)


class CenterRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        return x - x.mean(dim=1, keepdim=True)

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        return grad_output - grad_output.mean(dim=1, keepdim=True)

    @staticmethod
    def sample_inputs() -> list[tuple]:
        return [
            (torch.randn(3, 3),),
            (torch.randn(3, 4),),
            (torch.tensor([[0.0, 0.0], [1000.0, 1000.5]]),),
            (torch.tensor([[2.0], [-1.0]]),),
        ]


class MeanHeldConstant(CenterRows):
    """This treats the mean as a constant. It is computed from x: if x_j grows, the mean grows, and
    every y of the row shrinks. Subtract the gradient that goes through the mean."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        return grad_output


class DiagonalOnly(CenterRows):
    """This counts only how x_j affects its own y_j. Through the mean it affects every y_i of the
    row: subtract the mean of grad_output over the row."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        return grad_output * (1 - 1 / grad_output.shape[1])


class SumForMean(CenterRows):
    """This subtracts the sum of grad_output over the row. x_j is only 1/D of the mean, so divide
    the sum by D: subtract the mean."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        return grad_output - grad_output.sum(dim=1, keepdim=True)


class DividedTwice(CenterRows):
    """This divides the mean by D once more. A mean is already the sum divided by D: subtract it as
    it is."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        mean = grad_output.mean(dim=1, keepdim=True)
        return grad_output - mean / grad_output.shape[1]


class MeanLostItsDimension(CenterRows):
    """The means have shape (N,), and broadcasting lines that up with the columns, so each row gets
    the means of other rows. Keep a column, (N, 1), with keepdim=True."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        return grad_output - grad_output.mean(dim=1)


class PlusSign(CenterRows):
    """The gradient that goes through the mean is added. Forward subtracts the mean, so backward
    subtracts this gradient too."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        return grad_output + grad_output.mean(dim=1, keepdim=True)


class MeanOverTheRows(CenterRows):
    """The mean runs over the wrong dimension. It must stay within a row, so take it over dim 1."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        return grad_output - grad_output.mean(dim=0, keepdim=True)


class MeanOfEverything(CenterRows):
    """The mean runs over the whole tensor. Each row has a mean of its own: take it over dim 1, with
    keepdim=True."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        return grad_output - grad_output.mean()

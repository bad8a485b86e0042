"""AddBias: y_ij = x_ij + b_j.

Derivation. dy_ij/dx_ij = 1, so dL/dx = grad_output. b_j stands in every row of column j, each time
with slope 1, and the contributions of all places where a number is used add up:

    dL/db_j = the sum over i of grad_output_ij

What forward repeats, backward sums.
"""

import torch
from torch import Tensor

HINT = "If b_j grows by 1, which elements of y grow? The contributions of all of them add up."


class AddBias(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, b: Tensor) -> Tensor:
        return x + b

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, Tensor]:
        return grad_output, grad_output.sum(dim=0)

    @staticmethod
    def sample_inputs() -> list[tuple]:
        return [(torch.randn(3, 3), torch.randn(3)), (torch.randn(5, 3), torch.randn(3))]


class SumOverColumns(AddBias):
    """The sum runs over the wrong dimension: b has one number a column, so the rows are summed
    away, not the columns."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, Tensor]:
        return grad_output, grad_output.sum(dim=1)


class OneRowAlone(AddBias):
    """Only one row of grad_output is counted, but b was added to every row."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, Tensor]:
        return grad_output, grad_output[0]

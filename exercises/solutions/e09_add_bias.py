"""AddBias: y_ij = x_ij + b_j.

Derivation. dy_ij/dx_ij = 1, so dL/dx = grad_output. b_j is added in every row of column j, each
time with slope 1, and the contributions of all places where a number is used add up:

    dL/db_j = the sum over i of grad_output_ij

What forward repeats, backward sums.
"""

import torch
from torch import Tensor

HINTS = (
    "If b_j grows by 1, which elements of y grow? The contributions of all of them add up.",
    "`return grad_output, grad_output.sum(...)`, with the dimension to sum over in place of the "
    "dots.",
)


class AddBias(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, b: Tensor) -> Tensor:
        return x + b

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, Tensor]:
        return grad_output, grad_output.sum(dim=0)

    @staticmethod
    def sample_inputs() -> list[tuple]:
        return [
            (torch.randn(3, 3), torch.randn(3)),
            (torch.randn(5, 3), torch.randn(3)),
            (torch.randn(1, 4), torch.randn(4)),
            (torch.randn(3, 1), torch.randn(1)),
        ]


class SumOverTheColumns(AddBias):
    """This sums over the columns, dim 1. b has one number per column, so sum over the rows, dim
    0."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, Tensor]:
        return grad_output, grad_output.sum(dim=1)


class FirstRowOnly(AddBias):
    """Only the first row of grad_output counts here. b was added to every row: sum over all of
    them."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, Tensor]:
        return grad_output, grad_output[0]


class MeanOverTheRows(AddBias):
    """This averages over the rows. b was added to every row, and the contributions of all rows add
    up: use the sum."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, Tensor]:
        return grad_output, grad_output.mean(dim=0)


class SumOfEverything(AddBias):
    """Each b_j gets the sum of the whole grad_output. b_j was added in column j only: sum each
    column by itself, over dim 0."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, Tensor]:
        return grad_output, grad_output.sum().expand(grad_output.shape[1])


class GradientOfAProduct(AddBias):
    """The gradients of x and b are those of a product. In a sum each slope is 1: return grad_output
    for x, and its sum over the rows for b."""

    @staticmethod
    def forward(ctx, x: Tensor, b: Tensor) -> Tensor:
        ctx.save_for_backward(x, b)
        return x + b

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, Tensor]:
        x, b = ctx.saved_tensors
        return grad_output * b, (grad_output * x).sum(dim=0)

"""RowSum: y_i = the sum over j of x_ij.

Derivation. Each x_ij stands in one sum, with slope 1: dy_i/dx_ij = 1. So

    dL/dx_ij = grad_output_i, the same for all j

The number of each row is repeated along the row. `expand` repeats it without copying.
"""

import torch
from torch import Tensor

HINT = "If x_ij grows by 1, which sums grow, and by how much? Give each element its row's number."


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
        return [(torch.randn(3, 3),), (torch.randn(2, 5),)]


class AlongTheColumns(RowSum):
    """Each number of grad_output belongs to a row of x; here it is given to a column. Broadcasting
    lines up the last dimensions, so make grad_output a column, (N, 1), first."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        return grad_output.expand(ctx.shape)

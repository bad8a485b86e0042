"""LayerNorm: y_i = (x_i - m) / s, with m the mean of a row and s = sqrt(variance + 1e-5).

Derivation. For one row of D numbers, c_i = x_i - m:

    dc_i/dx_j = (1 if i = j, else 0) - 1/D
    ds/dx_j = [1 / (2 s)] (2/D) c_j = c_j / (D s) = y_j / D
    dy_i/dx_j = (dc_i/dx_j) / s - (c_i / s^2) ds/dx_j
              = [(1 if i = j, else 0) - 1/D - y_i y_j / D] / s

Multiplied by g_i = grad_output_i and summed over i:

    dL/dx_j = [g_j - mean(g) - y_j mean(g y)] / s

A constant added to the row changes nothing, so mean(g) goes; neither does a longer deviation, so
the part along y goes too.
"""

import torch
from torch import Tensor

HINT = (
    "x_j acts on y in three ways: directly, through the mean, and through std. Each gives a term, "
    "all over std. The last two hold means over the row: of grad_output, and of grad_output * y."
)


class LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        std = (x.var(dim=1, keepdim=True, correction=0) + 1e-5).sqrt()
        return (x - x.mean(dim=1, keepdim=True)) / std

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        std = (x.var(dim=1, keepdim=True, correction=0) + 1e-5).sqrt()
        y = (x - x.mean(dim=1, keepdim=True)) / std
        through_mean = grad_output.mean(dim=1, keepdim=True)
        through_std = y * (grad_output * y).mean(dim=1, keepdim=True)
        return (grad_output - through_mean - through_std) / std

    @staticmethod
    def sample_inputs() -> list[tuple]:
        return [(torch.randn(3, 4),)]


def _parts(ctx) -> tuple[Tensor, Tensor]:
    (x,) = ctx.saved_tensors
    std = (x.var(dim=1, keepdim=True, correction=0) + 1e-5).sqrt()
    return (x - x.mean(dim=1, keepdim=True)) / std, std


class DirectWayAlone(LayerNorm):
    """Mean and std are taken for constants here. Both are made of x: if x_j moves, they move, and
    the whole row with them."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        _, std = _parts(ctx)
        return grad_output / std


class StdHeldConstant(LayerNorm):
    """The way through the mean is there, but std is taken for a constant. It is made of x, too."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        _, std = _parts(ctx)
        return (grad_output - grad_output.mean(dim=1, keepdim=True)) / std


class MeanHeldConstant(LayerNorm):
    """The way through std is there, but the mean is taken for a constant. It is made of x, too."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        y, std = _parts(ctx)
        return (grad_output - y * (grad_output * y).mean(dim=1, keepdim=True)) / std


class SumsForMeans(LayerNorm):
    """The three ways are there, with sums where means belong: x_j is only one D-th of the mean of
    its row, and of the variance."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        y, std = _parts(ctx)
        through_mean = grad_output.sum(dim=1, keepdim=True)
        return (grad_output - through_mean - y * (grad_output * y).sum(dim=1, keepdim=True)) / std


class MeansOverTheRows(LayerNorm):
    """The means run over the wrong dimension: mean and std belong to a row, so dim 1."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        y, std = _parts(ctx)
        through_mean = grad_output.mean(dim=0, keepdim=True)
        return (grad_output - through_mean - y * (grad_output * y).mean(dim=0, keepdim=True)) / std

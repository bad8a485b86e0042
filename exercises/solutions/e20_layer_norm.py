"""LayerNorm: y_i = (x_i - m) / s, with m the mean of a row and s = sqrt(variance + 1e-5).

Derivation. For one row of D numbers, with c_i = x_i - m as in exercise 19:

    dc_i/dx_j = (1 if i = j, else 0) - 1/D
    ds/dx_j = [1 / (2 s)] (2/D) c_j = c_j / (D s) = y_j / D
    dy_i/dx_j = (dc_i/dx_j) / s - (c_i / s^2) ds/dx_j
              = [(1 if i = j, else 0) - 1/D - y_i y_j / D] / s

Multiplied by g_i = grad_output_i and summed over i:

    dL/dx_j = [g_j - mean(g) - y_j mean(g y)] / s

A constant added to the whole row doesn't change y, so mean(g) is removed. A row stretched about its
mean doesn't change y either (but for the 1e-5), so the part along y is removed too.
"""

import torch
from torch import Tensor

HINTS = (
    "x_j affects y in three ways: directly, through the mean, and through std. Each gives a term, "
    "and all are divided by std. The last two contain means over the row: of grad_output, and of "
    "grad_output * y.",
    "`through_mean = grad_output.mean(dim=1, keepdim=True)`, as in exercise 19. The term through "
    "std is y times a mean.",
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
        tiny_spread = torch.tensor([[2.0, 2.0, 2.0], [0.999, 1.0, 1.002], [100.0, 101.0, 98.0]])
        return [(torch.randn(3, 4),), (tiny_spread,), (torch.tensor([[3.0], [0.0]]),)]


def _mean(tensor: Tensor) -> Tensor:
    return tensor.mean(dim=1, keepdim=True)


def _parts(ctx, correction: int = 0, eps: float = 1e-5) -> tuple[Tensor, Tensor]:
    """y and std, the variance divided by D - correction. (x.var warns where that is 0.)"""
    (x,) = ctx.saved_tensors
    centered = x - _mean(x)
    variance = (centered**2).sum(dim=1, keepdim=True) / (x.shape[1] - correction)
    std = (variance + eps).sqrt()
    return centered / std, std


class MeanAndStdHeldConstant(LayerNorm):
    """This treats mean and std as constants. Both are computed from x: if x_j moves, they move, and
    the whole row with them. Subtract the gradients that go through them."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        _, std = _parts(ctx)
        return grad_output / std


class StdHeldConstant(LayerNorm):
    """The gradient through the mean is there, but std is treated as a constant. It is computed from
    x too: subtract the gradient that goes through it."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        _, std = _parts(ctx)
        return (grad_output - _mean(grad_output)) / std


class MeanHeldConstant(LayerNorm):
    """The gradient through std is there, but the mean is treated as a constant. It is computed from
    x too: subtract the mean of grad_output over the row."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        y, std = _parts(ctx)
        return (grad_output - y * _mean(grad_output * y)) / std


class SumsForMeans(LayerNorm):
    """All three terms are there, but with sums in place of means. x_j is only 1/D of the mean of
    its row, and of the variance: use means."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        y, std = _parts(ctx)
        through_mean = grad_output.sum(dim=1, keepdim=True)
        return (grad_output - through_mean - y * (grad_output * y).sum(dim=1, keepdim=True)) / std


class MeansOverTheRows(LayerNorm):
    """The means run over the wrong dimension. Mean and std belong to a row, so take the means over
    dim 1."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        y, std = _parts(ctx)
        through_mean = grad_output.mean(dim=0, keepdim=True)
        return (grad_output - through_mean - y * (grad_output * y).mean(dim=0, keepdim=True)) / std


class PlusSign(LayerNorm):
    """The gradient through std is added. If std grows, y shrinks: subtract it."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        y, std = _parts(ctx)
        return (grad_output - _mean(grad_output) + y * _mean(grad_output * y)) / std


class DivisionForgotten(LayerNorm):
    """The three terms are right, but forward divides by std, so each of them must be divided by std
    as well."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        y, _ = _parts(ctx)
        return grad_output - _mean(grad_output) - y * _mean(grad_output * y)


class FactorForgotten(LayerNorm):
    """The gradient through std lacks a factor y: ds/dx_j is y_j / D, so the term is y *
    mean(grad_output * y)."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        y, std = _parts(ctx)
        return (grad_output - _mean(grad_output) - _mean(grad_output * y)) / std


class DividedByOneLess(LayerNorm):
    """This computes std with D - 1, the default of `x.var` and `x.std`. Forward divides by D: use
    correction=0, or the std that is already there."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        y, std = _parts(ctx, correction=1)
        return (grad_output - _mean(grad_output) - y * _mean(grad_output * y)) / std


class EpsForgotten(LayerNorm):
    """This computes std without the 1e-5, so in a row of equal numbers it divides by 0. Use the std
    of forward, with the 1e-5."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        y, std = _parts(ctx, eps=0)
        return (grad_output - _mean(grad_output) - y * _mean(grad_output * y)) / std

"""BatchNorm: y = weight normal + bias, with normal = (x - mean) / std over the rows of each column.

Derivation. weight and bias are used in every row, so their gradients are sums over the rows:

    dL/dbias_j = the sum over i of g_ij        dL/dweight_j = the sum over i of g_ij normal_ij

with g = grad_output. The gradient that arrives at normal is h = g weight. From there on it is
exercise 20, with columns in the place of rows:

    dL/dx = [h - mean(h) - normal mean(h normal)] / std, with means over the rows
"""

import torch
from torch import Tensor

HINTS = (
    "Go backward through the two formulas. The second one gives the gradients of weight, of bias, "
    "and of normal. From normal to x it is exercise 20, over the rows instead of within a row.",
    "`grad_normal = grad_output * weight`. Go on with its mean over dim 0.",
)


class BatchNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        std = (x.var(dim=0, correction=0) + 1e-5).sqrt()
        normal = (x - x.mean(dim=0)) / std
        return weight * normal + bias

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x, weight = ctx.saved_tensors
        std = (x.var(dim=0, correction=0) + 1e-5).sqrt()
        normal = (x - x.mean(dim=0)) / std
        grad_normal = grad_output * weight
        through_mean = grad_normal.mean(dim=0)
        through_std = normal * (grad_normal * normal).mean(dim=0)
        grad_x = (grad_normal - through_mean - through_std) / std
        return grad_x, (grad_output * normal).sum(dim=0), grad_output.sum(dim=0)

    @staticmethod
    def sample_inputs() -> list[tuple]:
        equal_numbers = torch.tensor([[2.0, 0.999], [2.0, 1.0], [2.0, 1.002]])
        return [
            (torch.randn(4, 3), torch.randn(3), torch.randn(3)),
            (equal_numbers, torch.tensor([1.5, -0.5]), torch.zeros(2)),
            (torch.randn(3, 2), torch.tensor([0.0, 2.0]), torch.randn(2)),
            (torch.randn(1, 2), torch.randn(2), torch.randn(2)),
        ]


def _answer(ctx, grad_output: Tensor, grad_normal: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """The right gradients, for this gradient of normal and means over this dimension."""
    std, normal = _parts(ctx)
    through_mean = grad_normal.mean(dim=dim, keepdim=True)
    through_std = normal * (grad_normal * normal).mean(dim=dim, keepdim=True)
    grad_x = (grad_normal - through_mean - through_std) / std
    return grad_x, (grad_output * normal).sum(dim=0), grad_output.sum(dim=0)


def _parts(ctx) -> tuple[Tensor, Tensor]:
    x, _ = ctx.saved_tensors
    std = (x.var(dim=0, correction=0) + 1e-5).sqrt()
    return std, (x - x.mean(dim=0)) / std


class WeightForgotten(BatchNorm):
    """The gradient of x lacks the factor weight. Forward multiplies normal by weight, so the
    gradient that arrives at normal is grad_output * weight."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, ...]:
        return _answer(ctx, grad_output, grad_output)


class MeanAndStdHeldConstant(BatchNorm):
    """In the gradient of x, mean and std are treated as constants. Both are computed from x:
    subtract the gradients that go through them, as in exercise 20."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, ...]:
        _, weight = ctx.saved_tensors
        std, normal = _parts(ctx)
        grad_x = grad_output * weight / std
        return grad_x, (grad_output * normal).sum(dim=0), grad_output.sum(dim=0)


class StdHeldConstant(BatchNorm):
    """In the gradient of x, std is treated as a constant. It is computed from x too: subtract the
    gradient that goes through it, as in exercise 20."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, ...]:
        _, weight = ctx.saved_tensors
        std, normal = _parts(ctx)
        grad_normal = grad_output * weight
        grad_x = (grad_normal - grad_normal.mean(dim=0)) / std
        return grad_x, (grad_output * normal).sum(dim=0), grad_output.sum(dim=0)


class SumsForMeans(BatchNorm):
    """In the gradient of x there are sums in place of means. x_ij is only 1/N of the mean of its
    column, and of the variance: use means."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, ...]:
        _, weight = ctx.saved_tensors
        std, normal = _parts(ctx)
        grad_normal = grad_output * weight
        through_std = normal * (grad_normal * normal).sum(dim=0)
        grad_x = (grad_normal - grad_normal.sum(dim=0) - through_std) / std
        return grad_x, (grad_output * normal).sum(dim=0), grad_output.sum(dim=0)


class DivisionForgotten(BatchNorm):
    """The three terms of the gradient of x are right, but forward divides by std, so each of them
    must be divided by std as well."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, ...]:
        _, weight = ctx.saved_tensors
        std, _ = _parts(ctx)
        grad_x, grad_weight, grad_bias = _answer(ctx, grad_output, grad_output * weight)
        return grad_x * std, grad_weight, grad_bias


class MeansWithinARow(BatchNorm):
    """The means run within a row, as in exercise 20. Here mean and std belong to a column, so take
    the means over dim 0."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, ...]:
        _, weight = ctx.saved_tensors
        return _answer(ctx, grad_output, grad_output * weight, dim=1)


class ParametersAveraged(BatchNorm):
    """The gradients of weight and bias are averaged over the rows. Both were used in every row, and
    the contributions of all rows add up: use sums."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, ...]:
        _, weight = ctx.saved_tensors
        grad_x, grad_weight, grad_bias = _answer(ctx, grad_output, grad_output * weight)
        return grad_x, grad_weight / len(grad_output), grad_bias / len(grad_output)


class XForNormal(BatchNorm):
    """The gradient of weight is made from x. Forward multiplies weight by normal: use normal."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, ...]:
        x, weight = ctx.saved_tensors
        grad_x, _, grad_bias = _answer(ctx, grad_output, grad_output * weight)
        return grad_x, (grad_output * x).sum(dim=0), grad_bias

"""Softmax: y_i = exp(x_i) / the sum over j of exp(x_j), within each row.

Derivation. With S = the sum of the exp, y_i = exp(x_i) / S. Moving x_j moves S by exp(x_j), and
the numerator too if j = i:

    dy_i/dx_j = y_i (1 if i = j, else 0) - y_i y_j

which is the Jacobian J = diag(y) - y y^T. With g = grad_output, backward is

    dL/dx_j = the sum over i of g_i dy_i/dx_j = y_j g_j - y_j (the sum over i of g_i y_i)

so dL/dx = y (g - sum(g y)): one number per row, and no D x D matrix.
"""

import torch
from torch import Tensor

HINTS = (
    "Write down dy_i/dx_j for i = j and for i different from j. Multiply by grad_output_i and sum "
    "over i: one part is elementwise, the other needs one sum for each row.",
    "`total = (grad_output * y).sum(dim=1, keepdim=True)`, one number per row. The result is y "
    "times a difference.",
)


class Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        # Subtracting the largest x doesn't change the result; it keeps exp from overflowing.
        shifted = x - x.amax(dim=1, keepdim=True)
        y = shifted.exp() / shifted.exp().sum(dim=1, keepdim=True)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return y * (grad_output - (grad_output * y).sum(dim=1, keepdim=True))

    @staticmethod
    def sample_inputs() -> list[tuple]:
        hard = torch.tensor([[1000.0, 998.5, 999.7], [0.0, 0.0, 0.0]])
        return [
            (torch.randn(3, 3),),
            (torch.randn(2, 4),),
            (hard,),
            (torch.tensor([[2.0], [0.0]]),),
        ]


class DiagonalOnly(Softmax):
    """This uses only the diagonal of the Jacobian, as if each y_i depended on its own x_i alone.
    But the numbers of a row add up to 1: if one grows, the others shrink. Add the terms for i !=
    j."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return grad_output * y * (1 - y)


class NumeratorOnly(Softmax):
    """This is the slope of the numerator alone, as if the sum below it did not change. But every
    x_j of a row is part of that sum: subtract the term that comes from it."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return grad_output * y


class PlusSign(Softmax):
    """The term that comes from the sum in the denominator is added. If the denominator grows, y
    shrinks: subtract it."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return y * (grad_output + (grad_output * y).sum(dim=1, keepdim=True))


class MeanForSum(Softmax):
    """This subtracts the mean of grad_output * y over the row. The derivation gives a sum over i:
    use the sum."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return y * (grad_output - (grad_output * y).mean(dim=1, keepdim=True))


class FactorForgotten(Softmax):
    """The difference is right, but the factor y in front of it is missing: both terms of dy_i/dx_j
    contain the factor y_j."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return grad_output - (grad_output * y).sum(dim=1, keepdim=True)


class GradientOfCrossEntropy(Softmax):
    """This subtracts grad_output from y. That looks like the gradient of softmax and cross-entropy
    together, with a target; here there is only the softmax, and grad_output must be a factor."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return y - grad_output


class SumOverTheRows(Softmax):
    """The sum runs over the wrong dimension. It must stay within a row, so sum over dim 1."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return y * (grad_output - (grad_output * y).sum(dim=0, keepdim=True))


class SumOverEverything(Softmax):
    """The sum runs over the whole tensor, so each row also gets the sums of the others. It must
    stay within a row: sum over dim 1, with keepdim=True."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return y * (grad_output - (grad_output * y).sum())


class SumLostItsDimension(Softmax):
    """The sums have shape (N,), and broadcasting lines that up with the columns, so each row gets
    the sums of other rows. Keep a column, (N, 1), with keepdim=True."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return y * (grad_output - (grad_output * y).sum(dim=1))


class SumNotWeighted(Softmax):
    """This subtracts the plain sum of grad_output. In the sum over i each grad_output_i has a
    factor of its own, from dy_i/dx_j: it is y_i."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return y * (grad_output - grad_output.sum(dim=1, keepdim=True))

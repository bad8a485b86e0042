"""Softmax: y_i = exp(x_i) / the sum over j of exp(x_j), within each row.

Derivation. With S = the sum of the exp, y_i = exp(x_i) / S. Moving x_j moves S by exp(x_j), and
the numerator too if j = i:

    dy_i/dx_j = y_i (1 if i = j, else 0) - y_i y_j

which is the Jacobian J = diag(y) - y y^T. With g = grad_output, backward is

    dL/dx_j = the sum over i of g_i dy_i/dx_j = y_j g_j - y_j (the sum over i of g_i y_i)

so dL/dx = y (g - sum(g y)): one number a row, and no D x D matrix.
"""

import torch
from torch import Tensor

HINT = (
    "Write down dy_i/dx_j for i = j and for i different from j. Multiply by grad_output_i and sum "
    "over i: one part is elementwise, the other needs one sum for each row."
)


class Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        shifted = x - x.amax(dim=1, keepdim=True)  # changes nothing but that exp can't overflow
        y = shifted.exp() / shifted.exp().sum(dim=1, keepdim=True)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return y * (grad_output - (grad_output * y).sum(dim=1, keepdim=True))

    @staticmethod
    def sample_inputs() -> list[tuple]:
        return [(torch.randn(3, 3),), (torch.randn(2, 4),)]


class DiagonalAlone(Softmax):
    """This is the diagonal of the Jacobian alone, as if each y_i depended on its own x_i only. But
    the numbers of a row add up to 1: if one grows, the others shrink."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return grad_output * y * (1 - y)


class NumeratorAlone(Softmax):
    """This is the slope of the numerator alone, as if the sum under it did not move. But every x_j
    of a row stands in that sum."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return grad_output * y


class SumOverTheRows(Softmax):
    """The sum runs over the wrong dimension: it is to stay within a row, so it goes over dim 1."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return y * (grad_output - (grad_output * y).sum(dim=0, keepdim=True))


class SumOverEverything(Softmax):
    """The sum runs over the whole tensor, so each row gets a share of the others. It is to stay
    within a row."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return y * (grad_output - (grad_output * y).sum())


class SumLostItsDimension(Softmax):
    """The sum of each row is taken from a column: it has shape (N,), and broadcasting lines that up
    with the columns. Keep it a column, (N, 1), with keepdim=True."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return y * (grad_output - (grad_output * y).sum(dim=1))


class SumNotWeighted(Softmax):
    """What is subtracted is the plain sum of grad_output. In the sum over i each grad_output_i
    comes with a factor of its own, from dy_i/dx_j."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return y * (grad_output - grad_output.sum(dim=1, keepdim=True))

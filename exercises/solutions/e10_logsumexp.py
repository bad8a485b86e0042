"""LogSumExp: y_i = log of the sum over j of exp(x_ij).

Derivation. With S_i the sum, dy_i/dx_ij = exp(x_ij) / S_i, the softmax of row i. Since
S_i = exp(y_i), that is

    dL/dx_ij = grad_output_i exp(x_ij - y_i)

y_i is at least as large as each x_ij, so the exponent is never positive, and never overflows.
"""

import torch
from torch import Tensor

HINT = (
    "Differentiate log(S), then S. You will meet a function of exercise 9. Then put S = exp(y) and "
    "make one exp of the quotient."
)


class LogSumExp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        y = torch.logsumexp(x, dim=1)
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        x, y = ctx.saved_tensors
        return grad_output.unsqueeze(1) * (x - y.unsqueeze(1)).exp()

    @staticmethod
    def sample_inputs() -> list[tuple]:
        large = torch.tensor([[1000.0, 998.5, 999.7], [-1000.0, -1001.0, -999.5]])
        return [(torch.randn(3, 3),), (large,)]


class Overflows(LogSumExp):
    """The formula is right, but exp(1000) is inf, and inf / inf is nan. Never take exp of x alone:
    bring something into the exponent that makes it small."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        x, _ = ctx.saved_tensors
        return grad_output.unsqueeze(1) * x.exp() / x.exp().sum(dim=1, keepdim=True)


class DivisionOverflows(LogSumExp):
    __doc__ = Overflows.__doc__

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        x, y = ctx.saved_tensors
        return grad_output.unsqueeze(1) * x.exp() / y.exp().unsqueeze(1)


class SumOfTheExp(LogSumExp):
    """This is the derivative of the sum of the exp. The logarithm around it has a slope too."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        x, _ = ctx.saved_tensors
        return grad_output.unsqueeze(1) * x.exp()


class AllTheSame(LogSumExp):
    """Each element of a row gets the whole gradient, as in a plain sum. They share it: the large
    ones get most of it."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        x, _ = ctx.saved_tensors
        return grad_output.unsqueeze(1).expand_as(x)


class AlongTheColumns(LogSumExp):
    """Each number of grad_output belongs to a row of x; here it is given to a column. Make it a
    column itself, (N, 1), before you multiply."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        x, y = ctx.saved_tensors
        return grad_output * (x - y.unsqueeze(1)).exp()

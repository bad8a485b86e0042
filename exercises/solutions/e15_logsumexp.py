"""LogSumExp: y_i = log of the sum over j of exp(x_ij).

Derivation. With S_i the sum, y_i = log S_i, so dy_i/dS_i = 1 / S_i and dS_i/dx_ij = exp(x_ij). The
slope is exp(x_ij) / S_i. Since S_i = exp(y_i), that is

    dL/dx_ij = grad_output_i exp(x_ij - y_i)

y_i is at least as large as each x_ij, so the exponent is never positive, and exp never overflows.
These slopes are positive and add up to 1 in each row: they are the softmax of the row, which is
exercise 16.
"""

import torch
from torch import Tensor

HINTS = (
    "Differentiate log(S), then S. Then put S = exp(y), and write the quotient of the two exp as "
    "a single exp, which can't overflow.",
    "`return grad_output.unsqueeze(1) * (x - ...).exp()`. What you subtract must be a column too.",
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
        large = torch.tensor([[1000.0, 998.5, 999.7], [-1000.0, -1001.0, -999.5], [0.0, 0.0, 0.0]])
        return [(torch.randn(3, 3),), (large,), (torch.tensor([[3.0], [0.0]]),)]


class Overflow(LogSumExp):
    """The formula is right, but exp(1000) is inf, and inf / inf is nan. Never take exp of x alone:
    subtract y inside the exp instead of dividing by exp(y)."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        x, _ = ctx.saved_tensors
        return grad_output.unsqueeze(1) * (x.exp() / x.exp().sum(dim=1, keepdim=True))


class OverflowHidden(LogSumExp):
    """exp(1000) is inf, inf / inf is nan, and nan_to_num turns it into 0, which is wrong. Avoid the
    overflow instead: subtract y inside the exp."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        x, _ = ctx.saved_tensors
        return grad_output.unsqueeze(1) * (x.exp() / x.exp().sum(dim=1, keepdim=True)).nan_to_num()


class LogForgotten(LogSumExp):
    """This is the derivative of the sum of the exp. The logarithm around it has a slope too: divide
    by the sum, which is exp(y)."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        x, _ = ctx.saved_tensors
        return grad_output.unsqueeze(1) * x.exp()


class SlopeOfLogOnly(LogSumExp):
    """This is the derivative of the logarithm, 1 / exp(y), alone. The sum inside it has a slope
    too: multiply by exp(x), in a single exp(x - y)."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        x, y = ctx.saved_tensors
        return (grad_output * (-y).exp()).unsqueeze(1).expand_as(x)


class AllTheSame(LogSumExp):
    """Each element of a row gets the whole gradient, as in a plain sum. Here they share it: the
    large ones get most of it."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        x, _ = ctx.saved_tensors
        return grad_output.unsqueeze(1).expand_as(x)


class AlongTheColumns(LogSumExp):
    """Each number of grad_output belongs to a row of x; here it goes to a column. Turn grad_output
    into a column, (N, 1), before you multiply."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        x, y = ctx.saved_tensors
        return grad_output * (x - y.unsqueeze(1)).exp()


class YAlongTheColumns(LogSumExp):
    """x - y lines up y with the columns of x, so each row is shifted by the y of other rows. Turn y
    into a column first: y.unsqueeze(1)."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        x, y = ctx.saved_tensors
        return grad_output.unsqueeze(1) * (x - y).exp()


class SoftmaxOverTheRows(LogSumExp):
    """The shares add up to 1 over each column. They must add up to 1 over each row: normalise over
    dim 1."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        x, _ = ctx.saved_tensors
        return grad_output.unsqueeze(1) * torch.softmax(x, dim=0)

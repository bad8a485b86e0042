"""CrossEntropy: the mean over n of -log y_n,target_n, with y the softmax of each row of x.

Derivation. For one row with target t, log y_t = x_t - logsumexp(x). By exercise 15 the slope of
logsumexp(x) in x_c is y_c. So

    d(-log y_t)/dx_c = y_c - (1 if c = t, else 0)

The loss is the mean of N such rows, and grad_output is a single number:

    dL/dx_nc = grad_output (y_nc - (1 if c = target_n, else 0)) / N
"""

import torch
from torch import Tensor

HINTS = (
    "Write -log y_t as logsumexp(x) - x_t for one row. You know the gradient of both terms. Then "
    "think of the mean over the rows, and of grad_output.",
    "`one_hot = torch.nn.functional.one_hot(target, x.shape[1])`, which is 1 at the right class "
    "of each row, else 0.",
)


class CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, target: Tensor) -> Tensor:
        ctx.save_for_backward(x, target)
        log_y = torch.log_softmax(x, dim=1)
        return -log_y.gather(1, target.unsqueeze(1)).mean()

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, None]:
        x, target = ctx.saved_tensors
        y = torch.softmax(x, dim=1)
        one_hot = torch.nn.functional.one_hot(target, x.shape[1])
        return grad_output * (y - one_hot) / len(x), None

    @staticmethod
    def sample_inputs() -> list[tuple]:
        hard = torch.tensor([[1000.0, 0.0, 998.5], [0.0, 0.0, 0.0]])
        return [
            (torch.randn(3, 4), torch.tensor([2, 0, 2])),
            (hard, torch.tensor([2, 1])),
            (torch.randn(1, 3), torch.tensor([0])),
            (torch.randn(2, 1), torch.tensor([0, 0])),
        ]


def _parts(ctx) -> tuple[Tensor, Tensor]:
    x, target = ctx.saved_tensors
    return torch.softmax(x, dim=1), torch.nn.functional.one_hot(target, x.shape[1])


class NotAveraged(CrossEntropy):
    """This is the gradient of the sum over the rows. The loss is their mean: divide by N, the
    number of rows."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, None]:
        y, one_hot = _parts(ctx)
        return grad_output * (y - one_hot), None


class DividedByAllElements(CrossEntropy):
    """This divides by N times C. The mean runs over the N rows, not over the classes: divide by
    N."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, None]:
        y, one_hot = _parts(ctx)
        return grad_output * (y - one_hot) / y.numel(), None


class GradOutputForgotten(CrossEntropy):
    """This is right only while grad_output is 1. If the loss is scaled or added to another one, it
    is not: multiply by grad_output."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, None]:
        y, one_hot = _parts(ctx)
        return (y - one_hot) / len(y), None


class TargetNotOneHot(CrossEntropy):
    """This subtracts the number of the right class from the whole row. Subtract 1, and only at the
    right class: torch.nn.functional.one_hot makes such a row."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, None]:
        _, target = ctx.saved_tensors
        y, _ = _parts(ctx)
        return grad_output * (y - target.unsqueeze(1)) / len(y), None


class OneSubtractedEverywhere(CrossEntropy):
    """This subtracts 1 at every class. Only the score of the right class is subtracted in the loss:
    subtract 1 at the target of each row."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, None]:
        y, _ = _parts(ctx)
        return grad_output * (y - 1) / len(y), None


class TargetsOfAllRows(CrossEntropy):
    """y[:, target] -= 1 subtracts 1 in every row at the classes of all rows. Each row has one right
    class: write y[torch.arange(N), target] -= 1."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, None]:
        x, target = ctx.saved_tensors
        y = torch.softmax(x, dim=1)
        y[:, target] -= 1
        return grad_output * y / len(y), None


class TargetForgotten(CrossEntropy):
    """This is the gradient of logsumexp(x) alone. The score of the right class is subtracted from
    it, so subtract 1 at the target of each row."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, None]:
        y, _ = _parts(ctx)
        return grad_output * y / len(y), None


class TargetOnly(CrossEntropy):
    """Only the right class of each row gets a gradient, that of -x_t. The term logsumexp(x) depends
    on all scores of the row: add its gradient, the softmax y."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, None]:
        y, one_hot = _parts(ctx)
        return -grad_output * one_hot / len(y), None


class StopsAtTheSoftmax(CrossEntropy):
    """This is the gradient with respect to y, -1 / y at the target. The chain goes on to x:
    multiply by the Jacobian of the softmax, or differentiate logsumexp(x) - x_t directly."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, None]:
        y, one_hot = _parts(ctx)
        return -grad_output * one_hot / y / len(y), None


class OnlyTheTargetColumn(CrossEntropy):
    """Only the right class of each row gets a gradient. A larger score of a wrong class makes the
    loss larger too: the other classes get y."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, None]:
        y, one_hot = _parts(ctx)
        return grad_output * (y - 1) * one_hot / len(y), None

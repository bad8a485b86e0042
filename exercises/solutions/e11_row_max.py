"""RowMax: y_i = the largest x_ij of row i.

Derivation. Move the largest a little, and y follows with slope 1; move another, and y stays:

    dL/dx_ij = grad_output_i where x_ij is the largest of its row, else 0

At a tie there is no derivative. But if all elements of the row grow together by 1, so does y:
their gradients must add up to grad_output_i. n that are the largest get 1/n of it each.
"""

import torch
from torch import Tensor

HINT = "Make a mask of where x is the largest of its row. How many are there in a row?"


class RowMax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        y = x.amax(dim=1)
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        x, y = ctx.saved_tensors
        largest = x == y.unsqueeze(1)
        return grad_output.unsqueeze(1) * largest / largest.sum(dim=1, keepdim=True)

    @staticmethod
    def sample_inputs() -> list[tuple]:
        square = torch.tensor([[-1.0, 0.5, 3.0], [2.0, -0.5, 1.0], [0.25, 1.25, -2.0]])
        return [(square,), (square[:2],)]

    @staticmethod
    def kink_inputs() -> list[tuple]:
        return [(torch.tensor([[2.0, 2.0, 1.0], [3.0, 3.0, 3.0]]),)]


class EachOfATieGetsAll(RowMax):
    """Right where one element is the largest. At a tie each of them gets the whole gradient, which
    hands out more than there is: they are to share it."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        x, y = ctx.saved_tensors
        return grad_output.unsqueeze(1) * (x == y.unsqueeze(1))


class OneOfATieGetsAll(RowMax):
    """Right where one element is the largest. At a tie one of them gets the whole gradient and the
    others nothing, as in `torch.max`. Here they are to share it."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        x, _ = ctx.saved_tensors
        first = x.argmax(dim=1, keepdim=True)
        return torch.zeros_like(x).scatter(1, first, grad_output.unsqueeze(1))


class AlongTheColumns(RowMax):
    """Each number of grad_output belongs to a row of x; here it is given to a column. Make it a
    column itself, (N, 1), before you multiply."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        x, y = ctx.saved_tensors
        largest = x == y.unsqueeze(1)
        return grad_output * largest / largest.sum(dim=1, keepdim=True)

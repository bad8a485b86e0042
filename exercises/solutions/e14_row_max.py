"""RowMax: y_i = the largest x_ij of row i.

Derivation. Move the largest a little, and y follows with slope 1; move another, and y stays:

    dL/dx_ij = grad_output_i where x_ij is the largest of its row, else 0

At a tie the derivative does not exist. But if all elements of the row grow together by 1, so does
y: their gradients must add up to grad_output_i. If n elements are the largest, each gets 1/n of it.
"""

import torch
from torch import Tensor

HINTS = (
    "Make a mask that is True where x is the largest of its row. How many True values does each "
    "row have?",
    "`largest = x == y.unsqueeze(1)`. Here y becomes a column, so that each row of x is compared "
    "with its own y.",
)


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
        near = torch.tensor([[1.0, 1.1, 0.9], [-3.0, -3.1, -2.9]])  # no ties
        return [(square,), (square[:2],), (square[:, :1],), (near,)]

    @staticmethod
    def kink_inputs() -> list[tuple]:
        return [(torch.tensor([[2.0, 2.0, 1.0], [3.0, 3.0, 3.0], [0.0, -1.0, 0.0]]),)]


class TieNotShared(RowMax):
    """This is right where one element is the largest. At a tie each of them gets the whole
    gradient, which is more than there is: divide it by the number of largest elements."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        x, y = ctx.saved_tensors
        return grad_output.unsqueeze(1) * (x == y.unsqueeze(1))


class TieGivenToOne(RowMax):
    """This is right where one element is the largest. At a tie one of them gets the whole gradient
    and the others nothing, as in `torch.max`. Here all of them must share it."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        x, _ = ctx.saved_tensors
        first = x.argmax(dim=1, keepdim=True)
        return torch.zeros_like(x).scatter(1, first, grad_output.unsqueeze(1))


class SharedAmongAllRows(RowMax):
    """This divides by the number of largest elements in all of x. Each row shares only its own
    gradient: count along the row, with sum(dim=1, keepdim=True)."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        x, y = ctx.saved_tensors
        largest = x == y.unsqueeze(1)
        return grad_output.unsqueeze(1) * largest / largest.sum()


class AlongTheColumns(RowMax):
    """Each number of grad_output belongs to a row of x; here it goes to a column. Turn grad_output
    into a column, (N, 1), before you multiply."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        x, y = ctx.saved_tensors
        largest = x == y.unsqueeze(1)
        return grad_output * largest / largest.sum(dim=1, keepdim=True)


class ComparedAlongTheColumns(RowMax):
    """The comparison x == y lines up y with the columns of x, so each element is compared with the
    largest of another row. Turn y into a column first: y.unsqueeze(1)."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        x, y = ctx.saved_tensors
        return grad_output.unsqueeze(1) * (x == y)


class LargestOfAllRows(RowMax):
    """The mask is True only for the largest element of the whole of x. Every row has a largest
    element of its own: compare x with y.unsqueeze(1)."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        x, _ = ctx.saved_tensors
        return grad_output.unsqueeze(1) * (x == x.max())

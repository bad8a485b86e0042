"""Embedding: y_n = row index_n of weight.

Derivation. Row v of weight is copied to each y_n with index_n = v, each time with slope 1. The
contributions of all places where a number is used add up:

    dL/dW_v = the sum of grad_output_n over all n with index_n = v

A row that no index names gets 0. `index_add` adds each row of grad_output to the row that its index
names.
"""

import torch
from torch import Tensor

HINTS = (
    "Each row of grad_output belongs to one row of weight: the one that forward copied. Where an "
    "index occurs twice, two rows of grad_output belong to the same row of weight; they add up.",
    "`grad_weight = grad_output.new_zeros(ctx.shape)`. `index_add` adds rows to the rows that an "
    "index names.",
)


class Embedding(torch.autograd.Function):
    @staticmethod
    def forward(ctx, index: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(index)
        ctx.shape = weight.shape
        return weight[index]

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[None, Tensor]:
        (index,) = ctx.saved_tensors
        return None, grad_output.new_zeros(ctx.shape).index_add(0, index, grad_output)

    @staticmethod
    def sample_inputs() -> list[tuple]:
        return [
            (torch.tensor([1, 3, 1, 0]), torch.randn(4, 3)),
            (torch.tensor([2, 2, 2]), torch.randn(5, 1)),
            (torch.tensor([0]), torch.randn(1, 2)),
        ]


class LastOneWins(Embedding):
    """Where an index occurs several times, this keeps only the last of its rows: both grad[index] =
    ... and grad[index] += ... do that. The rows must add up: use `index_add`."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[None, Tensor]:
        (index,) = ctx.saved_tensors
        grad = grad_output.new_zeros(ctx.shape)
        for n, v in enumerate(index.tolist()):
            grad[v] = grad_output[n]
        return None, grad


class Averaged(Embedding):
    """Where an index occurs several times, this averages its rows. The contributions of all places
    add up: use the sum."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[None, Tensor]:
        (index,) = ctx.saved_tensors
        total = grad_output.new_zeros(ctx.shape).index_add(0, index, grad_output)
        count = torch.bincount(index, minlength=ctx.shape[0]).clamp(min=1)
        return None, total / count.unsqueeze(1)


class IndexIgnored(Embedding):
    """The rows of grad_output are in the order of the batch, and this leaves them there. Add each
    one to the row of weight that its index names."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[None, Tensor]:
        grad = grad_output.new_zeros(ctx.shape)
        grad[: len(grad_output)] = grad_output
        return None, grad


class GradOutputItself(Embedding):
    """This returns grad_output itself, which has a row for each index. The gradient of weight has a
    row for each row of weight: add row n of grad_output to its row index_n."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[None, Tensor]:
        return None, grad_output


class ReadsInsteadOfWrites(Embedding):
    """grad_output[index] reads the rows that index names, as forward does. Backward must write: add
    row n of grad_output to row index_n of the gradient."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[None, Tensor]:
        (index,) = ctx.saved_tensors
        return None, grad_output[index]


class EveryRowGetsAll(Embedding):
    """Every row of weight gets the sum of the whole grad_output. A row was copied only to the
    places whose index names it: add up these."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[None, Tensor]:
        return None, grad_output.sum(dim=0).expand(ctx.shape)

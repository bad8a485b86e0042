"""unbroadcast: sums a gradient down to the shape that its input had before broadcasting.

Derivation. Broadcasting uses each number of the input once for every place along a repeated
dimension, each time with slope 1. As in exercise 9, the contributions of all places add up: sum
over the dimensions that were repeated. A missing dimension disappears in the sum; a dimension of
size 1 stays, with keepdim=True.
"""

import torch
from torch import Tensor

HINTS = (
    "Two kinds of dimensions were repeated: those on the left that `shape` does not have, and "
    "those in which `shape` has size 1. Sum over both; the second kind stays, with size 1.",
    "`while grad_output.dim() > len(shape):`, and under it the sum over the first dimension. Then "
    "go through `enumerate(shape)`.",
)


def unbroadcast(grad_output: Tensor, shape: tuple[int, ...]) -> Tensor:
    while grad_output.dim() > len(shape):
        grad_output = grad_output.sum(dim=0)
    for dim, size in enumerate(shape):
        if size == 1:
            grad_output = grad_output.sum(dim=dim, keepdim=True)
    return grad_output


def sample_inputs() -> list[tuple]:
    return [
        (torch.randn(5, 3), (3,)),
        (torch.randn(3, 3), (3, 3)),
        (torch.randn(3, 3), (3, 1)),
        (torch.randn(5, 3), (1, 3)),
        (torch.randn(2, 4, 3), (4, 1)),
        (torch.randn(2, 3), ()),
        (torch.randn(2, 1, 3), (1, 3)),
        (torch.randn(1, 3), (1, 3)),
    ]


def unbroadcast_without_keepdim(grad_output: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The sum over a dimension of size 1 removes that dimension, so the shape is wrong. Keep it
    with keepdim=True."""
    while grad_output.dim() > len(shape):
        grad_output = grad_output.sum(dim=0)
    ones = [dim for dim, size in enumerate(shape) if size == 1]
    return grad_output.sum(dim=ones) if ones else grad_output


def unbroadcast_missing_dimensions_only(grad_output: Tensor, shape: tuple[int, ...]) -> Tensor:
    """This sums over the dimensions that `shape` does not have, but not over those in which it has
    size 1. Forward repeated the input along these too."""
    while grad_output.dim() > len(shape):
        grad_output = grad_output.sum(dim=0)
    return grad_output


def unbroadcast_ones_only(grad_output: Tensor, shape: tuple[int, ...]) -> Tensor:
    """This sums over the dimensions in which `shape` has size 1, but not over those on the left
    that `shape` does not have. Sum over these first, until the number of dimensions is the same."""
    extra = grad_output.dim() - len(shape)
    for dim, size in enumerate(shape):
        if size == 1:
            grad_output = grad_output.sum(dim=dim + extra, keepdim=True)
    return grad_output


def unbroadcast_averages(grad_output: Tensor, shape: tuple[int, ...]) -> Tensor:
    """This averages over the repeated dimensions. The contributions of all places add up: use the
    sum."""
    total = unbroadcast(grad_output, shape)
    return total * total.numel() / grad_output.numel()


def unbroadcast_takes_the_first(grad_output: Tensor, shape: tuple[int, ...]) -> Tensor:
    """This takes the first place along each repeated dimension and drops the others. All of them
    contribute: sum over the dimension."""
    while grad_output.dim() > len(shape):
        grad_output = grad_output[0]
    for dim, size in enumerate(shape):
        if size == 1:
            grad_output = grad_output.narrow(dim, 0, 1)
    return grad_output


def unbroadcast_sums_over_no_dimension(grad_output: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Where no dimension is missing, this calls sum(dim=()). PyTorch takes an empty dim as all
    dimensions and sums everything: skip the sum if there is nothing to sum over."""
    grad_output = grad_output.sum(dim=tuple(range(grad_output.dim() - len(shape))))
    for dim, size in enumerate(shape):
        if size == 1:
            grad_output = grad_output.sum(dim=dim, keepdim=True)
    return grad_output

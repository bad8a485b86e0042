"""SumOfSquares: y_i = x_1^2 + ... + x_i^2, along the last dimension, for torch.func.

Derivation. dy_i/dx_j = 2 x_j for j <= i, else 0. Backward sums over the outputs, the index i:

    dL/dx_j = 2 x_j (the sum over i >= j of grad_output_i)

which is a cumulative sum from the end: flip, cumsum, flip. jvp sums over the inputs, the index j:

    dy_i/dt = the sum over j <= i of 2 x_j dx_j/dt

which is a cumulative sum from the start, as in forward. Backward multiplies by the transpose of the
Jacobian, jvp by the Jacobian itself.

Forward works along the last dimension and takes any number of dimensions before it. So vmap moves
the batch dimension to the front and calls the Function once.
"""

import torch
from torch import Tensor

HINTS = (
    "x_j affects y_j and every y after it. Backward collects from all these; jvp adds up what all "
    "x_j up to i contribute to y_i. vmap: if the batch dimension comes first, forward is already "
    "right, because it works along the last dimension.",
    "`(x,) = inputs` in setup_context, `(x,) = ctx.saved_tensors` in backward and in jvp, and `x "
    "= x.movedim(in_dims[0], 0)` in vmap. In backward, `flip(-1)` before and after `cumsum(-1)` "
    "sums from the end.",
)


class SumOfSquares(torch.autograd.Function):
    asks_for = ("vmap", "jvp")

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return (x**2).cumsum(dim=-1)

    @staticmethod
    def setup_context(ctx, inputs: tuple, output: Tensor) -> None:
        (x,) = inputs
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return 2 * x * grad_output.flip(-1).cumsum(-1).flip(-1)

    @staticmethod
    def jvp(ctx, x_tangent: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return (2 * x * x_tangent).cumsum(-1)

    @staticmethod
    def vmap(info, in_dims: tuple, x: Tensor) -> tuple[Tensor, int]:
        return SumOfSquares.apply(x.movedim(in_dims[0], 0)), 0

    @staticmethod
    def sample_inputs() -> list[tuple]:
        return [(torch.randn(2, 3),), (torch.tensor([2.0, 0.0, -1.5, 0.5]),), (torch.randn(1),)]


class BackwardWithoutSum(SumOfSquares):
    """Backward counts only how x_j affects its own y_j. Every y after it contains x_j too: add up
    grad_output from j to the end."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return 2 * x * grad_output


class NoSumsAtAll(BackwardWithoutSum):
    """Neither backward nor jvp adds anything up, as if y_i were x_i^2 alone. Backward adds up
    grad_output from j to the end, jvp adds up 2 x x_tangent from the start."""

    @staticmethod
    def jvp(ctx, x_tangent: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return 2 * x * x_tangent


class BackwardFromTheStart(SumOfSquares):
    """Backward adds up grad_output from the start to j. x_j affects y_j and those after it, not
    those before: add up from j to the end."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return 2 * x * grad_output.cumsum(-1)


class JvpWithoutSum(SumOfSquares):
    """backward is right; jvp counts only how x_i affects its own y_i. y_i is a sum over all x up to
    x_i: add up their contributions."""

    @staticmethod
    def jvp(ctx, x_tangent: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return 2 * x * x_tangent


class JvpLikeBackward(SumOfSquares):
    """backward is right; jvp uses the formula of backward. jvp goes from x to y: add up 2 x
    x_tangent from the start, as forward does."""

    @staticmethod
    def jvp(ctx, x_tangent: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return 2 * x * x_tangent.flip(-1).cumsum(-1).flip(-1)


class BatchDimensionNotMoved(SumOfSquares):
    """backward and jvp are right; vmap leaves the batch dimension where it is. If it comes last,
    forward sums along the batch: move it to the front first, with movedim."""

    @staticmethod
    def vmap(info, in_dims: tuple, x: Tensor) -> tuple[Tensor, int]:
        return SumOfSquares.apply(x), in_dims[0]


class WrongOutputDimension(SumOfSquares):
    """backward and jvp are right; vmap moves the batch dimension to the front, but then says that
    it is still at in_dims[0]. Return 0, its position in y."""

    @staticmethod
    def vmap(info, in_dims: tuple, x: Tensor) -> tuple[Tensor, int]:
        return SumOfSquares.apply(x.movedim(in_dims[0], 0)), in_dims[0]

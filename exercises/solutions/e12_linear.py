"""Linear: Y = X W^T + b, the bias optional.

Derivation. This is exercise 11 with W^T in the place of Y, and exercise 9. With G = dL/dY

    dL/dX = G W        dL/dW = (X^T G)^T = G^T X        dL/db = the sum of G over its rows
"""

import torch
from torch import Tensor

HINTS = (
    "The products are those of exercise 11, with the transpose of weight in the place of y. The "
    "sum is that of exercise 9. Compute each of the three only where ctx.needs_input_grad says "
    "so.",
    "`grad_x = grad_weight = grad_bias = None`, then `if ctx.needs_input_grad[0]:`, and under it "
    "the computation of grad_x. Two more of these follow, then a `return` with all three.",
)


class Linear(torch.autograd.Function):
    asks_for = ("needs_input_grad",)

    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        y = x @ weight.t()
        return y if bias is None else y + bias

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        needs_x, needs_weight, needs_bias = ctx.needs_input_grad
        return (
            grad_output @ weight if needs_x else None,
            grad_output.t() @ x if needs_weight else None,
            grad_output.sum(dim=0) if needs_bias else None,
        )

    @staticmethod
    def sample_inputs() -> list[tuple]:
        x, weight, bias = torch.randn(3, 4), torch.randn(5, 4), torch.randn(5)
        square = torch.randn(3, 3), torch.randn(3, 3), torch.randn(3)
        return [square, (x, weight, bias), (x, weight, None), (x[:1], weight[:1], bias[:1])]


class BiasForgotten(Linear):
    """The bias moves every row of Y, but its gradient is always None. Where ctx.needs_input_grad[2]
    is True, return the sum of grad_output over its rows."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        return grad_output @ weight, grad_output.t() @ x, None


class WeightTransposed(Linear):
    """In the gradient of x, weight is transposed. Forward has transposed it already, so backward
    uses it as it is: grad_output @ weight."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        bias = grad_output.sum(dim=0) if ctx.needs_input_grad[2] else None
        return grad_output @ weight.t(), grad_output.t() @ x, bias


class WeightGradientTransposed(Linear):
    """The gradient of weight is transposed. weight is (out_features, in_features), and so is its
    gradient: grad_output.t() @ x."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        bias = grad_output.sum(dim=0) if ctx.needs_input_grad[2] else None
        return grad_output @ weight, x.t() @ grad_output, bias


class BiasAveraged(Linear):
    """The gradient of bias is averaged over the rows. bias was added to every row, and the
    contributions of all rows add up: use the sum."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        bias = grad_output.mean(dim=0) if ctx.needs_input_grad[2] else None
        return grad_output @ weight, grad_output.t() @ x, bias


class BiasSummedOverColumns(Linear):
    """The gradient of bias is summed over the columns, dim 1. bias has one number per column, so
    sum over the rows, dim 0."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        bias = grad_output.sum(dim=1) if ctx.needs_input_grad[2] else None
        return grad_output @ weight, grad_output.t() @ x, bias

"""Linear: Y = X W^T + b, the bias optional.

Derivation. This is exercise 7 with W^T in the place of Y, and exercise 6. With G = dL/dY

    dL/dX = G W        dL/dW = (X^T G)^T = G^T X        dL/db = the sum of G over its rows

`ctx.needs_input_grad` has one entry for each input of the call; the star takes what there is.
"""

import torch
from torch import Tensor

HINT = (
    "Start with three None, and after `if ctx.needs_input_grad[0]:` put the first gradient in the "
    "place of its None, and so on. The products are those of exercise 7, the sum is exercise 6."
)


class Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        ctx.save_for_backward(x, weight)
        y = x @ weight.t()
        return y if bias is None else y + bias

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        needs_x, needs_weight, *needs_bias = ctx.needs_input_grad
        return (
            grad_output @ weight if needs_x else None,
            grad_output.t() @ x if needs_weight else None,
            grad_output.sum(dim=0) if any(needs_bias) else None,
        )

    @staticmethod
    def sample_inputs() -> list[tuple]:
        x, weight, bias = torch.randn(3, 4), torch.randn(5, 4), torch.randn(5)
        return [(x, weight, bias), (x, weight)]


class BiasForgotten(Linear):
    """The bias was handed in and moves every row of Y, but its gradient stays None."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        return grad_output @ weight, grad_output.t() @ x, None

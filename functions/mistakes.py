"""Classic mistakes in backward. A comment marks the wrong line; `mistake` declares its kind.

Several of these Functions can even train a network. `python check.py` must find each mistake and
name its kind.
"""

from __future__ import annotations

import torch


class ReLUNoMask(torch.autograd.Function):
    """Rectified linear unit, elementwise: (*) -> (*). Its backward forgets the mask.

    Right: `grad_output.masked_fill(input < 0, 0)`.

    >>> x = torch.tensor([-1.0, 2.0], requires_grad=True)
    >>> ReLUNoMask.apply(x).sum().backward()
    >>> x.grad.tolist()
    [1.0, 1.0]
    """

    mistake = "no mask"
    generate_vmap_rule = True

    @staticmethod
    def forward(input: torch.Tensor) -> torch.Tensor:
        return input.clamp(min=0)

    @staticmethod
    def setup_context(ctx, inputs: tuple, output: torch.Tensor) -> None:
        pass

    @staticmethod
    def backward(ctx, grad_output: torch.Tensor) -> torch.Tensor:
        # Wrong: forward is flat for negative numbers, so no gradient may pass there.
        return grad_output

    @staticmethod
    def sample_inputs() -> list[tuple]:
        return [(torch.tensor([[-2.0, -0.5, 0.7], [1.5, -1.0, 3.0]]),)]


class ReLUEditsGradOutput(torch.autograd.Function):
    """Rectified linear unit, elementwise: (*) -> (*). Its backward modifies grad_output.

    The numbers are right as long as no other code uses grad_output. In `relu(x) + x` the other
    branch receives the same tensor, so its gradient is masked too: the 1.0 at x = -1 is lost.

    Right: `grad_output.masked_fill(input < 0, 0)`, which makes a new tensor.

    >>> x = torch.tensor([-1.0, 2.0], requires_grad=True)
    >>> y = ReLUEditsGradOutput.apply(x) + x
    >>> y.backward(torch.ones(2))
    >>> x.grad.tolist()  # right: [1.0, 2.0]
    [0.0, 2.0]
    """

    mistake = "edits grad_output"

    @staticmethod
    def forward(ctx, input: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(input)
        return input.clamp(min=0)

    @staticmethod
    def backward(ctx, grad_output: torch.Tensor) -> torch.Tensor:
        (input,) = ctx.saved_tensors
        # Wrong: the other branch of the sum receives the same tensor.
        return grad_output.masked_fill_(input < 0, 0)

    @staticmethod
    def sample_inputs() -> list[tuple]:
        return [(torch.tensor([[-2.0, -0.5, 0.7], [1.5, -1.0, 3.0]]),)]


class LinearBiasAveraged(torch.autograd.Function):
    """y = x W^T + b: (N, in_features), (out_features, in_features), (out_features,) ->
    (N, out_features). Its bias gradient is the mean over the rows.

    Right: `grad_output.sum(0)`; every row uses the same bias, so the gradients add up.

    >>> x, weight, bias = torch.ones(4, 2), torch.ones(3, 2), torch.ones(3, requires_grad=True)
    >>> LinearBiasAveraged.apply(x, weight, bias).sum().backward()
    >>> bias.grad.tolist()
    [1.0, 1.0, 1.0]
    """

    mistake = "constant factor"

    @staticmethod
    def forward(
        ctx, input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None
    ) -> torch.Tensor:
        ctx.save_for_backward(input, weight)
        output = input.mm(weight.t())
        return output if bias is None else output + bias

    @staticmethod
    def backward(ctx, grad_output: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        input, weight = ctx.saved_tensors
        # Wrong: mean(0), 1/N of the gradient, N being the number of rows.
        grad_bias = grad_output.mean(0) if any(ctx.needs_input_grad[2:]) else None
        return grad_output.mm(weight), grad_output.t().mm(input), grad_bias

    @staticmethod
    def sample_inputs() -> list[tuple]:
        return [(torch.randn(3, 4), torch.randn(5, 4), torch.randn(5))]


class LinearTransposedWeight(torch.autograd.Function):
    """y = x W^T: (N, in_features), (out_features, in_features) -> (N, out_features). Its weight
    gradient is transposed.

    Right: `grad_output.t().mm(input)`, which has the shape of weight. PyTorch refuses the
    wrong shape, unless weight is square.

    >>> x = torch.tensor([[1.0, 2.0]])
    >>> weight = torch.eye(2, requires_grad=True)
    >>> LinearTransposedWeight.apply(x, weight).backward(torch.tensor([[1.0, 0.0]]))
    >>> weight.grad.tolist()  # right: [[1.0, 2.0], [0.0, 0.0]]
    [[1.0, 0.0], [2.0, 0.0]]
    """

    mistake = "transposed"

    @staticmethod
    def forward(ctx, input: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(input, weight)
        return input.mm(weight.t())

    @staticmethod
    def backward(ctx, grad_output: torch.Tensor) -> tuple[torch.Tensor, ...]:
        input, weight = ctx.saved_tensors
        # Wrong: this is the gradient of W^T.
        return grad_output.mm(weight), input.t().mm(grad_output)

    @staticmethod
    def sample_inputs() -> list[tuple]:
        return [(torch.randn(3, 4), torch.randn(4, 4))]


class ExpIntermediateOnCtx(torch.autograd.Function):
    """exp(x^2), elementwise: (*) -> (*). The gradient is right, its own gradient is wrong.

    The square is neither an input nor an output, so a second derivative treats the value stored on
    ctx as a constant: its part of the gradient is lost without an error.

    Right: save `input`, and square it again in backward.

    >>> x = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
    >>> (first,) = torch.autograd.grad(ExpIntermediateOnCtx.apply(x), x, create_graph=True)
    >>> (second,) = torch.autograd.grad(first, x)
    >>> round(first.item(), 4), round(second.item(), 4)  # right: 5.4366 and 16.3097
    (5.4366, 5.4366)
    """

    mistake = "second derivative"

    @staticmethod
    def forward(ctx, input: torch.Tensor) -> torch.Tensor:
        ctx.square = input**2
        ctx.save_for_backward(input)
        return ctx.square.exp()

    @staticmethod
    def backward(ctx, grad_output: torch.Tensor) -> torch.Tensor:
        (input,) = ctx.saved_tensors
        # Wrong in a second derivative: ctx.square has no graph that leads back to input.
        return grad_output * 2 * input * ctx.square.exp()

    @staticmethod
    def sample_inputs() -> list[tuple]:
        return [(torch.tensor([[-0.9, 0.2, 0.5], [0.7, -0.4, 1.1]]),)]


class ProductOneGradient(torch.autograd.Function):
    """x y, elementwise: (*), (*) -> (*). Two inputs, one gradient.

    Right: `return grad_output * y, grad_output * x`.

    >>> x = torch.tensor(2.0, requires_grad=True)
    >>> ProductOneGradient.apply(x, torch.tensor(3.0)).backward()
    Traceback (most recent call last):
    RuntimeError: function ProductOneGradientBackward returned an incorrect number of gradients \
(expected 2, got 1)
    """

    mistake = "number of gradients"
    generate_vmap_rule = True

    @staticmethod
    def forward(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x * y

    @staticmethod
    def setup_context(ctx, inputs: tuple, output: torch.Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad_output: torch.Tensor) -> torch.Tensor:
        _, y = ctx.saved_tensors
        # Wrong: forward has two inputs, so backward returns two gradients.
        return grad_output * y

    @staticmethod
    def sample_inputs() -> list[tuple]:
        return [(torch.randn(2, 3), torch.randn(2, 3))]

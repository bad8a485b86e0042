"""Exercise 28, transforms: y_i = x_1^2 + ... + x_i^2, along the last dimension, for torch.func.

Write the four methods below forward. With them the Function works under `torch.func.grad`, `vmap`
and `jvp`. These transforms need a forward without ctx, so another method saves what backward needs.

setup_context runs after forward and stores what the others need. `inputs` is a tuple. Save a tensor
with `ctx.save_for_backward` for backward, and with `ctx.save_for_forward` for jvp; both read it
from `ctx.saved_tensors`.

backward works as before:

    grad_output   dL/dy: how fast the loss L changes with each element of y; the shape of y
    you return    dL/dx: how fast it changes with each element of x; the shape of x

jvp goes the other way, from the input to the output:

    x_tangent     dx/dt: how fast x changes with some t; the shape of x
    you return    dy/dt: how fast y changes with t; the shape of y

vmap handles a whole batch in one call. Its x has one dimension more than forward expects, the batch
dimension, and in_dims[0] says which one that is: 0 for the first. First rearrange x so that forward
still sums over the right dimension, then call `SumOfSquares.apply` on it.

    you return    y for the whole batch, and the position of the batch dimension in y

The check runs in float64, because a numerical gradient needs many digits.

Check it:   python check.py exercises.transforms
            add --hint for a hint (twice for more), or --watch to check at every save
"""

import torch
from torch import Tensor


class SumOfSquares(torch.autograd.Function):
    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return (x**2).cumsum(dim=-1)

    @staticmethod
    def setup_context(ctx, inputs: tuple, output: Tensor) -> None:
        raise NotImplementedError  # your answer goes in place of this line

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        raise NotImplementedError  # your answer goes in place of this line

    @staticmethod
    def jvp(ctx, x_tangent: Tensor) -> Tensor:
        raise NotImplementedError  # your answer goes in place of this line

    @staticmethod
    def vmap(info, in_dims: tuple, x: Tensor) -> tuple[Tensor, int]:
        raise NotImplementedError  # your answer goes in place of this line

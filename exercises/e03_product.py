"""Exercise 3, product: z = x y, elementwise, for x and y of the same shape. Write backward.

    grad_output   dL/dz: how fast the loss L changes with each element of z; the shape of z
    you return    dL/dx, dL/dy: two tensors, each of the shape of its input

Backward returns one gradient for each input of forward, in the order of forward's inputs, with a
comma between them. Both x and y may contain zeros.

The check runs in float64, because a numerical gradient needs many digits.

Check it:   python check.py exercises.product
            add --hint for a hint (twice for more), or --watch to check at every save
"""

import torch
from torch import Tensor


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, Tensor]:
        x, y = ctx.saved_tensors
        raise NotImplementedError  # your answer goes in place of this line

"""Exercise 2, square: y = x^2, elementwise. Write backward.

    grad_output   dL/dy: how fast the loss L changes with each element of y; the shape of y
    you return    dL/dx: how fast it changes with each element of x; the shape of x

The slope of x^2 differs from x to x, so backward needs x. Forward saves tensors with
`ctx.save_for_backward`, and the first line of backward retrieves them. `ctx.saved_tensors` is a
tuple, even when it holds only one tensor; `(x,) =` takes that one out.

The check runs in float64, because a numerical gradient needs many digits. If you make a new tensor,
`torch.zeros_like(x)` gives it the shape and the dtype of x.

Check it:   python check.py exercises.square
            add --hint for a hint (twice for more), or --watch to check at every save
"""

import torch
from torch import Tensor


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x**2

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        raise NotImplementedError  # your answer goes in place of this line

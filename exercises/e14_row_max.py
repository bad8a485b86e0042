"""Exercise 14, row_max: y_i = the largest x_ij of row i, for x of shape (N, D). Write backward.

    grad_output   dL/dy, of the shape of y, (N,): how fast the loss L changes with each row's y
    you return    dL/dx, of the shape of x, (N, D)

Where several elements of a row are the largest (a tie), they share the gradient in equal parts, as
in `torch.amax`.

The check runs in float64, because a numerical gradient needs many digits.

Check it:   python check.py exercises.row_max
            add --hint for a hint (twice for more), or --watch to check at every save
"""

import torch
from torch import Tensor


class RowMax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        y = x.amax(dim=1)
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        x, y = ctx.saved_tensors
        raise NotImplementedError  # your answer goes in place of this line

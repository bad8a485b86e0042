"""Exercise 7, row_sum: y_i = the sum over j of x_ij, for x of shape (N, D). Write backward.

    grad_output   dL/dy, of the shape of y, (N,): how fast the loss L changes with each row's sum
    you return    dL/dx, of the shape of x, (N, D)

You don't need the values of x, only its shape. Anything that is not a tensor can be stored directly
on ctx, and here forward stores the shape.

The check runs in float64, because a numerical gradient needs many digits. If you make a new tensor,
`grad_output.new_zeros(ctx.shape)` gives it the right dtype; `torch.zeros(ctx.shape)` does not.

Check it:   python check.py exercises.row_sum
            add --hint for a hint (twice for more), or --watch to check at every save
"""

import torch
from torch import Tensor


class RowSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        ctx.shape = x.shape
        return x.sum(dim=1)

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        raise NotImplementedError  # your answer goes in place of this line

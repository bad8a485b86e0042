"""Exercise 8, row_mean: y_i = the mean over j of x_ij, for x of shape (N, D). Write backward.

    grad_output   dL/dy, of the shape of y, (N,): how fast the loss L changes with each row's mean
    you return    dL/dx, of the shape of x, (N, D)

The check runs in float64, because a numerical gradient needs many digits.

Check it:   python check.py exercises.row_mean
            add --hint for a hint (twice for more), or --watch to check at every save
"""

import torch
from torch import Tensor


class RowMean(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        ctx.shape = x.shape
        return x.mean(dim=1)

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        raise NotImplementedError  # your answer goes in place of this line

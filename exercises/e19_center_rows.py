"""Exercise 19, center_rows: each row of x (N, D) minus its mean. Write backward.

    y_i = x_i - mean, with mean = the mean of x_j, within one row

    grad_output   dL/dy: how fast the loss L changes with each element of y; the shape of y
    you return    dL/dx: how fast it changes with each element of x; the shape of x

Each x_j affects y in two ways: directly, and through the mean. The gradients of both add up.

The check runs in float64, because a numerical gradient needs many digits.

Check it:   python check.py exercises.center_rows
            add --hint for a hint (twice for more), or --watch to check at every save
"""

import torch
from torch import Tensor


class CenterRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        return x - x.mean(dim=1, keepdim=True)

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        raise NotImplementedError  # your answer goes in place of this line

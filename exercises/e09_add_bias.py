"""Exercise 9, add_bias: y_ij = x_ij + b_j, for x of shape (N, D) and b of shape (D,).

Write backward.

    grad_output   dL/dy, of the shape of y, (N, D): how fast the loss L changes with each element
    you return    dL/dx, of shape (N, D), and dL/db, of shape (D,)

Forward repeats b for every row; this is called broadcasting. Even so, a gradient always has the
shape of its input.

The check runs in float64, because a numerical gradient needs many digits.

Check it:   python check.py exercises.add_bias
            add --hint for a hint (twice for more), or --watch to check at every save
"""

import torch
from torch import Tensor


class AddBias(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, b: Tensor) -> Tensor:
        return x + b

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, Tensor]:
        raise NotImplementedError  # your answer goes in place of this line

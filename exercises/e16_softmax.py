"""Exercise 16, softmax: turns each row of x (N, D) into positive numbers that add up to 1.

    y_i = exp(x_i) / the sum over j of exp(x_j), within one row

Write backward.

    grad_output   dL/dy: how fast the loss L changes with each element of y; the shape of y
    you return    dL/dx: how fast it changes with each element of x; the shape of x

Every x_j of a row changes every y_i of that row, so a row has a D x D matrix of slopes, its
Jacobian J. Backward is the product of grad_output and J. You can compute it without ever building
J.

The check runs in float64, because a numerical gradient needs many digits.

Check it:   python check.py exercises.softmax
            add --hint for a hint (twice for more), or --watch to check at every save
"""

import torch
from torch import Tensor


class Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        # Subtracting the largest x doesn't change the result; it keeps exp from overflowing.
        shifted = x - x.amax(dim=1, keepdim=True)
        y = shifted.exp() / shifted.exp().sum(dim=1, keepdim=True)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        raise NotImplementedError  # your answer goes in place of this line

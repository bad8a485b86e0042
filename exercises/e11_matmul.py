"""Exercise 11, matmul: Z = X Y, the matrix product of X (N, K) and Y (K, M). Write backward.

    z_nm = the sum over k of x_nk y_km

    grad_output   dL/dZ, of the shape of Z, (N, M): how fast the loss L changes with each element
    you return    dL/dX, of shape (N, K), and dL/dY, of shape (K, M)

The check runs in float64, because a numerical gradient needs many digits.

Check it:   python check.py exercises.matmul
            add --hint for a hint (twice for more), or --watch to check at every save
"""

import torch
from torch import Tensor


class MatMul(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(x, y)
        return x @ y

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, Tensor]:
        x, y = ctx.saved_tensors
        raise NotImplementedError  # your answer goes in place of this line

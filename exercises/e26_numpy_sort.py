"""Exercise 26, numpy_sort: sorts each row of x (N, D) with NumPy, smallest first. Write backward.

    y[i, j] = x[i, order[i, j]]

    grad_output   dL/dy: how fast the loss L changes with each element of y; the shape of y
    you return    dL/dx: how fast it changes with each element of x; the shape of x

Autograd can't see into NumPy, so without backward no gradient would flow. `ctx.order` is a tensor
of integers, of the shape of x. Elements that are equal may come in any order.

Backward may use PyTorch or NumPy. If it uses NumPy, autograd can't see into backward either, so a
second derivative would be wrong. Backward must refuse it, with a second decorator below the first:

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_output):

The check runs in float64, because a numerical gradient needs many digits.

Check it:   python check.py exercises.numpy_sort
            add --hint for a hint (twice for more), or --watch to check at every save
"""

import numpy as np
import torch
from torch import Tensor


class NumpySort(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        array = x.detach().cpu().numpy()
        order = np.argsort(array, axis=1)
        ctx.order = torch.from_numpy(order).to(x.device)
        return torch.from_numpy(np.take_along_axis(array, order, axis=1)).to(x)

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        raise NotImplementedError  # your answer goes in place of this line

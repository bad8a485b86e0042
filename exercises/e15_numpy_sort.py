"""Exercise 15, numpy_sort: each row of x (N, D) sorted, smallest first, by NumPy. Write backward.

    y_ij = x_i,order_ij: place j of row i is filled by the element at order_ij

    grad_output   dL/dy: how fast the loss L changes with each element of y; the shape of y
    to return     dL/dx: how fast it changes with each element of x; the shape of x

Autograd can't see into NumPy, so without backward nothing would flow. `ctx.order` is a tensor of
whole numbers, of the shape of x. Backward may use PyTorch; if it uses NumPy, it can't be
differentiated again, and must say so: `@once_differentiable`, from torch.autograd.function, under
`@staticmethod`.

Check it:   python check.py exercises.numpy_sort
            add --hint for a hint, or --watch to check at every save
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

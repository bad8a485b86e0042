"""Exercise 1, square: y = x^2, elementwise. Write backward.

The network ends in one number, the loss L. Whatever stands behind this Function has already worked
out how fast L changes with each element of y. Backward passes that on to x.

    grad_output   dL/dy, a tensor of the shape of y
    to return     dL/dx, a tensor of the shape of x

By the chain rule each element of dL/dx is the element of dL/dy times the slope of y at that x.
The first line of backward takes back what forward saved. The check compares what you return with
difference quotients: how much y changes when x moves by a millionth.

Check it:   python check.py exercises.square
            add --hint for a hint, or --watch to check at every save
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

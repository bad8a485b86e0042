"""Exercise 4, relu: y = max(x, 0), elementwise. Write backward.

    grad_output   dL/dy: how fast the loss L changes with each element of y; the shape of y
    you return    dL/dx: how fast it changes with each element of x; the shape of x

At exactly 0 the slope is 0 on the left and 1 on the right. There you may choose any value from 0
to 1, and the check will tell you which one you chose.

Other parts of the network may use grad_output too, so don't modify it in place. Return a new
tensor: a product, `grad_output.clone()`, or one that you make with `torch.zeros_like(x)`. (The
check runs in float64, because a numerical gradient needs many digits. `zeros_like` keeps that.)

Check it:   python check.py exercises.relu
            add --hint for a hint (twice for more), or --watch to check at every save
Train it:   python train.py function=exercise_relu
"""

import torch
from torch import Tensor


class ReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.clamp(min=0)

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        raise NotImplementedError  # your answer goes in place of this line

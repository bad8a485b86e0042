"""Exercise 27, second_derivative: y = x s with s = 1 / (1 + exp(-x)), elementwise (SiLU).

Write backward so that it can itself be differentiated. Here the second derivative counts.

    grad_output   dL/dy: how fast the loss L changes with each element of y; the shape of y
    you return    dL/dx: how fast it changes with each element of x; the shape of x

A gradient penalty and a Newton step need the derivative of a gradient. Autograd then differentiates
the operations of your backward like any others. With `ctx.s` backward needs no exp, and the first
derivative is right. The second derivative is then wrong: the check says why.
You may change forward, but it must still return y alone.

The check runs in float64, because a numerical gradient needs many digits.

Check it:   python check.py exercises.second_derivative
            add --hint for a hint (twice for more), or --watch to check at every save
Train it:   python train.py function=exercise_second_derivative
"""

import torch
from torch import Tensor


class SiLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        ctx.s = torch.sigmoid(x)
        return x * ctx.s

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        raise NotImplementedError  # your answer goes in place of this line

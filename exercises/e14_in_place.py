"""Exercise 14, in_place: y = x where x > 0, else x / 10, written over x. Write both methods.

Forward works in place: it writes y into the memory of x, and returns that same tensor. As code:

    x.mul_(torch.where(x > 0, 1.0, 0.1))

Autograd must be told, or whoever needs the old x computes with the new one: say
`ctx.mark_dirty(x)`. And backward must do without x; save what is left of it.

    grad_output   dL/dy: how fast the loss L changes with each element of y; the shape of y
    to return     dL/dx: how fast it changes with each element of the old x; the shape of x

Check it:   python check.py exercises.in_place
            add --hint for a hint, or --watch to check at every save
Train it:   python train.py function=exercise_in_place
"""

import torch
from torch import Tensor


class InPlace(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        raise NotImplementedError  # your answer goes in place of this line

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        raise NotImplementedError  # your answer goes in place of this line

"""Exercise 25, in_place: y = x where x > 0, else x / 10, computed in place.

Write both methods. Forward works in place: it overwrites x with y, and returns that same tensor:

    x.copy_(torch.where(x > 0, x, x / 10))

Autograd must know about that, or anything that still needs the old x would silently use the new
one. So forward calls `ctx.mark_dirty(x)`. Backward can't use the old x, which is gone; save
something from which it can work out the slopes.

    grad_output   dL/dy: how fast the loss L changes with each element of y; the shape of y
    you return    dL/dx: how fast it changes with each element of the old x; the shape of x

At exactly 0 you may choose a slope between 0.1 and 1.

The check runs in float64, because a numerical gradient needs many digits.

Check it:   python check.py exercises.in_place
            add --hint for a hint (twice for more), or --watch to check at every save
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

"""Exercise 24, straight_through: y = x clamped to [-1, 1], elementwise. Write backward.

    grad_output   dL/dy: how fast the loss L changes with each element of y; the shape of y
    you return    a surrogate for dL/dx, of the shape of x

The derivative of a clamp is 0 outside [-1, 1]: an x that got there would receive no gradient, and
training could not move it back. So this backward is, on purpose, not the derivative of forward. It
is the derivative of y = x, everywhere, as if the clamp were not there. The method `surrogate`
declares that function, and the check compares your backward with its derivative.

The check runs in float64, because a numerical gradient needs many digits.

Check it:   python check.py exercises.straight_through
            add --hint for a hint (twice for more), or --watch to check at every save
Train it:   python train.py function=exercise_straight_through
"""

import torch
from torch import Tensor


class StraightThrough(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        return x.clamp(-1, 1)

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        raise NotImplementedError  # your answer goes in place of this line

    @staticmethod
    def surrogate(x: Tensor) -> Tensor:
        return x

"""Exercise 13, straight_through: y = x kept within [-1, 1], elementwise. Write backward.

    grad_output   dL/dy: how fast the loss L changes with each element of y; the shape of y
    to return     a surrogate for dL/dx, of the shape of x

The derivative of a clamp is 0 outside [-1, 1]: whatever got out there would get no gradient and
never come back. Here, on purpose, backward is not the derivative. It is that of y = x, everywhere,
as if the clamp were not there. `surrogate` declares it, and the check holds you to that.

Check it:   python check.py exercises.straight_through
            add --hint for a hint, or --watch to check at every save
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

"""Exercise 23, several_outputs: clamps x to [-1, 1] and returns three tensors. Write backward.

    clamped   x, but at least -1 and at most 1
    rest      x - clamped: what was cut off, 0 inside [-1, 1]
    side      1 where x is above 1, -1 where it is below -1, else 0; integers

All are elementwise, of the shape of x. Backward gets one gradient for each output of forward:

    grad_clamped   dL/dclamped: how fast the loss L changes with each element of clamped
    grad_rest      dL/drest
    grad_side      zeros, because forward marks side as not differentiable
    you return     dL/dx, of the shape of x: one tensor, because forward has one input

The check runs in float64, because a numerical gradient needs many digits.

Check it:   python check.py exercises.several_outputs
            add --hint for a hint (twice for more), or --watch to check at every save
"""

import torch
from torch import Tensor


class ClampAndRest(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        clamped = x.clamp(-1, 1)
        side = (x > 1).long() - (x < -1).long()
        ctx.save_for_backward(side)
        ctx.mark_non_differentiable(side)
        return clamped, x - clamped, side

    @staticmethod
    def backward(ctx, grad_clamped: Tensor, grad_rest: Tensor, grad_side: Tensor) -> Tensor:
        (side,) = ctx.saved_tensors
        raise NotImplementedError  # your answer goes in place of this line

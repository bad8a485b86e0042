"""Exercise 22, dropout: sets random elements to 0 and scales up the rest. Write backward.

    y = x / (1 - p) where an element is kept, else 0; each is dropped with probability p

Two things are missing: the line in forward that stores what backward needs, and backward itself.

    grad_output   dL/dy: how fast the loss L changes with each element of y; the shape of y
    you return    dL/dx, of the shape of x, then None for p and None for seed

Backward must use the same random mask as forward. A tensor goes through `ctx.save_for_backward`; a
plain number can be stored directly on ctx. The seed makes forward repeatable, so that the check can
move an element of x and see the same elements dropped.

The check runs in float64, because a numerical gradient needs many digits.

Check it:   python check.py exercises.dropout
            add --hint for a hint (twice for more), or --watch to check at every save
"""

import torch
from torch import Tensor


class Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, p: float, seed: int) -> Tensor:
        generator = torch.Generator(x.device).manual_seed(seed)
        kept = torch.rand(x.shape, generator=generator, device=x.device) >= p
        raise NotImplementedError  # store what backward needs, in place of this line
        return x * kept / (1 - p)

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, None, None]:
        raise NotImplementedError  # your answer goes in place of this line

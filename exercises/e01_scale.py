"""Exercise 1, scale: y = factor x, elementwise, for a number `factor`. Write backward.

The network ends in one number, the loss L. Whatever comes after this Function has already worked
out how fast L changes with each element of y. Backward passes that on to x.

    grad_output   dL/dy, a tensor of the shape of y
    you return    dL/dx, a tensor of the shape of x, and None

By the chain rule, each element of dL/dx is the element of dL/dy times the slope of y at that x.

`ctx` carries information from forward to backward; here forward stores the factor on it. Backward
returns one gradient for each input of forward, in the same order. A plain number such as `factor`
gets no gradient, so the second one is None: end your line with `, None`.

The check compares what you return with a numerical gradient: the change of y divided by the
change of x, for a step of a millionth. float32 has too few digits for that, so the check runs in
float64.

Check it:   python check.py exercises.scale
            add --hint for a hint (twice for more), or --watch to check at every save
"""

import torch
from torch import Tensor


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, factor: float) -> Tensor:
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, None]:
        raise NotImplementedError  # your answer goes in place of this line

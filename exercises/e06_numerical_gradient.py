"""Exercise 6, numerical_gradient: your own gradient check. Write the function.

How do we know that a backward is right? Move one element of x up a little, then down a little, and
see how much the value of a function f changes. For each element x_i:

    gradient_i = (f(x with x_i + eps) - f(x with x_i - eps)) / (2 eps)

This is how the check finds its numerical gradients. The step down is worth it: with both steps the
error is proportional to eps^2, with the step up alone only to eps.

    function      f: takes a tensor of the shape of x, returns a tensor that holds one number
    x             a tensor of any shape; the caller still needs it, so leave it unchanged
    eps           the size of the step, such as 1e-6
    you return    the gradient, of the shape and dtype of x; torch.zeros_like(x) makes such a tensor

The check calls your function in float64. With a step of 1e-6 the two values of f agree in their
first six digits or so. float64 has about 16 digits, which leaves ten for the difference; float32
has only 7, which leaves almost none.

Check it:   python check.py exercises.numerical_gradient
            add --hint for a hint (twice for more), or --watch to check at every save
"""

from collections.abc import Callable

import torch
from torch import Tensor


def numerical_gradient(function: Callable[[Tensor], Tensor], x: Tensor, eps: float) -> Tensor:
    raise NotImplementedError  # your answer goes in place of this line

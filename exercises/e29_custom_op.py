"""Exercise 29, custom_op: y = sqrt(1 + x^2), elementwise, as an operator of PyTorch.

`torch.library.custom_op` turns Python code into an operator of PyTorch, with a name of its own.
`torch.compile` and `torch.export` then don't look inside; they call it as a whole. That suits code
which they can't handle, such as the NumPy calls here. Write the three functions that the operator
needs besides its own code.

fake says what the result looks like without computing it. torch.compile calls it with tensors that
have a shape, a dtype and a device, but no numbers. Return an empty tensor like the result.

setup_context stores what backward needs, as in exercise 28. `inputs` is a tuple.

    grad_output   dL/dy: how fast the loss L changes with each element of y; the shape of y
    you return    dL/dx: how fast it changes with each element of x; the shape of x

PyTorch's own test, `torch.library.opcheck`, checks that an operator is registered correctly. It
does not check that the gradient is right. The check of this course does; it runs in float64,
because a numerical gradient needs many digits.

Check it:   python check.py exercises.custom_op
            add --hint for a hint (twice for more), or --watch to check at every save
"""

import numpy as np
import torch
from torch import Tensor


@torch.library.custom_op("exercises::smooth_abs", mutates_args=())
def smooth_abs(x: Tensor) -> Tensor:
    array = x.numpy(force=True)
    return torch.from_numpy(np.sqrt(1 + array**2)).to(x)


@smooth_abs.register_fake
def fake(x: Tensor) -> Tensor:
    raise NotImplementedError  # your answer goes in place of this line


def setup_context(ctx, inputs: tuple, output: Tensor) -> None:
    raise NotImplementedError  # your answer goes in place of this line


def backward(ctx, grad_output: Tensor) -> Tensor:
    raise NotImplementedError  # your answer goes in place of this line


smooth_abs.register_autograd(backward, setup_context=setup_context)


def custom_op(x: Tensor) -> Tensor:
    """What the check calls."""
    return smooth_abs(x)

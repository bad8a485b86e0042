"""custom_op: y = sqrt(1 + x^2), elementwise, a smooth |x|, as an operator of PyTorch.

Derivation. With u = 1 + x^2, dy/du = 1 / (2 sqrt(u)) = 1 / (2 y) and du/dx = 2 x, so

    dL/dx = grad_output x / y

y is at least 1, so nothing is ever divided by 0. The result has the shape, dtype and device of x,
which is all that the fake has to say.
"""

import secrets
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

HINTS = (
    "The derivative is the chain rule: the square root outside, 1 + x^2 inside. Written with x "
    "and y it becomes very short.",
    "`return torch.empty_like(x)` in fake, `(x,) = inputs` in setup_context, which saves x and "
    "output, and `x, y = ctx.saved_tensors` in backward.",
)

asks_for = ("gradient", "fake")


# PyTorch drops an operator when another one of the same name is registered. Where an answer is
# compared with this file, both must exist, so this file takes a new name each time it is run.
@torch.library.custom_op(f"solutions::smooth_abs_{secrets.token_hex(8)}", mutates_args=())
def smooth_abs(x: Tensor) -> Tensor:
    array = x.numpy(force=True)
    return torch.from_numpy(np.sqrt(1 + array**2)).to(x)


@smooth_abs.register_fake
def fake(x: Tensor) -> Tensor:
    return torch.empty_like(x)


def setup_context(ctx, inputs: tuple, output: Tensor) -> None:
    (x,) = inputs
    ctx.save_for_backward(x, output)


def backward(ctx, grad_output: Tensor) -> Tensor:
    x, y = ctx.saved_tensors
    return grad_output * x / y


smooth_abs.register_autograd(backward, setup_context=setup_context)


def custom_op(x: Tensor) -> Tensor:
    return smooth_abs(x)


def sample_inputs() -> list[tuple]:
    return [
        (torch.tensor([[-2.0, -0.5, 0.0], [0.75, 1.5, 100.0]]),),
        (torch.tensor([3.0]),),
    ]


def _with_slope(x: Tensor, slope: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """The value of smooth_abs, with this slope, a function of x and y, in backward."""

    class WithSlope(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x: Tensor) -> Tensor:
            y = (1 + x**2).sqrt()
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx, grad_output: Tensor) -> Tensor:
            return grad_output * slope(*ctx.saved_tensors)

    return WithSlope.apply(x)


def custom_op_value_instead_of_slope(x: Tensor) -> Tensor:
    """This multiplies by the value y. Backward needs the slope of y, which is x / y."""
    return _with_slope(x, lambda x, y: y)


def custom_op_outer_slope_only(x: Tensor) -> Tensor:
    """This is the slope of the square root alone, 1 / (2 y). What is inside it, 1 + x^2, has a
    slope too: multiply by 2 x."""
    return _with_slope(x, lambda x, y: 1 / (2 * y))


def custom_op_inner_slope_only(x: Tensor) -> Tensor:
    """This is the slope of 1 + x^2 alone, 2 x. The square root around it has a slope too: multiply
    by 1 / (2 y)."""
    return _with_slope(x, lambda x, y: 2 * x)


def custom_op_half_the_slope(x: Tensor) -> Tensor:
    """This is half of the slope. The 2 of 1 / (2 y) cancels with the 2 of 2 x: what is left is x /
    y."""
    return _with_slope(x, lambda x, y: x / (2 * y))


def custom_op_twice_the_slope(x: Tensor) -> Tensor:
    """This is twice the slope. The slope of a square root is 1 / (2 y), and its 2 cancels with the
    2 of 2 x: what is left is x / y."""
    return _with_slope(x, lambda x, y: 2 * x / y)


def custom_op_slope_of_abs(x: Tensor) -> Tensor:
    """This is the slope of |x|, which jumps at 0. y = sqrt(1 + x^2) is smooth: its slope is x /
    y."""
    return _with_slope(x, lambda x, y: x.sign())

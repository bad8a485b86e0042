"""SiLU: y = x s, s = 1 / (1 + exp(-x)), right to every order.

Derivation. By the product rule, with ds/dx = s (1 - s) from exercise 4,

    dy/dx = s + x s (1 - s)

To a second backward, ctx.s is a number that fell from the sky: nothing says that it depends on x,
so all that comes through it is lost, in silence. Saved inputs and outputs of forward are known to
autograd. So save x, and compute s again in backward, from x.
"""

import torch
from torch import Tensor

HINT = (
    "The first derivative is the product rule. For the second: autograd knows where x came from. "
    "Does it know where ctx.s came from?"
)


class SiLU(torch.autograd.Function):
    second_derivative_wanted = True

    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return grad_output * (s + x * s * (1 - s))

    @staticmethod
    def sample_inputs() -> list[tuple]:
        return [(torch.tensor([[-2.0, -0.5, 0.1], [0.75, 1.5, 3.0]]),)]


class FirstFactorAlone(SiLU):
    """This is the slope of x times s, as if s stood still. By the product rule there is a second
    part: x times the slope of s."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad_output * torch.sigmoid(x)


class SecondFactorAlone(SiLU):
    """This is x times the slope of s. By the product rule there is a second part: the slope of x,
    which is 1, times s."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return grad_output * x * s * (1 - s)


class SigmoidAlone(SiLU):
    """This is the slope of s alone, which is exercise 4. Here s is multiplied by x."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return grad_output * s * (1 - s)

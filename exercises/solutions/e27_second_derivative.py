"""SiLU: y = x s, s = 1 / (1 + exp(-x)), right to every order.

Derivation. By the product rule, with ds/dx = s (1 - s) from exercise 5,

    dy/dx = s + x s (1 - s)

For a second derivative autograd differentiates backward. To autograd ctx.s is a constant: nothing
says that it depends on x, so every term that comes through it is lost, silently. Autograd does know
where saved inputs and outputs of forward come from. So save x, and compute s again in backward,
from x.
"""

import torch
from torch import Tensor

HINTS = (
    "The first derivative is the product rule. For the second one: autograd knows where the saved "
    "x comes from. Does it know where ctx.s comes from?",
    "`s = torch.sigmoid(x)` in backward, instead of ctx.s.",
)


class SiLU(torch.autograd.Function):
    asks_for = ("second_derivative",)

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
        return [
            (torch.tensor([[-2.0, -0.5, 0.1], [0.75, 1.5, 3.0]]),),
            (torch.tensor([[0.0], [-30.0], [30.0]]),),
        ]


class FirstFactorOnly(SiLU):
    """This treats s as a constant and differentiates x alone. By the product rule there is a second
    term: x times the slope of s."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad_output * torch.sigmoid(x)


class SecondFactorOnly(SiLU):
    """This is x times the slope of s. By the product rule there is a second term: the slope of x,
    which is 1, times s."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return grad_output * x * s * (1 - s)


class SigmoidOnly(SiLU):
    """This is the slope of s alone, which is exercise 5. Here s is multiplied by x: use the product
    rule."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return grad_output * s * (1 - s)


class MinusSign(SiLU):
    """The two terms of the product rule are subtracted. They are added: s + x s (1 - s)."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return grad_output * (s - x * s * (1 - s))


class SlopesMultiplied(SiLU):
    """This multiplies the slope of x by the slope of s, and by x and s. The product rule is a sum:
    the slope of each factor times the other factor."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return grad_output * s * x * s * (1 - s)

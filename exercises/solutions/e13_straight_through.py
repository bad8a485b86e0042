"""StraightThrough: y = x clamped to [-1, 1], with the gradient of y = x.

Derivation. There is none, on purpose: backward is a surrogate. The derivative of y = x is 1, so

    grad_output passes as it is

Inside [-1, 1] that is the derivative of the clamp as well. Outside it is not, and keeps x movable.
Source: the straight-through estimator of Bengio, Leonard, Courville, 2013 (arXiv:1308.3432).
"""

import torch
from torch import Tensor

HINT = "As if forward were `return x`: what would backward be then?"


class StraightThrough(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        return x.clamp(-1, 1)

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        return grad_output

    @staticmethod
    def surrogate(x: Tensor) -> Tensor:
        return x

    @staticmethod
    def sample_inputs() -> list[tuple]:
        return [(torch.tensor([[-2.0, -0.5, 0.25], [0.75, -0.1, 3.0]]),)]


class TrueDerivative(StraightThrough):
    """This is the true derivative of the clamp: it stops the gradient outside [-1, 1]. Here it is
    asked to pass there as well."""

    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.clamp(-1, 1)

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad_output * (x.abs() <= 1)


class ClampsGradOutput(StraightThrough):
    """This clamps grad_output. The clamp of forward is for the numbers; a gradient may be of any
    size, and passes as it is."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        return grad_output.clamp(-1, 1)

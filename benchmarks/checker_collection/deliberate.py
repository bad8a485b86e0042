"""Functions whose backward is on purpose not the derivative of forward."""

import torch
from torch.autograd import Function


class SignSTE(Function):
    """sign, with the derivative of clamp."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sign()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (x.abs() <= 1)
        # [wrong mask] return g * (x <= 1)
        # [constant factor] return 2 * g * (x.abs() <= 1)

    @staticmethod
    def surrogate(x):
        return x.clamp(-1, 1)

    @staticmethod
    def sample_inputs():
        return [(torch.tensor([[-1.5, 0.3, 2.0], [0.7, -0.2, -3.0]]),)]


class RoundSTE(Function):
    """round to steps of a given size, with the derivative of the identity."""

    @staticmethod
    def forward(ctx, x, step: float):
        return (x / step).round() * step

    @staticmethod
    def backward(ctx, g):
        return g, None
        # [all zero] return 0 * g, None
        # [not linear in grad_output] return g.round(), None

    @staticmethod
    def surrogate(x, step):
        return x

    @staticmethod
    def sample_inputs():
        return [(torch.randn(2, 3), 0.5)]


class ReverseGradient(Function):
    """The identity, with the gradient turned round and scaled."""

    @staticmethod
    def forward(ctx, x, strength: float):
        ctx.strength = strength
        # [state on the class] ReverseGradient.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return -ctx.strength * g, None
        # [state on the class] return -ReverseGradient.strength * g, None

    @staticmethod
    def surrogate(x, strength):
        return -strength * x

    @staticmethod
    def sample_inputs():
        x = torch.randn(2, 3)
        return [(x, 0.5), (x, 2.0)]


class SpikeATan(Function):
    """A spike where x is positive, with the derivative of an arctangent."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x > 0).to(x.dtype)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g / (1 + x * x)
        # [wrong formula] return g / (1 - x * x)
        # [missing factor] return g
        # [wrong power] return g / (1 + x.abs())
        # [saved_tensors not unpacked] x = ctx.saved_tensors; return g / (1 + x * x)

    @staticmethod
    def surrogate(x):
        return torch.atan(x)

    @staticmethod
    def sample_inputs():
        return [(torch.randn(2, 3),)]


class LearnedStep(Function):
    """Rounds to multiples of a step that is learned; the rule is the derivative of no function."""

    surrogate = True

    @staticmethod
    def forward(ctx, x, step):
        ctx.save_for_backward(x, step)
        return (x / step).round() * step

    @staticmethod
    def backward(ctx, g):
        x, step = ctx.saved_tensors
        ratio = x / step
        grad_step = (g * (ratio.round() - ratio)).sum()
        # [float32] grad_step = (g * (ratio.round() - ratio)).float().sum()
        # [ignores grad_output] grad_step = (ratio.round() - ratio).sum()
        return g, grad_step.reshape(step.shape)
        # [number of gradients] return g
        # [not linear in grad_output] return g.clamp(-1, 1), grad_step.reshape(step.shape)
        # [edits grad_output] return g.mul_(0.5) * 2, grad_step.reshape(step.shape)

    @staticmethod
    def sample_inputs():
        return [(torch.randn(2, 3), torch.tensor(0.5))]

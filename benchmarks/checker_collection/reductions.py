"""Sums, maxima, norms and scans along a dimension."""

import torch
from torch.autograd import Function


class RowSum(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        # [state on the class] RowSum.shape = ctx.shape = x.shape
        return x.sum(1)

    @staticmethod
    def backward(ctx, g):
        return g[:, None].expand(ctx.shape)
        # [wrong dimension] return g.repeat(ctx.shape[1], 1).reshape(ctx.shape)
        # [sum for mean] return g[:, None].expand(ctx.shape) / ctx.shape[1]
        # [state on the class] return g[:, None].expand(RowSum.shape)

    @staticmethod
    def sample_inputs():
        return [(torch.randn(2, 3),), (torch.randn(3, 4),)]


class MeanOfAll(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.mean()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return (g / x.numel()).expand(x.shape)
        # [sum for mean] return g.expand(x.shape)
        # [float32] return torch.ones(x.shape) * (g / x.numel()).float()
        # [ignores grad_output] return torch.full_like(x, 1 / x.numel())
        # [extra factor] return (g / x.numel()) * x

    @staticmethod
    def sample_inputs():
        return [(torch.randn(2, 3),)]


class RowMax(Function):
    """Ties share the gradient equally."""

    @staticmethod
    def forward(ctx, x):
        y = x.amax(1, keepdim=True)
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        largest = (x == y).to(x.dtype)
        # [wrong mask] largest = (x == x.max()).to(x.dtype)
        return g * largest / largest.sum(1, keepdim=True)
        # [ties] return g * largest
        # [no mask] return g.expand(x.shape)
        # [wrong dimension] return g * largest / largest.sum(0, keepdim=True)

    @staticmethod
    def sample_inputs():
        return [(torch.tensor([[0.3, 1.7, -0.2], [2.1, 0.4, 0.9]]),)]

    @staticmethod
    def kink_inputs():
        return [(torch.tensor([[1.0, 1.0, 0.0]]),)]


class LogSumExp(Function):
    @staticmethod
    def forward(ctx, x):
        top = x.amax(1, keepdim=True)
        y = (x - top).exp().sum(1, keepdim=True).log() + top
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * (x - y).exp()
        # [overflow] return g * x.exp() / y.exp()
        # [wrong dimension] return g * x.softmax(0)
        # [ignores grad_output] return (x - y).exp()

    @staticmethod
    def sample_inputs():
        return [(torch.randn(2, 3),)]


class Softmax(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.softmax(1)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return y * (g - (g * y).sum(1, keepdim=True))
        # [missing term] return y * g
        # [wrong dimension] return y * (g - (g * y).sum(0, keepdim=True))
        # [mean for sum] return y * (g - (g * y).mean(1, keepdim=True))
        # [missing factor] return g - (g * y).sum(1, keepdim=True)
        # [sign of one term] return y * (g + (g * y).sum(1, keepdim=True))

    @staticmethod
    def sample_inputs():
        return [(torch.randn(2, 3),)]


class RowNorm(Function):
    """The length of each row; the gradient of a row of zeros is zero."""

    @staticmethod
    def forward(ctx, x):
        y = x.norm(dim=1, keepdim=True)
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * x / y.clamp(min=1e-30)
        # [not finite at zero] return g * x / y
        # [missing factor] return g * x
        # [constant factor] return 2 * g * x / y.clamp(min=1e-30)
        # [wrong power] return g * x / y.square().clamp(min=1e-30)
        # [wrong dimension] return g * x / x.norm(dim=0, keepdim=True).clamp(min=1e-30)

    @staticmethod
    def sample_inputs():
        return [(torch.randn(2, 3),)]

    @staticmethod
    def kink_inputs():
        return [(torch.tensor([[0.0, 0.0], [3.0, 4.0]]),)]


class CumulativeSum(Function):
    @staticmethod
    def forward(ctx, x):
        return x.cumsum(1)

    @staticmethod
    def backward(ctx, g):
        return g.flip(1).cumsum(1).flip(1)
        # [not transposed] return g.cumsum(1)
        # [wrong order of elements] return g.flip(1).cumsum(1)
        # [wrong dimension] return g.flip(0).cumsum(0).flip(0)
        # [wrong shape] return g
        # [off by one] return g.flip(1).cumsum(1).flip(1) - g
        # [edits grad_output] return g.flip(1).cumsum(1).flip(1) + 0 * g.zero_()

    @staticmethod
    def sample_inputs():
        return [(torch.randn(2, 5),)]


class Variance(Function):
    """Of each row, divided by n - 1."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        # [kept on ctx] ctx.save_for_backward(x); ctx.centered = x - x.mean(1, keepdim=True)
        return x.var(1, keepdim=True)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        centered = x - x.mean(1, keepdim=True)
        # [kept on ctx] centered = ctx.centered
        # [missing term] centered = x
        # [wrong dimension] centered = x - x.mean(0, keepdim=True)
        # [wrong size in a mean] centered = x - x.mean()
        return g * 2 * centered / (x.shape[1] - 1)
        # [off by one] return g * 2 * centered / x.shape[1]

    @staticmethod
    def sample_inputs():
        return [(torch.randn(4, 3),)]

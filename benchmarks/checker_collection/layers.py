"""Normalisations, dropout, gates."""

import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class LayerNorm(Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        mean, rstd = x.mean(1, keepdim=True), (x.var(1, keepdim=True, correction=0) + 0.1).rsqrt()
        ctx.save_for_backward((x - mean) * rstd, rstd, weight)
        return (x - mean) * rstd * weight + bias

    @staticmethod
    @once_differentiable
    # [kept on ctx]
    def backward(ctx, g):
        normed, rstd, weight = ctx.saved_tensors
        gn = g * weight
        mean, slope = gn.mean(1, keepdim=True), (gn * normed).mean(1, keepdim=True)
        # [sum for mean] mean, slope = gn.sum(1, keepdim=True), (gn * normed).sum(1, keepdim=True)
        # [wrong dimension] mean, slope = gn.mean(0), (gn * normed).mean(0)
        gx = gn - mean - normed * slope
        # [constant statistics] gx = gn
        # [constant statistics 2] gx = gn - mean
        return gx * rstd, (g * normed).sum(0), g.sum(0)
        # [swapped] return gx * rstd, g.sum(0), (g * normed).sum(0)

    @staticmethod
    def sample_inputs():
        return [(torch.randn(2, 4), torch.rand(4) + 0.5, torch.randn(4))]


class BatchNorm(Function):
    """Over the first dimension."""

    @staticmethod
    def forward(ctx, x, gamma, beta, eps=0.1):
        ctx.save_for_backward(x, gamma)
        ctx.eps = eps
        return gamma * (x - x.mean(0)) / (x.var(0, correction=0) + eps).sqrt() + beta

    @staticmethod
    def backward(ctx, g):
        x, gamma = ctx.saved_tensors
        std = (x.var(0, correction=0) + ctx.eps).sqrt()
        # [missing term] std = x.var(0, correction=0).sqrt()
        # [ignores a parameter] std = (x.var(0, correction=0) + 0.1).sqrt()
        # [off by one] std = (x.var(0) + ctx.eps).sqrt()
        normed = (x - x.mean(0)) / std
        gn = g * gamma
        gx = (gn - gn.mean(0) - normed * (gn * normed).mean(0)) / std
        # [constant statistics] gx = gn / std
        # [constant statistics 2] gx = (gn - gn.mean(0)) / std
        # [missing factor] gx = gn - gn.mean(0) - normed * (gn * normed).mean(0)
        return gx, (g * normed).sum(0), g.sum(0), None
        # [mean for sum] return gx, (g * normed).mean(0), g.mean(0), None
        # [number of gradients] return gx, (g * normed).sum(0), g.sum(0)

    @staticmethod
    def sample_inputs():
        x, gamma, beta = torch.randn(4, 3), torch.rand(3) + 0.5, torch.randn(3)
        return [(x, gamma, beta), (x, gamma, beta, 0.5)]


class RMSNorm(Function):
    @staticmethod
    def forward(ctx, x):
        rms = (x.square().mean(1, keepdim=True) + 0.01).sqrt()
        ctx.save_for_backward(x)
        ctx.rms = None
        # [kept on ctx] ctx.rms = rms
        return x / rms

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        rms = (x.square().mean(1, keepdim=True) + 0.01).sqrt()
        # [kept on ctx] rms = ctx.rms
        return g / rms - x * (g * x).mean(1, keepdim=True) / rms**3
        # [constant statistics] return g / rms
        # [wrong power] return g / rms - x * (g * x).mean(1, keepdim=True) / rms**2
        # [sum for mean] return g / rms - x * (g * x).sum(1, keepdim=True) / rms**3
        # [missing factor] return g / rms - (g * x).mean(1, keepdim=True) / rms**3

    @staticmethod
    def sample_inputs():
        return [(torch.randn(2, 4),)]


class Dropout(Function):
    """Keeps what a mask that is drawn in forward keeps, scaled up."""

    @staticmethod
    def forward(ctx, x, p=0.5):
        keep = (torch.rand_like(x) > p).to(x.dtype) / (1 - p)
        # [constant factor] keep = (torch.rand_like(x) > p).to(x.dtype)
        ctx.save_for_backward(keep)
        # [drawn again] ctx.p = p
        # [constant factor] ctx.save_for_backward(keep / (1 - p))
        return x * keep

    @staticmethod
    def backward(ctx, g):
        (keep,) = ctx.saved_tensors
        # [drawn again] keep = (torch.rand_like(g) > ctx.p).to(g.dtype) / (1 - ctx.p)
        return g * keep, None
        # [no mask] return g, None
        # [wrong mask] return g * (1 - keep), None
        # [missing factor] return g * (keep > 0), None

    @staticmethod
    def sample_inputs():
        x = torch.randn(3, 4)
        return [(x,), (x, 0.25)]


class GatedLinearUnit(Function):
    """The first half of each row times the sigmoid of the second."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        a, b = x.chunk(2, -1)
        return a * b.sigmoid()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        a, b = x.chunk(2, -1)
        # [swapped] b, a = x.chunk(2, -1)
        s = b.sigmoid()
        return torch.cat([g * s, g * a * s * (1 - s)], -1)
        # [wrong order of elements] return torch.cat([g * a * s * (1 - s), g * s], -1)
        # [missing term] return torch.cat([g * s, 0 * g], -1)
        # [wrong shape] return g * s
        # [second derivative cut] return torch.cat([g * s, g * a.detach() * s * (1 - s)], -1)

    @staticmethod
    def sample_inputs():
        return [(torch.randn(2, 4),)]


class ScaleAndShift(Function):
    """Of each channel of an image (N, C, H, W)."""

    @staticmethod
    def forward(ctx, x, scale, shift):
        ctx.save_for_backward(x, scale)
        return x * scale[:, None, None] + shift[:, None, None]

    @staticmethod
    def backward(ctx, g):
        x, scale = ctx.saved_tensors
        gx = g * scale[:, None, None]
        # [wrong dimension] gx = g * scale
        return gx, (g * x).sum((0, 2, 3)), g.sum((0, 2, 3))
        # [mean for sum] return gx, (g * x).sum((0, 2, 3)), g.mean((0, 2, 3))
        # [wrong size in a mean] return gx, (g * x).sum((2, 3)).mean(0), g.sum((0, 2, 3))
        # [missing gradient] return gx, (g * x).sum((0, 2, 3)), None

    @staticmethod
    def sample_inputs():
        return [(torch.randn(2, 2, 2, 2), torch.randn(2), torch.randn(2))]

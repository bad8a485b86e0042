"""Losses: one number for a batch."""

import torch
from torch.autograd import Function


class MeanSquaredError(Function):
    @staticmethod
    def forward(ctx, prediction, target):
        ctx.save_for_backward(prediction, target)
        # [kept on ctx] ctx.error = prediction - target
        return (prediction - target).square().mean()

    @staticmethod
    def backward(ctx, grad_output):
        prediction, target = ctx.saved_tensors
        # [kept on ctx] pass
        error = prediction - target
        # [kept on ctx] error = ctx.error
        grad = grad_output * 2 * error / error.numel()
        # [ignores grad_output] grad = 2 * error / error.numel()
        # [sum for mean] grad = grad_output * 2 * error
        # [constant factor] grad = grad_output * error / error.numel()
        # [wrong size in a mean] grad = grad_output * 2 * error / error.shape[0]
        # [not linear in grad_output] grad = grad_output**2 * 2 * error / error.numel()
        return grad, -grad

    @staticmethod
    def sample_inputs():
        return [(torch.randn(2, 3), torch.randn(2, 3))]


class CrossEntropy(Function):
    """Of logits (N, C) and classes (N,)."""

    @staticmethod
    def forward(ctx, logits, target):
        log_p = logits.log_softmax(1)
        ctx.save_for_backward(logits, target)
        return -log_p[torch.arange(len(target)), target].mean()

    @staticmethod
    def backward(ctx, grad_output):
        logits, target = ctx.saved_tensors
        p = logits.softmax(1)
        # [overflow] p = logits.exp() / logits.exp().sum(1, keepdim=True)
        # [wrong dimension] p = logits.softmax(0)
        # [missing factor] p = logits
        grad = p - torch.nn.functional.one_hot(target, logits.shape[1])
        # [missing term] grad = p
        # [sign of one term] grad = p + torch.nn.functional.one_hot(target, logits.shape[1])
        # [missing minus] grad = torch.nn.functional.one_hot(target, logits.shape[1]) - p
        return grad_output * grad / len(target), None
        # [wrong size in a mean] return grad_output * grad / logits.numel(), None
        # [ignores grad_output] return grad / len(target), None

    @staticmethod
    def sample_inputs():
        return [(torch.randn(3, 4), torch.tensor([1, 3, 0]))]


class BinaryCrossEntropy(Function):
    """Of logits and soft labels, which get no gradient; summed."""

    no_gradient = ("target",)

    @staticmethod
    def forward(ctx, logits, target):
        ctx.save_for_backward(logits, target)
        return (torch.nn.functional.softplus(logits) - target * logits).sum()

    @staticmethod
    def backward(ctx, grad_output):
        logits, target = ctx.saved_tensors
        return grad_output * (logits.sigmoid() - target), None
        # [missing minus] return grad_output * (target - logits.sigmoid()), None
        # [missing factor] return grad_output * (logits - target), None
        # [ignores grad_output] return logits.sigmoid() - target, None
        # [mean for sum] return grad_output * (logits.sigmoid() - target) / len(logits), None
        # [missing term] return grad_output * logits.sigmoid(), None
        # [overflow] e = logits.exp(); return grad_output * (e / (1 + e) - target), None

    @staticmethod
    def sample_inputs():
        return [(torch.randn(2, 3), torch.rand(2, 3))]


class Huber(Function):
    """Quadratic up to delta, then linear."""

    @staticmethod
    def forward(ctx, x, delta=1.0):
        ctx.save_for_backward(x)
        ctx.delta = delta
        size = x.abs()
        return torch.where(size <= delta, x * x / 2, delta * (size - delta / 2))

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x.clamp(-ctx.delta, ctx.delta), None
        # [ignores a parameter] return g * x.clamp(-1, 1), None
        # [no mask] return g * x, None
        # [missing factor] return g * torch.where(x.abs() <= ctx.delta, x, x.sign()), None
        # [constant factor in one term] return g * (2 * x).clamp(-ctx.delta, ctx.delta), None

    @staticmethod
    def sample_inputs():
        x = torch.tensor([[-2.5, 0.3, 1.4], [0.7, -0.4, 3.0]])
        return [(x,), (x, 0.5)]


class MaskedMean(Function):
    """The mean of the squares of the rows that count."""

    @staticmethod
    def forward(ctx, x, mask):
        ctx.save_for_backward(x, mask)
        return x[mask].square().mean()

    @staticmethod
    def backward(ctx, g):
        x, mask = ctx.saved_tensors
        scale = 2 / (mask.sum() * x.shape[1])
        # [wrong size in a mean] scale = 2 / x.numel()
        return g * scale * x * mask[:, None], None
        # [wrong mask] return g * scale * x * ~mask[:, None], None

    @staticmethod
    def sample_inputs():
        return [(torch.randn(3, 2), torch.tensor([True, False, True]))]


class KLDivergence(Function):
    """sum p (log p - log q), of log-probabilities q; p gets a gradient too."""

    @staticmethod
    def forward(ctx, log_q, p):
        ctx.save_for_backward(log_q, p)
        return (p * (p.log() - log_q)).sum()

    @staticmethod
    def backward(ctx, g):
        log_q, p = ctx.saved_tensors
        return -g * p, g * (p.log() - log_q + 1)
        # [missing minus] return g * p, g * (p.log() - log_q + 1)
        # [missing term] return -g * p, g * (p.log() - log_q)
        # [missing gradient] return -g * p, None
        # [wrong order of gradients] return g * (p.log() - log_q + 1), -g * p
        # [extra factor] return -g * p * log_q, g * (p.log() - log_q + 1)

    @staticmethod
    def sample_inputs():
        return [(torch.randn(2, 3).log_softmax(1), torch.rand(2, 3) + 0.2)]

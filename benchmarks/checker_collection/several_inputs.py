"""Several tensors that meet element by element, some of them broadcast."""

import torch
from torch.autograd import Function


class Multiply(Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        # [saved in another order] ctx.save_for_backward(y, x)
        return x * y

    @staticmethod
    def backward(ctx, grad_output):
        x, y = ctx.saved_tensors
        gx = (grad_output * y).sum_to_size(x.shape)
        # [copied] gx = (grad_output * x).sum_to_size(x.shape)
        gy = (grad_output * x).sum_to_size(y.shape)
        # [second derivative cut] gy = (grad_output * x.detach()).sum_to_size(y.shape)
        # [mean for sum] gy = (grad_output * x).mean(0).expand(y.shape)
        return gx, gy
        # [missing gradient] return gx, None
        # [number of gradients] return gx

    @staticmethod
    def sample_inputs():
        return [(torch.randn(2, 3), torch.randn(2, 3)), (torch.randn(2, 3), torch.randn(3))]


class Divide(Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x / y

    @staticmethod
    def backward(ctx, grad_output):
        x, y = ctx.saved_tensors
        gx = gy = None
        if ctx.needs_input_grad[0]:
            # [needs_input_grad] if ctx.needs_input_grad[1]:
            gx = grad_output / y
            # [missing factor] gx = grad_output
        if ctx.needs_input_grad[1]:
            # [needs_input_grad 2] if ctx.needs_input_grad[0]:
            # [needs_input_grad 3] if ctx.needs_input_grad[2]:
            gy = -grad_output * x / y**2
            # [missing minus] gy = grad_output * x / y**2
            # [depends on another gradient] gy = -gx * x / y
        return gx, gy

    @staticmethod
    def sample_inputs():
        return [(torch.randn(2, 3), torch.rand(2, 3) + 0.5)]


class AddBias(Function):
    @staticmethod
    def forward(ctx, x, bias):
        ctx.size = bias.shape[0]
        return x + bias

    @staticmethod
    def backward(ctx, g):
        return g, g.sum(0)
        # [wrong dimension] return g, g.sum(1)
        # [mean for sum] return g, g.mean(0)
        # [one part only] return g, g[0]
        # [float32] return g, torch.zeros(ctx.size) + g.sum(0).float()
        # [not linear in grad_output] return g, g.sum(0) / g.norm()

    @staticmethod
    def sample_inputs():
        return [(torch.randn(2, 3), torch.randn(3)), (torch.randn(3, 3), torch.randn(3))]


class LogAddExp(Function):
    """log(e^x + e^y)."""

    @staticmethod
    def forward(ctx, x, y):
        out = torch.logaddexp(x, y)
        ctx.save_for_backward(x, y, out)
        # [saved in another order] ctx.save_for_backward(y, x, out)
        return out

    @staticmethod
    def backward(ctx, grad_output):
        x, y, out = ctx.saved_tensors
        gx = grad_output * (x - out).exp()
        # [overflow] gx = grad_output * x.exp() / out.exp()
        # [missing factor] gx = grad_output * x.exp()
        # [wrong formula] gx = grad_output * (out - x).exp()
        gy = grad_output * (y - out).exp()
        # [copied] gy = grad_output * (x - out).exp()
        return gx, gy
        # [wrong order of gradients] return gy, gx

    @staticmethod
    def sample_inputs():
        return [(torch.randn(2, 3), torch.randn(2, 3))]


class Lerp(Function):
    """start + weight (end - start)."""

    @staticmethod
    def forward(ctx, start, end, weight):
        ctx.save_for_backward(start, end, weight)
        return start + weight * (end - start)

    @staticmethod
    def backward(ctx, g):
        start, end, weight = ctx.saved_tensors
        return g * (1 - weight), g * weight, g * (end - start)
        # [swapped] return g * weight, g * (1 - weight), g * (end - start)
        # [missing minus] return g * (1 - weight), g * weight, g * (start - end)
        # [missing term] return g, g * weight, g * (end - start)
        # [copied] return g * weight, g * weight, g * (end - start)
        # [missing gradient] return g * (1 - weight), g * weight, None

    @staticmethod
    def sample_inputs():
        return [(torch.randn(2, 3), torch.randn(2, 3), torch.rand(2, 3))]


class Where(Function):
    """x where the mask is true, else y."""

    @staticmethod
    def forward(ctx, mask, x, y):
        ctx.save_for_backward(mask)
        return torch.where(mask, x, y)

    @staticmethod
    def backward(ctx, grad_output):
        (mask,) = ctx.saved_tensors
        return None, grad_output * mask, grad_output * ~mask
        # [swapped] return None, grad_output * ~mask, grad_output * mask
        # [number of gradients] return grad_output * mask, grad_output * ~mask
        # [edits grad_output] return None, grad_output * mask, grad_output.masked_fill_(mask, 0)

    @staticmethod
    def sample_inputs():
        mask = torch.tensor([[True, False, True], [False, False, True]])
        return [(mask, torch.randn(2, 3), torch.randn(2, 3))]


class MaskedScale(Function):
    """x times a float mask that gets no gradient by design."""

    no_gradient = ("mask",)

    @staticmethod
    def forward(ctx, x, mask):
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx, grad_output):
        (mask,) = ctx.saved_tensors
        return grad_output * mask, None
        # [wrong mask] return grad_output * (1 - mask), None
        # [ignores grad_output] return mask, None
        # [all zero] return torch.zeros_like(grad_output), None

    @staticmethod
    def sample_inputs():
        return [(torch.randn(2, 3), torch.tensor([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]))]


class ScaleBy(Function):
    """alpha x, where alpha is a number without an annotation."""

    @staticmethod
    def forward(ctx, x, alpha):
        ctx.alpha = alpha
        return x * alpha

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.alpha, None
        # [constant factor] return grad_output, None
        # [missing minus] return grad_output * -ctx.alpha, None
        # [wrong power] return grad_output * ctx.alpha**2, None

    @staticmethod
    def sample_inputs():
        return [(torch.randn(2, 3), 0.5), (torch.randn(2, 3), -3.0)]


class SumOfSquares(Function):
    """Of any number of tensors, written as *parts."""

    @staticmethod
    def forward(ctx, *parts):
        # [tensors inside a tuple] def forward(ctx, parts):
        ctx.save_for_backward(*parts)
        return sum(part.square().sum() for part in parts)

    @staticmethod
    def backward(ctx, grad_output):
        return tuple(2 * grad_output * part for part in ctx.saved_tensors)
        # [list returned] return [2 * grad_output * part for part in ctx.saved_tensors]
        # [constant factor] return tuple(grad_output * part for part in ctx.saved_tensors)
        # [ignores grad_output] return tuple(2 * part for part in ctx.saved_tensors)
        # [copied] return tuple(2 * grad_output * part for part in ctx.saved_tensors[:1] * 2)

    @staticmethod
    def sample_inputs():
        return [(torch.randn(2, 2), torch.randn(2, 2))]
        # [tensors inside a tuple] return [((torch.randn(2, 2), torch.randn(2, 2)),)]

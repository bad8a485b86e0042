"""One tensor, element by element; some with a number beside it."""

import math

import torch
from torch.autograd import Function


class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        # [saved the wrong tensor] ctx.save_for_backward(x * x)
        # [nothing saved] ctx.shape = x.shape
        # [state on the class] Square.x = x
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        # [saved_tensors not unpacked] x = ctx.saved_tensors
        # [state on the class] x = Square.x
        return grad_output * 2 * x
        # [constant factor] return grad_output * x
        # [missing factor] return grad_output * 2
        # [float32] return (grad_output * 2 * x).float()
        # [missing return] grad_output * 2 * x
        # [number of gradients] return grad_output * 2 * x, x
        # [edits grad_output] return grad_output.mul_(2 * x)
        # [edits what was saved] return x.mul_(2 * grad_output)
        # [second derivative cut] return grad_output * 2 * x.detach()

    @staticmethod
    def sample_inputs():
        return [(torch.randn(2, 3),)]


class ReLU(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0)
        # [edits the input] return x.clamp_(min=0).clone()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * (x > 0)
        # [no mask] return grad_output
        # [wrong mask] return grad_output * (x < 0)
        # [wrong mask 2] return grad_output * (x > 1)
        # [mask from grad_output] return grad_output * (grad_output > 0)
        # [ignores grad_output] return (x > 0).to(x.dtype)
        # [edits grad_output] grad_output[x < 0] = 0; return grad_output
        # [extra factor] return grad_output * x.clamp(min=0)
        # [value at the kink] return grad_output * ((x > 0) + 2.0 * (x == 0))

    @staticmethod
    def sample_inputs():
        return [(torch.tensor([[-1.5, 0.3, 2.0], [0.7, -0.2, -3.0]]),)]

    @staticmethod
    def kink_inputs():
        return [(torch.tensor([[-1.5, 0.0, 2.0]]),)]


class LeakyReLU(Function):
    @staticmethod
    def forward(ctx, x, slope: float):
        y = torch.where(x > 0, x, slope * x)
        ctx.save_for_backward(x)
        # [mask from the output] ctx.save_for_backward(y)
        ctx.slope = slope
        # [state on the class] LeakyReLU.slope = slope
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        slope = ctx.slope
        # [state on the class] slope = LeakyReLU.slope
        # [ignores a parameter] slope = 0.01
        slopes = torch.where(x > 0, 1.0, slope)
        # [wrong mask] slopes = torch.where(x < 0, 1.0, slope)
        return grad_output * slopes, None
        # [number of gradients] return grad_output * slopes
        # [wrong order of gradients] return None, grad_output * slopes
        # [no mask] return grad_output, None

    @staticmethod
    def sample_inputs():
        x = torch.tensor([[-1.5, 0.3, 2.0], [0.7, -0.2, -3.0]])
        return [(x, 0.1), (x, -0.5)]


class Sigmoid(Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.sigmoid(x)
        ctx.save_for_backward(y)
        # [saved the wrong tensor] ctx.save_for_backward(x)
        # [overflow] ctx.save_for_backward(x)
        # [kept on ctx] ctx.y = y.detach()
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        # [kept on ctx] y = ctx.y
        # [overflow] y = y.exp() / (1 + y.exp())
        return grad_output * y * (1 - y)
        # [missing factor] return grad_output * y
        # [wrong formula] return grad_output * y * (1 + y)
        # [second derivative cut] return grad_output * (y * (1 - y)).detach()
        # [not linear in grad_output] return grad_output.clamp(-1, 1) * y * (1 - y)

    @staticmethod
    def sample_inputs():
        return [(torch.randn(2, 3),)]


class SiLU(Function):
    """x sigmoid(x). Backward computes the sigmoid again, so that it can be differentiated."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        # [kept on ctx] ctx.save_for_backward(x); ctx.s = x.sigmoid()
        return x * x.sigmoid()

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        s = x.sigmoid()
        # [kept on ctx] s = ctx.s
        return dy * (s + x * s * (1 - s))
        # [missing term] return dy * s
        # [sign of one term] return dy * (s - x * s * (1 - s))
        # [missing factor] return dy * (s + s * (1 - s))
        # [wrong parentheses] return dy * s + x * s * (1 - s)

    @staticmethod
    def sample_inputs():
        return [(torch.randn(2, 3),)]


class Softplus(Function):
    """log(1 + exp(beta x)) / beta, with a default for beta."""

    @staticmethod
    def forward(ctx, x, beta=1.0):
        ctx.save_for_backward(x)
        ctx.beta = beta
        return torch.nn.functional.softplus(x, beta)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * torch.sigmoid(ctx.beta * x), None
        # [ignores a parameter] return g * torch.sigmoid(x), None
        # [overflow] e = (ctx.beta * x).exp(); return g * e / (1 + e), None

    @staticmethod
    def sample_inputs():
        x = torch.randn(2, 3)
        return [(x,), (x, 2.5)]


class Clamp(Function):
    @staticmethod
    def forward(ctx, x, lo: float, hi: float):
        ctx.save_for_backward(x)
        ctx.lo, ctx.hi = lo, hi
        return x.clamp(lo, hi)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        inside = (x >= ctx.lo) & (x <= ctx.hi)
        # [no mask] inside = (x >= ctx.lo) | (x <= ctx.hi)
        # [wrong mask] inside = ~((x >= ctx.lo) & (x <= ctx.hi))
        return grad * inside, None, None
        # [all zero] return 0 * grad, None, None
        # [number of gradients] return grad * inside, None
        # [list returned] return [grad * inside, None, None]

    @staticmethod
    def sample_inputs():
        return [(torch.tensor([[-2.5, 0.3, 1.2], [0.7, -0.4, 3.0]]), -1.0, 0.9)]


class Reciprocal(Function):
    @staticmethod
    def forward(ctx, x):
        y = 1 / x
        ctx.save_for_backward(y)
        # [saved the wrong tensor] ctx.save_for_backward(x)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return -grad_output * y * y
        # [missing factor] return -grad_output * y
        # [edits what was saved] return -grad_output * y.square_()

    @staticmethod
    def sample_inputs():
        return [(torch.rand(2, 3) + 0.5,)]


class Gaussian(Function):
    """exp(-x^2 / (2 sigma^2)), without decorators, as older code has it."""

    def forward(ctx, x, sigma=1.0):
        y = torch.exp(-(x**2) / (2 * sigma**2))
        ctx.save_for_backward(x, y)
        ctx.sigma = sigma
        return y

    def backward(ctx, grad_output):
        x, y = ctx.saved_tensors
        return -grad_output * y * x / ctx.sigma**2, None
        # [ignores a parameter] return -grad_output * y * x, None
        # [missing factor] return -grad_output * y / ctx.sigma**2, None

    @staticmethod
    def sample_inputs():
        x = torch.randn(2, 3)
        return [(x,), (x, 0.7)]


class GELU(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        cdf = 0.5 * (1 + torch.erf(x / math.sqrt(2)))
        # [constant factor in one term] cdf = 1 + torch.erf(x / math.sqrt(2))
        pdf = torch.exp(-x * x / 2) / math.sqrt(2 * math.pi)
        # [constant factor in one term 2] pdf = torch.exp(-x * x / 2) / math.sqrt(math.pi)
        return grad_output * (cdf + x * pdf)
        # [missing term] return grad_output * cdf
        # [missing factor] return grad_output * (cdf + pdf)
        # [sign of one term] return grad_output * (cdf - x * pdf)

    @staticmethod
    def sample_inputs():
        return [(torch.randn(2, 3),)]


class Abs(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.abs()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * x.sign()
        # [not finite at zero] return grad_output * x / x.abs()
        # [missing factor] return grad_output
        # [missing minus] return -grad_output * x.sign()
        # [extra factor] return grad_output * x
        # [not linear in grad_output] return grad_output.sign() * x.sign()

    @staticmethod
    def sample_inputs():
        return [(torch.tensor([[-1.5, 0.3, 2.0], [0.7, -0.2, -3.0]]),)]

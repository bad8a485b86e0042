"""What PyTorch offers beside a forward and a backward."""

import numpy
import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class CubeBothModes(Function):
    """x^3 for torch.func: vmap, and forward mode."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        (x,) = inputs
        # [inputs not unpacked] x = inputs
        ctx.save_for_backward(x)
        # [saved the wrong tensor] ctx.save_for_backward(output)
        ctx.save_for_forward(x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 3 * x**2
        # [wrong power] return grad_output * 3 * x**3

    @staticmethod
    def jvp(ctx, tangent):
        (x,) = ctx.saved_tensors
        return tangent * 3 * x**2
        # [wrong jvp] return 3 * x**2
        # [wrong jvp 2] return tangent * x**2
        # [wrong jvp 3] return tangent * 3 * x

    @staticmethod
    def sample_inputs():
        return [(torch.randn(2, 3),)]


class MultiplyBothModes(Function):
    """x y for torch.func, with a rule for vmap that is written out."""

    @staticmethod
    def forward(x, y):
        return x * y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y, g * x
        # [wrong order of gradients] return g * x, g * y
        # [missing gradient] return g * y, None

    @staticmethod
    def jvp(ctx, x_t, y_t):
        x, y = ctx.saved_tensors
        return x_t * y + x * y_t
        # [wrong jvp] return x_t * y
        # [wrong jvp 2] return x_t * x + y * y_t

    @staticmethod
    def vmap(info, in_dims, x, y):
        x, y = (t if d is None else t.movedim(d, 0) for t, d in zip((x, y), in_dims, strict=True))
        return MultiplyBothModes.apply(x, y), 0
        # [wrong vmap] return MultiplyBothModes.apply(x, y), 1
        # [wrong vmap 2] return MultiplyBothModes.apply(x, x), 0

    @staticmethod
    def sample_inputs():
        return [(torch.randn(3, 3), torch.randn(3, 3))]


class ReLUInPlace(Function):
    """Works on its input, and says so."""

    @staticmethod
    def forward(ctx, x):
        x.clamp_(min=0)
        ctx.mark_dirty(x)
        # [mark_dirty missing] pass
        ctx.save_for_backward(x)
        return x
        # [mark_dirty missing 2] return x.clone()

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * (y > 0)
        # [no mask] return g
        # [edits grad_output] return g.mul_(y > 0)

    @staticmethod
    def sample_inputs():
        return [(torch.tensor([[-1.5, 0.3, 2.0], [0.7, -0.2, -3.0]]),)]


class MinAndMax(Function):
    """Two outputs, of each row."""

    @staticmethod
    def forward(ctx, x):
        (low, at_low), (high, at_high) = x.min(1), x.max(1)
        ctx.save_for_backward(at_low, at_high)
        # [saved in another order] ctx.save_for_backward(at_high, at_low)
        ctx.shape = x.shape
        return low, high

    @staticmethod
    def backward(ctx, g_low, g_high):
        # [swapped grad_outputs] def backward(ctx, g_high, g_low):
        # [one grad_output of two] def backward(ctx, g_low):
        at_low, at_high = (index[:, None] for index in ctx.saved_tensors)
        grad = g_low.new_zeros(ctx.shape).scatter(1, at_low, g_low[:, None])
        # [sign of one term] grad = g_low.new_zeros(ctx.shape).scatter(1, at_low, -g_low[:, None])
        # [missing term] grad = g_low.new_zeros(ctx.shape)
        # [no mask] grad = g_low[:, None].expand(ctx.shape)
        return grad.scatter_add(1, at_high, g_high[:, None])
        # [copied] return grad.scatter_add(1, at_high, g_low[:, None])
        # [overwrites instead of adding] return grad.scatter(1, at_high, g_high[:, None])

    @staticmethod
    def sample_inputs():
        return [(torch.randn(2, 4),)]


class UnusedOutputs(Function):
    """Two outputs, and None as the gradient of one that nobody used."""

    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x)
        return x.sin(), x.square()

    @staticmethod
    def backward(ctx, g_sin, g_square):
        (x,) = ctx.saved_tensors
        grad = torch.zeros_like(x)
        if g_sin is not None:
            # [None not handled] if True:
            grad = grad + g_sin * x.cos()
            # [missing minus] grad = grad - g_sin * x.cos()
        if g_square is not None:
            # [depends on another gradient] if g_square is not None and g_sin is not None:
            grad = grad + g_square * 2 * x
            # [overwrites instead of adding] grad = g_square * 2 * x
            # [constant factor in one term] grad = grad + g_square * x
        return grad

    @staticmethod
    def sample_inputs():
        return [(torch.randn(2, 3),)]


class ShrinkWithMask(Function):
    """A second output that is a float and not differentiable."""

    @staticmethod
    def forward(ctx, x):
        kept = (x.abs() > 0.5).to(x.dtype)
        ctx.mark_non_differentiable(kept)
        ctx.save_for_backward(kept)
        return (x - 0.5 * x.sign()) * kept, kept

    @staticmethod
    def backward(ctx, g, _):
        (kept,) = ctx.saved_tensors
        return g * kept
        # [no mask] return g
        # [wrong mask] return g * (1 - kept)
        # [constant factor] return 0.5 * g * kept
        # [swapped grad_outputs] return _ * kept
        # [number of gradients] return g * kept, g

    @staticmethod
    def sample_inputs():
        return [(torch.tensor([[-2.0, 0.3, 0.8], [1.4, -0.1, -0.9]]),)]


class NumPySinh(Function):
    """Goes through NumPy and comes back in the dtype and on the device of its input."""

    @staticmethod
    def forward(ctx, x):
        y = torch.from_numpy(numpy.sinh(x.detach().cpu().numpy())).to(x)
        # [float32] y = torch.from_numpy(numpy.sinh(x.detach().cpu().float().numpy()))
        ctx.save_for_backward(x)
        return y

    @staticmethod
    @once_differentiable
    # [second derivative cut]
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        slope = torch.from_numpy(numpy.cosh(x.detach().cpu().numpy())).to(x)
        # [float32 2] slope = torch.from_numpy(numpy.cosh(x.detach().cpu().float().numpy()))
        # [wrong formula] slope = torch.from_numpy(numpy.sinh(x.detach().cpu().numpy())).to(x)
        return g * slope
        # [ignores grad_output] return slope

    @staticmethod
    def sample_inputs():
        return [(torch.randn(2, 3),)]


class ComplexMultiply(Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y.conj(), g * x.conj()
        # [missing conj] return g * y, g * x
        # [missing conj 2] return g * y.conj(), g * x
        # [extra conj] return g.conj() * y.conj(), g * x.conj()
        # [wrong order of gradients] return g * x.conj(), g * y.conj()
        # [real part only] return (g * y.conj()).real.to(g.dtype), g * x.conj()

    @staticmethod
    def sample_inputs():
        return [(torch.randn(2, 3, dtype=torch.cfloat), torch.randn(2, 3, dtype=torch.cfloat))]


class SquaredModulus(Function):
    """|z|^2: real numbers of complex ones."""

    @staticmethod
    def forward(ctx, z):
        ctx.save_for_backward(z)
        return z.real**2 + z.imag**2

    @staticmethod
    def backward(ctx, g):
        (z,) = ctx.saved_tensors
        return 2 * g * z
        # [extra conj] return 2 * g * z.conj()
        # [constant factor] return g * z
        # [real part only] return 2 * g * z.real
        # [missing factor] return 2 * g * z.abs()

    @staticmethod
    def sample_inputs():
        return [(torch.randn(2, 3, dtype=torch.cfloat),)]


class Float32Only(Function):
    """Refuses all but float32, as a kernel for one dtype does."""

    @staticmethod
    def forward(ctx, x):
        if x.dtype != torch.float32:
            raise TypeError("expected float32")
        ctx.save_for_backward(x)
        return x.tanh()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (1 - x.tanh() ** 2)
        # [wrong power] return g * (1 - x.tanh())
        # [missing minus] return g * (x.tanh() ** 2 - 1)
        # [sign of one term] return g * (1 + x.tanh() ** 2)

    @staticmethod
    def sample_inputs():
        return [(torch.randn(2, 3),)]


class ThroughModule(Function):
    """Calls a module without parameters, and differentiates through it anew."""

    @staticmethod
    def forward(ctx, x, module):
        ctx.save_for_backward(x)
        ctx.module = module
        return module(x)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        x = ctx.saved_tensors[0].detach().requires_grad_()
        with torch.enable_grad():
            # [enable_grad missing] if True:
            y = ctx.module(x)
            # [wrong formula] y = ctx.module(2 * x)
        (grad,) = torch.autograd.grad(y, x, g)
        # [constant factor] (grad,) = torch.autograd.grad(2 * y, x, g)
        return grad, None

    @staticmethod
    def sample_inputs():
        return [(torch.randn(2, 3), torch.nn.Sequential(torch.nn.Tanh(), torch.nn.Softplus()))]


class Checkpoint(Function):
    """Runs a callable that it is given first, and again in backward."""

    @staticmethod
    def forward(ctx, run, *args):
        ctx.run = run
        ctx.save_for_backward(*args)
        return run(*args)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        args = [arg.detach().requires_grad_() for arg in ctx.saved_tensors]
        # [not detached] args = list(ctx.saved_tensors)
        with torch.enable_grad():
            # [enable_grad missing] if True:
            y = ctx.run(*args)
        grads = torch.autograd.grad(y, args, g)
        # [ignores grad_output] grads = torch.autograd.grad(y.sum(), args)
        return None, *grads
        # [wrong order of gradients] return None, *reversed(grads)

    @staticmethod
    def sample_inputs():
        return [(lambda a, b: a.sin() * b.exp(), torch.randn(2, 3), torch.randn(2, 3))]


class PooledByName(Function):
    """Takes a string, and answers a number that is no tensor beside its output."""

    @staticmethod
    def forward(ctx, x, reduction):
        ctx.shape, ctx.reduction = x.shape, reduction
        y = x.sum() if reduction == "sum" else x.mean()
        return y, x.numel()

    @staticmethod
    def backward(ctx, g, _):
        # [one grad_output of two] def backward(ctx, g):
        scale = 1 if ctx.reduction == "sum" else 1 / ctx.shape.numel()
        # [ignores a parameter] scale = 1 / ctx.shape.numel()
        # [wrong size in a mean] scale = 1 if ctx.reduction == "sum" else 1 / ctx.shape[0]
        return (scale * g).expand(ctx.shape), None

    @staticmethod
    def sample_inputs():
        x = torch.randn(2, 3)
        return [(x, "sum"), (x, "mean")]


class FixedPoint(Function):
    """The solution y of y = tanh(y / 2 + x), by iteration; backward by the implicit function."""

    @staticmethod
    def forward(ctx, x):
        y = torch.zeros_like(x)
        for _ in range(200):
            # [endless loop] while (torch.tanh(y / 2 + x) - y).abs().max() >= 0:
            y = torch.tanh(y / 2 + x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        slope = 1 - y * y
        return g * slope / (1 - slope / 2)
        # [missing term] return g * slope
        # [sign of one term] return g * slope / (1 + slope / 2)
        # [missing factor] return g / (1 - slope / 2)
        # [wrong formula] return g * slope / (1 - slope)

    @staticmethod
    def sample_inputs():
        return [(torch.randn(2, 3),)]


class ClassMethods(Function):
    """x^4 with class methods."""

    @classmethod
    def forward(cls, ctx, x):
        ctx.save_for_backward(x)
        return x**4

    @classmethod
    def backward(cls, ctx, g):
        (x,) = ctx.saved_tensors
        return 4 * g * x**3
        # [constant factor] return g * x**3
        # [wrong power] return 4 * g * x**4
        # [state on the class] cls.x = getattr(cls, "x", x); return 4 * g * cls.x**3
        # [ignores grad_output] return 4 * x**3

    @staticmethod
    def sample_inputs():
        return [(torch.randn(2, 3),)]


@torch.library.custom_op("checker_collection::log1p", mutates_args=())
def log1p_op(x: torch.Tensor) -> torch.Tensor:
    """log(1 + x) as a custom operator."""
    return x.log1p()


def _setup(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def _backward(ctx, g):
    (x,) = ctx.saved_tensors
    return g / (1 + x)
    # [missing factor] return g
    # [wrong formula] return g / x
    # [missing minus] return -g / (1 + x)
    # [ignores grad_output] return 1 / (1 + x)


log1p_op.register_autograd(_backward, setup_context=_setup)
log1p_op.sample_inputs = lambda: [(torch.rand(2, 3) + 0.5,)]

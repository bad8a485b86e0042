"""Matrix products, and layers that are written with them."""

import torch
from torch.autograd import Function


class MatMul(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        # [saved in another order] ctx.save_for_backward(b, a)
        return a @ b

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g @ b.T, a.T @ g
        # [not transposed] return g @ b, a.T @ g
        # [wrong order of factors] return b.T @ g, a.T @ g
        # [transposed] return g @ b.T, (a.T @ g).T
        # [wrong order of gradients] return a.T @ g, g @ b.T
        # [missing gradient] return g @ b.T, None
        # [edits what was saved] return g @ b.T, a.T @ g + 0 * b.zero_()

    @staticmethod
    def sample_inputs():
        return [(torch.randn(2, 3), torch.randn(3, 4)), (torch.randn(3, 3), torch.randn(3, 3))]


class Linear(Function):
    """x weight^T + bias, where the bias may be left out."""

    @staticmethod
    def forward(ctx, x, weight, bias=None):
        ctx.save_for_backward(x, weight)
        ctx.has_bias = bias is not None
        y = x @ weight.T
        return y if bias is None else y + bias

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        grad_x = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            # [needs_input_grad] if ctx.needs_input_grad[1]:
            grad_x = grad_output @ weight
            # [edits grad_output] grad_x = grad_output.mul_(2) @ weight / 2
            # [second derivative cut] grad_x = grad_output.detach() @ weight
        if ctx.needs_input_grad[1]:
            grad_weight = grad_output.T @ x
            # [wrong order of factors] grad_weight = x.T @ grad_output
            # [mean for sum] grad_weight = grad_output.T @ x / x.shape[0]
            # [missing factor] grad_weight = grad_output.T @ torch.ones_like(x)
        if ctx.has_bias and ctx.needs_input_grad[2]:
            # [needs_input_grad 2] if ctx.needs_input_grad[3]:
            grad_bias = grad_output.sum(0)
            # [wrong dimension] grad_bias = grad_output.sum(1)
        return grad_x, grad_weight, grad_bias
        # [number of gradients] return grad_x, grad_weight

    @staticmethod
    def sample_inputs():
        x, weight = torch.randn(3, 4), torch.randn(2, 4)
        return [(x, weight), (x, weight, torch.randn(2))]


class BatchedMatMul(Function):
    """A weight that is shared by a batch of matrices."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        return g @ weight.T, (x.transpose(1, 2) @ g).sum(0)
        # [mean for sum] return g @ weight.T, (x.transpose(1, 2) @ g).mean(0)
        # [wrong dimension] return g @ weight.T, x.sum(0).T @ g.sum(0)
        # [one part only] return g @ weight.T, x[0].T @ g[0]
        # [not transposed] return g @ weight.T, (x @ g).sum(0)
        # [missing gradient] return None, (x.transpose(1, 2) @ g).sum(0)

    @staticmethod
    def sample_inputs():
        return [(torch.randn(2, 3, 4), torch.randn(4, 5))]


class QuadraticForm(Function):
    """x^T A x for a vector x and a square matrix A."""

    @staticmethod
    def forward(ctx, x, a):
        ctx.save_for_backward(x, a)
        return x @ a @ x

    @staticmethod
    def backward(ctx, g):
        x, a = ctx.saved_tensors
        return g * (a + a.T) @ x, g * torch.outer(x, x)
        # [assumes symmetry] return 2 * g * a @ x, g * torch.outer(x, x)
        # [missing term] return g * a @ x, g * torch.outer(x, x)
        # [ignores grad_output] return g * (a + a.T) @ x, torch.outer(x, x)
        # [wrong order of gradients] return g * torch.outer(x, x), g * (a + a.T) @ x

    @staticmethod
    def sample_inputs():
        return [(torch.randn(3), torch.randn(3, 3))]


class Inverse(Function):
    @staticmethod
    def forward(ctx, a):
        inverse = torch.linalg.inv(a)
        ctx.save_for_backward(inverse)
        # [saved the wrong tensor] ctx.save_for_backward(a)
        return inverse

    @staticmethod
    def backward(ctx, g):
        (inverse,) = ctx.saved_tensors
        return -inverse.T @ g @ inverse.T
        # [not transposed] return -inverse @ g @ inverse
        # [elementwise for matrix product] return -g * inverse * inverse
        # [transposed] return -inverse @ g.T @ inverse
        # [missing factor] return -g @ inverse.T

    @staticmethod
    def sample_inputs():
        return [(torch.randn(3, 3) + 3 * torch.eye(3),)]


class Convolution(Function):
    """A correlation along the last dimension of x (N, C, L), with a weight (O, C, K)."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        windows = x.unfold(2, weight.shape[2], 1)
        return torch.einsum("nclk,ock->nol", windows, weight)

    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        size = weight.shape[2]
        windows = x.unfold(2, size, 1)
        grad_weight = torch.einsum("nclk,nol->ock", windows, g)
        # [mean for sum] grad_weight = torch.einsum("nclk,nol->ock", windows, g) / x.shape[0]
        # [wrong order of elements] grad_weight = torch.einsum("nclk,nol->ock", windows, g).flip(2)
        # [one part only] grad_weight = torch.einsum("clk,ol->ock", windows[0], g[0])
        padded = torch.nn.functional.pad(g, (size - 1, size - 1)).unfold(2, size, 1)
        grad_x = torch.einsum("nolk,ock->ncl", padded, weight.flip(2))
        # [wrong order of elements 2] grad_x = torch.einsum("nolk,ock->ncl", padded, weight)
        return grad_x, grad_weight
        # [missing gradient] return None, grad_weight

    @staticmethod
    def sample_inputs():
        return [(torch.randn(2, 2, 6), torch.randn(3, 2, 3))]


class AveragePool(Function):
    """Means over windows of two neighbours in the last dimension."""

    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return x.reshape(*x.shape[:-1], -1, 2).mean(-1)

    @staticmethod
    def backward(ctx, g):
        return g.repeat_interleave(2, -1) / 2
        # [sum for mean] return g.repeat_interleave(2, -1)
        # [wrong order of elements] return torch.cat([g, g], -1) / 2
        # [layout] return g.as_strided(g.shape, (g.shape[1], 1)).repeat_interleave(2, -1) / 2

    @staticmethod
    def sample_inputs():
        return [(torch.randn(2, 6),)]


class Attention(Function):
    """softmax(q k^T) v, with the second derivative left to autograd by recomputation."""

    @staticmethod
    def forward(ctx, q, k, v):
        ctx.save_for_backward(q, k, v)
        return (q @ k.T).softmax(1) @ v

    @staticmethod
    def backward(ctx, g):
        q, k, v = ctx.saved_tensors
        p = (q @ k.T).softmax(1)
        gp = g @ v.T
        gs = p * (gp - (gp * p).sum(1, keepdim=True))
        # [missing term] gs = p * gp
        # [missing factor] gs = gp - (gp * p).sum(1, keepdim=True)
        return gs @ k, gs.T @ q, p.T @ g
        # [copied] return gs @ k, gs @ k, p.T @ g
        # [not transposed] return gs @ k, gs @ q, p.T @ g
        # [swapped] return gs.T @ q, gs @ k, p.T @ g

    @staticmethod
    def sample_inputs():
        return [(torch.randn(3, 2), torch.randn(3, 2), torch.randn(3, 2))]

"""Functions that take integers: rows of a table, classes, orders, segments."""

import torch
from torch.autograd import Function


class Lookup(Function):
    """Rows of a table, as an embedding takes them."""

    @staticmethod
    def forward(ctx, index, table):
        ctx.save_for_backward(index)
        ctx.shape = table.shape
        return table[index]

    @staticmethod
    def backward(ctx, g):
        (index,) = ctx.saved_tensors
        grad_table = g.new_zeros(ctx.shape)
        # [float32] grad_table = torch.zeros(ctx.shape)
        grad_table.index_put_((index,), g, accumulate=True)
        # [overwrites instead of adding] grad_table[index] = g
        # [overwrites instead of adding 2] grad_table[index] += g
        # [ignores grad_output] grad_table.index_put_((index,), torch.ones_like(g), accumulate=True)
        # [wrong shape] pass
        # [float32] grad_table.index_put_((index,), g.float(), accumulate=True)
        return None, grad_table
        # [missing gradient] return None, None
        # [number of gradients] return grad_table

    @staticmethod
    def sample_inputs():
        return [(torch.tensor([3, 0, 3, 1]), torch.randn(4, 3))]


class SparseLookup(Function):
    """The same, with a sparse gradient."""

    @staticmethod
    def forward(ctx, index, table):
        ctx.save_for_backward(index)
        ctx.shape = table.shape
        return table[index]

    @staticmethod
    def backward(ctx, g):
        (index,) = ctx.saved_tensors
        rows = index[None]
        # [wrong order of elements] rows = index.flip(0)[None]
        return None, torch.sparse_coo_tensor(rows, g, ctx.shape)
        # [constant factor] return None, torch.sparse_coo_tensor(rows, 2 * g, ctx.shape)
        # [missing minus] return None, torch.sparse_coo_tensor(rows, -g, ctx.shape)

    @staticmethod
    def sample_inputs():
        return [(torch.tensor([0, 2, 2]), torch.randn(4, 3))]


class Sort(Function):
    """Sorts each row."""

    @staticmethod
    def forward(ctx, x):
        values, order = x.sort(-1)
        ctx.save_for_backward(order)
        return values

    @staticmethod
    def backward(ctx, g):
        (order,) = ctx.saved_tensors
        return torch.zeros_like(g).scatter(-1, order, g)
        # [inverse permutation] return g.gather(-1, order)
        # [missing permutation] return g
        # [wrong order of elements] return torch.zeros_like(g).scatter(-1, order.flip(-1), g)

    @staticmethod
    def sample_inputs():
        return [(torch.randn(2, 6),)]


class ScatterAdd(Function):
    """Adds the rows of source into the rows of zeros that index names."""

    @staticmethod
    def forward(ctx, source, index, size: int):
        ctx.save_for_backward(index)
        return source.new_zeros(size, source.shape[1]).index_add(0, index, source)

    @staticmethod
    def backward(ctx, g):
        (index,) = ctx.saved_tensors
        return g[index], None, None
        # [missing permutation] return g[: len(index)], None, None
        # [number of gradients] return g[index], None
        # [wrong dimension] return g.sum(0).expand(len(index), -1), None, None

    @staticmethod
    def sample_inputs():
        return [(torch.randn(5, 2), torch.tensor([2, 0, 2, 1, 0]), 4)]


class SegmentMean(Function):
    """The mean of the rows of each segment, as a layer on a graph takes it."""

    @staticmethod
    def forward(ctx, x, segment):
        count = torch.bincount(segment).to(x.dtype)[:, None]
        ctx.save_for_backward(segment, count)
        return x.new_zeros(len(count), x.shape[1]).index_add(0, segment, x) / count

    @staticmethod
    def backward(ctx, g):
        segment, count = ctx.saved_tensors
        return (g / count)[segment], None
        # [sum for mean] return g[segment], None
        # [wrong size in a mean] return g[segment] / len(segment), None
        # [extra factor] return (g * count)[segment], None

    @staticmethod
    def sample_inputs():
        return [(torch.randn(5, 2), torch.tensor([0, 2, 1, 0, 2]))]


class Gather(Function):
    """One element of each row."""

    @staticmethod
    def forward(ctx, x, index):
        ctx.save_for_backward(index)
        ctx.shape = x.shape
        return x.gather(1, index[:, None])[:, 0]

    @staticmethod
    def backward(ctx, g):
        (index,) = ctx.saved_tensors
        column = index[:, None]
        # [off by one] column = (index[:, None] - 1) % ctx.shape[1]
        return g.new_zeros(ctx.shape).scatter(1, column, g[:, None]), None
        # [no mask] return g[:, None].expand(ctx.shape), None
        # [ignores grad_output] return g.new_zeros(ctx.shape).scatter(1, column, 1.0), None

    @staticmethod
    def sample_inputs():
        return [(torch.randn(3, 4), torch.tensor([1, 3, 0]))]


class TopK(Function):
    """The k largest of each row, and where they were."""

    @staticmethod
    def forward(ctx, x, k: int):
        values, index = x.topk(k)
        ctx.save_for_backward(index)
        ctx.shape = x.shape
        ctx.mark_non_differentiable(index)
        return values, index

    @staticmethod
    def backward(ctx, g, _):
        # [one grad_output of two] def backward(ctx, g):
        (index,) = ctx.saved_tensors
        grad = g.new_zeros(ctx.shape).scatter(1, index, g)
        # [wrong order of elements] grad = g.new_zeros(ctx.shape).scatter(1, index.flip(1), g)
        # [missing permutation] grad = torch.cat([g, g.new_zeros(ctx.shape)], 1)[:, : ctx.shape[1]]
        # [float32] grad = torch.zeros(ctx.shape).scatter(1, index, g.float())
        return grad, None

    @staticmethod
    def sample_inputs():
        return [(torch.randn(2, 5), 2)]

"""Exercise 13, embedding: y_n = row index_n of weight. Write backward.

    index (N,), integers from 0 to V - 1; weight (V, D): one row for each of V words

    grad_output   dL/dY, of the shape of Y, (N, D)
    you return    None, because integers have no gradient, and dL/dW, of shape (V, D)

Forward looks up one row of weight for each index. An index may occur several times, and some may
not occur at all.

The check runs in float64, because a numerical gradient needs many digits;
`grad_output.new_zeros(ctx.shape)` makes a tensor of zeros with the right dtype.

Check it:   python check.py exercises.embedding
            add --hint for a hint (twice for more), or --watch to check at every save
"""

import torch
from torch import Tensor


class Embedding(torch.autograd.Function):
    @staticmethod
    def forward(ctx, index: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(index)
        ctx.shape = weight.shape
        return weight[index]

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[None, Tensor]:
        (index,) = ctx.saved_tensors
        raise NotImplementedError  # your answer goes in place of this line

"""Exercise 8, linear: Y = X W^T + b, with b or without it. Write backward.

    x (N, in_features), weight (out_features, in_features), bias (out_features,) or left out

    grad_output   dL/dY, of the shape of Y, (N, out_features)
    to return     dL/dX, dL/dW, dL/db, each of the shape of its input, or None

Nobody needs the gradient for a batch of data, and each of these products costs time. So return
None where none is needed: `ctx.needs_input_grad` holds True or False for each input that forward
was called with. If bias was left out, that is two of them; a third gradient must then be None.

Check it:   python check.py exercises.linear
            add --hint for a hint, or --watch to check at every save
Train it:   python train.py function=exercise_linear
"""

import torch
from torch import Tensor


class Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        ctx.save_for_backward(x, weight)
        y = x @ weight.t()
        return y if bias is None else y + bias

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        raise NotImplementedError  # your answer goes in place of this line

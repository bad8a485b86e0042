"""Exercise 12, linear: Y = X W^T + b, with an optional bias b. Write backward.

    x (N, in_features), weight (out_features, in_features), bias (out_features,) or None

    grad_output   dL/dY, of the shape of Y, (N, out_features)
    you return    dL/dX, dL/dW, dL/db, each of the shape of its input, or None

Each of these gradients costs time, and in the first layer of a network nobody needs dL/dX, the
gradient of the data. `ctx.needs_input_grad` holds three values, True or False, one for each input
of forward. Compute a gradient where its value is True, and return None in its place otherwise. The
third value is False when bias is None.

The check runs in float64, because a numerical gradient needs many digits.

Check it:   python check.py exercises.linear
            add --hint for a hint (twice for more), or --watch to check at every save
Train it:   python train.py function=exercise_linear
"""

import torch
from torch import Tensor


class Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        y = x @ weight.t()
        return y if bias is None else y + bias

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        raise NotImplementedError  # your answer goes in place of this line

"""Exercise 18, network: a whole two-layer network as one Function. Write backward.

    hidden = x w1        x (N, features), w1 (features, H)
    active = max(hidden, 0)
    y = active w2        w2 (H, targets)

    grad_output   dL/dy, of the shape of y, (N, targets)
    you return    dL/dx or None, dL/dw1, dL/dw2, each of the shape of its input

Go through the three lines from the last to the first, and apply the chain rule to each. Don't use
autograd inside backward. As in exercise 12, compute dL/dx only if `ctx.needs_input_grad[0]` is
True. The lines already in backward compute hidden and active again.

At hidden = 0 you may choose between 0 and 1, as in exercise 4. `function=builtin` lets the gradient
pass there (`hidden >= 0`); if you do the same, the two loss curves are equal in every digit.

The check runs in float64, because a numerical gradient needs many digits.

Check it:   python check.py exercises.network
            add --hint for a hint (twice for more), or --watch to check at every save
Train it:   python train.py model=exercise_network
Compare:    python train.py -m function=builtin model=two_layer_net,exercise_network
"""

import torch
from torch import Tensor


class Network(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, w1: Tensor, w2: Tensor) -> Tensor:
        ctx.save_for_backward(x, w1, w2)
        hidden = x.mm(w1)
        active = hidden.clamp(min=0)
        return active.mm(w2)

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        x, w1, w2 = ctx.saved_tensors
        hidden = x.mm(w1)
        active = hidden.clamp(min=0)
        raise NotImplementedError  # your answer goes in place of this line

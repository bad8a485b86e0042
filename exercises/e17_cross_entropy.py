"""Exercise 17, cross_entropy: the loss of a classifier, for integer targets. Write backward.

    x (N, C): a score for each of N samples and C classes; target (N,): the right class, 0 to C - 1

    loss = the mean over n of -log y_n,target_n, where y_n is the softmax of row n of x

    grad_output   dL/dloss, a single number as a tensor of shape ()
    you return    dL/dx, of the shape of x, (N, C), and None, because integers have no gradient

The lines already in backward compute the softmax y from x. L is often this `loss` itself,
and then grad_output is 1. It is another number if L is, for example, 10 times this `loss`.

The check runs in float64, because a numerical gradient needs many digits.

Check it:   python check.py exercises.cross_entropy
            add --hint for a hint (twice for more), or --watch to check at every save
"""

import torch
from torch import Tensor


class CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, target: Tensor) -> Tensor:
        ctx.save_for_backward(x, target)
        log_y = torch.log_softmax(x, dim=1)
        return -log_y.gather(1, target.unsqueeze(1)).mean()

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, None]:
        x, target = ctx.saved_tensors
        y = torch.softmax(x, dim=1)
        raise NotImplementedError  # your answer goes in place of this line

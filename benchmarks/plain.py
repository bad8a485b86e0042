"""What people write today: the official example as one script, printing its loss or recording it.

python benchmarks/plain.py            # 500 steps, each loss printed
python benchmarks/plain.py recorded   # with SummaryWriter and tqdm
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import torch
from torch import Tensor


class OfficialReLU(torch.autograd.Function):
    """max(x, 0); the gradient is copied, and set to 0 where the input is negative."""

    @staticmethod
    def forward(ctx, input: Tensor) -> Tensor:
        ctx.save_for_backward(input)
        return input.clamp(min=0)

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (input,) = ctx.saved_tensors
        grad_input = grad_output.clone()
        grad_input[input < 0] = 0
        return grad_input


def fit(
    sizes: tuple[int, int, int, int] = (64, 1000, 100, 10),
    steps: int = 500,
    *,
    recorded: bool = False,
    lr: float = 1e-6,
    device: str = "cpu",
) -> float:
    """Run the plain loop, printing or recording every loss.

    Args:
        sizes: samples, features, hidden units and targets.

    Returns:
        Seconds, from the first step's start to the last one's end.
    """
    samples, features, hidden, targets = sizes
    torch.manual_seed(0)
    x, y = torch.randn(samples, features), torch.randn(samples, targets)
    w1, w2 = torch.randn(features, hidden), torch.randn(hidden, targets)
    x, y, w1, w2 = (tensor.to(device) for tensor in (x, y, w1, w2))
    w1.requires_grad_(), w2.requires_grad_()
    record: Callable[[int, float], object] = print
    count = range(steps)
    if recorded:
        from torch.utils.tensorboard import SummaryWriter
        from tqdm import tqdm

        writer = SummaryWriter()
        count = tqdm(count)

        def record(step: int, loss: float) -> None:
            writer.add_scalar("loss", loss, step)
            count.set_postfix(loss=loss)

    start = time.perf_counter()
    for step in count:
        y_pred = OfficialReLU.apply(x.mm(w1)).mm(w2)
        loss = (y_pred - y).pow(2).sum()
        record(step, loss.item())
        loss.backward()
        with torch.no_grad():
            w1 -= lr * w1.grad
            w2 -= lr * w2.grad
            w1.grad.zero_()
            w2.grad.zero_()
    if recorded:
        writer.close()
    return time.perf_counter() - start


if __name__ == "__main__":
    fit(recorded="recorded" in sys.argv[1:])

"""The older tutorial's two-layer example as one plain script that prints or records its loss.

python benchmarks/plain.py            # 500 steps, each loss printed
python benchmarks/plain.py recorded   # with SummaryWriter and tqdm
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable

import torch
from torch import Tensor

EXAMPLE = (64, 1000, 100, 10)  # samples, features, hidden units, targets


class MaskedReLU(torch.autograd.Function):
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
    steps: Iterable[int] = range(500),
    sizes: tuple[int, int, int, int] = EXAMPLE,
    *,
    record: Callable[[int, float], object] = print,
    lr: float = 1e-6,
    seed: int = 0,
    device: str = "cpu",
    dtype: torch.dtype = torch.float32,
) -> float:
    """Run the plain loop.

    Args:
        steps: the steps to do.
        sizes: samples, features, hidden units, targets.
        record: gets each step and its loss.

    Returns:
        Seconds, from the first step's start to the last one's end.
    """
    samples, features, hidden, targets = sizes
    torch.manual_seed(seed)
    x, y = torch.randn(samples, features), torch.randn(samples, targets)
    w1, w2 = torch.randn(features, hidden), torch.randn(hidden, targets)
    x, y, w1, w2 = (tensor.to(device, dtype) for tensor in (x, y, w1, w2))
    w1.requires_grad_()
    w2.requires_grad_()
    wait_for(device)
    start = time.perf_counter()
    for step in steps:
        y_pred = MaskedReLU.apply(x.mm(w1)).mm(w2)
        loss = (y_pred - y).pow(2).sum()
        record(step, loss.item())
        loss.backward()
        with torch.no_grad():
            w1 -= lr * w1.grad
            w2 -= lr * w2.grad
            w1.grad.zero_()
            w2.grad.zero_()
    wait_for(device)
    return time.perf_counter() - start


def wait_for(device: str) -> None:
    """Let an accelerator finish its work, before a clock is read."""
    if device != "cpu":
        torch.accelerator.synchronize()


def fit_recorded(steps: int = 500, sizes: tuple[int, int, int, int] = EXAMPLE, **options) -> float:
    """Run the same with a `SummaryWriter` and a bar that shows the loss; returns seconds."""
    from torch.utils.tensorboard import SummaryWriter
    from tqdm import tqdm

    bar = tqdm(range(steps))
    with SummaryWriter() as writer:

        def record(step: int, loss: float) -> None:
            writer.add_scalar("loss", loss, step)
            bar.set_postfix(loss=loss)

        return fit(bar, sizes, record=record, **options)


if __name__ == "__main__":
    if "recorded" in sys.argv[1:]:
        fit_recorded()
    else:
        fit()

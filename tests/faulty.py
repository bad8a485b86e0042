"""Functions as somebody may write them, with one fault each, for tests of how that is told."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import torch


def faulty(function: str) -> str:
    """The override that puts one of them between the layers."""
    return f"function.activation._target_=tests.faulty.{function}.apply"


class MaskedReLU(torch.autograd.Function):
    """The one without a fault, that the others change."""

    @staticmethod
    def forward(ctx, input: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(input)
        return input.clamp(min=0)

    @staticmethod
    def backward(ctx, grad_output: torch.Tensor) -> torch.Tensor:
        (input,) = ctx.saved_tensors
        return grad_output.masked_fill(input < 0, 0)


class NetworkStopsAtZero(torch.autograd.Function):
    """A whole network whose ReLU stops the gradient at exactly 0, where clamp passes it on."""

    @staticmethod
    def forward(ctx, x: torch.Tensor, w1: torch.Tensor, w2: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x, w1, w2)
        return x.mm(w1).clamp(min=0).mm(w2)

    @staticmethod
    def backward(ctx, grad_output: torch.Tensor) -> tuple[None, torch.Tensor, torch.Tensor]:
        x, w1, w2 = ctx.saved_tensors
        hidden = x.mm(w1)
        grad_hidden = grad_output.mm(w2.t()) * (hidden > 0)
        return None, x.t().mm(grad_hidden), hidden.clamp(min=0).t().mm(grad_output)


class Counted(MaskedReLU):
    """Keeps the number of its calls in a file, where a kill can't take it back."""

    calls = 0

    @staticmethod
    def forward(ctx, input: torch.Tensor) -> torch.Tensor:
        Counted.calls += 1
        with open("calls", "r+b" if Counted.calls > 1 else "wb", buffering=0) as file:
            file.write(b"%12d" % Counted.calls)
        return MaskedReLU.forward(ctx, input)


class RaisesAtStep250(MaskedReLU):
    calls = 0

    @staticmethod
    def forward(ctx, input: torch.Tensor) -> torch.Tensor:
        RaisesAtStep250.calls += 1
        if RaisesAtStep250.calls == 252:  # the lab itself calls it once, to try it
            raise ValueError("no more")
        return MaskedReLU.forward(ctx, input)


class SetsFlags(MaskedReLU):
    @staticmethod
    def forward(ctx, input: torch.Tensor) -> torch.Tensor:
        torch.set_default_dtype(torch.float64)
        torch.set_float32_matmul_precision("medium")
        torch.set_num_threads(3)
        return MaskedReLU.forward(ctx, input)


class BackwardRaises(MaskedReLU):
    @staticmethod
    def backward(ctx, grad_output: torch.Tensor) -> torch.Tensor:
        return grad_output.mm(grad_output)


class ForwardTypeError(MaskedReLU):
    @staticmethod
    def forward(ctx, input: torch.Tensor) -> torch.Tensor:
        return input + None


class ForwardOSError(MaskedReLU):
    @staticmethod
    def forward(ctx, input: torch.Tensor) -> torch.Tensor:
        return input + len(Path("no such table").read_text())


class TwoGradients(MaskedReLU):
    @staticmethod
    def backward(ctx, grad_output: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return grad_output, grad_output


class NoGradient(MaskedReLU):
    @staticmethod
    def backward(ctx, grad_output: torch.Tensor) -> None:
        return None


class ZeroGradient(MaskedReLU):
    @staticmethod
    def backward(ctx, grad_output: torch.Tensor) -> torch.Tensor:
        return torch.zeros_like(grad_output)


class NaNGradient(MaskedReLU):
    @staticmethod
    def backward(ctx, grad_output: torch.Tensor) -> torch.Tensor:
        return grad_output * float("nan")


class HiddenNaN(MaskedReLU):
    """sqrt where the input is positive, else 0: forward hides the NaN, backward does not."""

    @staticmethod
    def forward(ctx, input: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(input)
        return input.sqrt().nan_to_num()

    @staticmethod
    def backward(ctx, grad_output: torch.Tensor) -> torch.Tensor:
        (input,) = ctx.saved_tensors
        return grad_output * 0.5 / input.sqrt()


class CtrlCTwice(MaskedReLU):
    """Ctrl-C is pressed twice in the backward of step 3."""

    calls = 0

    @staticmethod
    def backward(ctx, grad_output: torch.Tensor) -> torch.Tensor:
        CtrlCTwice.calls += 1
        if CtrlCTwice.calls == 4:
            for _ in range(2):
                os.kill(os.getpid(), signal.SIGINT)
        return MaskedReLU.backward(ctx, grad_output)

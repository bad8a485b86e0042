"""Dropout: y = x / (1 - p) where an element is kept, else 0.

Derivation. The mask doesn't depend on x. A kept element has slope 1 / (1 - p), a dropped one 0:

    dL/dx = grad_output / (1 - p) where kept, else 0

Forward must store the mask. Drawn once more in backward, it would be a different one; and y = 0
doesn't say that an element was dropped, because a kept x may be 0.
"""

import torch
from torch import Tensor

HINTS = (
    "Backward multiplies by what forward multiplied by. Both parts of it, the mask and the "
    "number, must be stored in forward.",
    "`ctx.save_for_backward(kept)` in forward, and `ctx.p = p`. In backward, `(kept,) = "
    "ctx.saved_tensors`.",
)


class Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, p: float, seed: int) -> Tensor:
        generator = torch.Generator(x.device).manual_seed(seed)
        kept = torch.rand(x.shape, generator=generator, device=x.device) >= p
        ctx.save_for_backward(kept)
        ctx.p = p
        return x * kept / (1 - p)

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, None, None]:
        (kept,) = ctx.saved_tensors
        return grad_output * kept / (1 - ctx.p), None, None

    @staticmethod
    def sample_inputs() -> list[tuple]:
        # With these seeds a zero of each tensor is kept, and another element is dropped.
        return [
            (torch.tensor([[1.5, 0.0, -2.0], [0.0, 0.5, 3.0]]), 0.5, 0),
            (torch.tensor([[0.0, 1.0], [0.0, -1.0], [2.0, 0.5]]), 0.25, 1),
            (torch.tensor([[0.0]]), 0.0, 2),
        ]


class ScaleForgotten(Dropout):
    """The mask is right, but forward also divides by 1 - p, and so must backward."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, None, None]:
        (kept,) = ctx.saved_tensors
        return grad_output * kept, None, None


class MaskForgotten(Dropout):
    """The gradient passes everywhere. A dropped element does not affect y, so its gradient is 0:
    multiply by the mask of forward."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, None, None]:
        return grad_output / (1 - ctx.p), None, None


class PassedUnchanged(Dropout):
    """This returns grad_output unchanged. Multiply it by what forward multiplied x by: the mask,
    divided by 1 - p."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, None, None]:
        return grad_output, None, None


class MaskInverted(Dropout):
    """The mask is inverted: the gradient passes where an element was dropped. It must pass where
    the element was kept."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, None, None]:
        (kept,) = ctx.saved_tensors
        return grad_output * ~kept / (1 - ctx.p), None, None


class MultipliedByScale(Dropout):
    """This multiplies by 1 - p. Forward divides by 1 - p, so the slope of a kept element is 1 / (1
    - p): divide."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, None, None]:
        (kept,) = ctx.saved_tensors
        return grad_output * kept * (1 - ctx.p), None, None


class MaskFromTheValues(Dropout):
    """The mask is made from where x or y is 0. A kept element may be 0 as well, and its slope is
    not 0: store the mask in forward."""

    @staticmethod
    def forward(ctx, x: Tensor, p: float, seed: int) -> Tensor:
        generator = torch.Generator(x.device).manual_seed(seed)
        kept = torch.rand(x.shape, generator=generator, device=x.device) >= p
        ctx.save_for_backward(x * kept)
        ctx.p = p
        return x * kept / (1 - p)

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, None, None]:
        (y,) = ctx.saved_tensors
        return grad_output * (y != 0) / (1 - ctx.p), None, None

"""Gradient descent, with the update written out:  w <- w - lr * dloss/dw."""

from __future__ import annotations

from collections.abc import Iterable

import torch


class ManualSGD:
    """The update of the older "Learning PyTorch with Examples", for any parameters.

    Not a `torch.optim.Optimizer`, because making the first of those takes a second of imports.

    Args:
        params: leaf tensors that require a gradient; any shape, dtype and device.
        lr: learning rate.

    Source: PyTorch tutorials, "Learning PyTorch with Examples".

    >>> w = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = ManualSGD([w], lr=0.1)
    >>> (w**2).sum().backward()  # gradient [2, 4]
    >>> optimizer.step()
    >>> w.tolist()
    [0.800000011920929, 1.600000023841858]
    >>> optimizer.zero_grad()
    >>> w.grad is None
    True
    """

    def __init__(self, params: Iterable[torch.Tensor], lr: float) -> None:
        self.params = list(params)
        self.lr = lr

    @torch.no_grad()
    def step(self) -> None:
        """Update every parameter that has a gradient, in place, so that it stays the same leaf."""
        for weight in self.params:
            if weight.grad is not None:
                weight -= self.lr * weight.grad

    def zero_grad(self) -> None:
        """Delete the gradients; otherwise the next backward would add to them."""
        for weight in self.params:
            weight.grad = None

    def state_dict(self) -> dict[str, float]:
        """The state for a checkpoint: only lr, because plain gradient descent has no other."""
        return {"lr": self.lr}

    def load_state_dict(self, state_dict: dict[str, float]) -> None:
        """Restore lr from what `state_dict` returned."""
        self.lr = state_dict["lr"]

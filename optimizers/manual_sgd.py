"""Gradient descent with the update in plain sight:  w <- w - lr * dloss/dw."""

from __future__ import annotations

from collections.abc import Iterable

import torch


class ManualSGD:
    """The update of PyTorch's official example, for any parameters.

    Not a `torch.optim.Optimizer`: making the first of those imports for about a second.

    Args:
        params: leaf tensors that require a gradient; any shape, dtype and device.
        lr: step size, dimensionless.

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
        """Update every parameter that has a gradient, in place: it stays the same leaf."""
        for weight in self.params:
            if weight.grad is not None:
                weight -= self.lr * weight.grad

    def zero_grad(self) -> None:
        """Forget the gradients; otherwise the next backward would add to them."""
        for weight in self.params:
            weight.grad = None

    def state_dict(self) -> dict[str, float]:
        """What a checkpoint needs: nothing but lr, for plain gradient descent has no memory."""
        return {"lr": self.lr}

    def load_state_dict(self, state_dict: dict[str, float]) -> None:
        """Take lr from what `state_dict` returned."""
        self.lr = state_dict["lr"]

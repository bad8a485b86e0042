"""The network of the older "Learning PyTorch with Examples": linear, activation, linear."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

# A weight as the tutorial's script draws it, (in_features, out_features), and the same draw scaled
# so that the variance of the activations stays the same from layer to layer (He et al., 2015).
INITS: dict[str, Callable[[int, int], Tensor]] = {
    "normal": torch.randn,
    "he": lambda in_features, out_features: (
        torch.randn(in_features, out_features) * math.sqrt(2 / in_features)
    ),
}


class TwoLayerNet(nn.Module):
    """activation(x @ w1) @ w2, with any linear layer and any activation.

    Every linear layer starts from the same numbers: w1 and then w2 are drawn from the global random
    state in the layout of the tutorial's script, and transposed if the layer has the other layout.
    Biases start at zero.

    Args:
        features, hidden, targets: widths of the input, the hidden layer and the output.
        bias: whether the layers have one.
        init: "normal" (N(0, 1), as in the tutorial) or "he" (N(0, 2 / in_features)).
        linear: makes a layer, called as `linear(in_features, out_features, bias=bias)`.
        layout: the shape of that layer's weight, "out_in" or "in_out".
        activation: tensor -> tensor of the same shape.

    Raises:
        ValueError: init or layout is none of the above.
    """

    def __init__(
        self,
        features: int,
        hidden: int,
        targets: int,
        *,
        bias: bool,
        init: str,
        linear: Callable[..., nn.Module],
        layout: str,
        activation: Callable[[Tensor], Tensor],
    ) -> None:
        super().__init__()
        if init not in INITS:
            raise ValueError(f"init={init} is not valid; use {' or '.join(INITS)}")
        if layout not in ("out_in", "in_out"):
            raise ValueError(f"layout={layout} is not valid; use out_in or in_out")
        # Draw these before the layers are made, because some layers draw random numbers too.
        weights = [INITS[init](features, hidden), INITS[init](hidden, targets)]
        self.linear1 = linear(features, hidden, bias=bias)
        self.linear2 = linear(hidden, targets, bias=bias)
        self.activation = activation
        layers: list[Any] = [self.linear1, self.linear2]  # any module with a weight and a bias
        with torch.no_grad():
            for layer, weight in zip(layers, weights, strict=True):
                layer.weight.copy_(weight if layout == "in_out" else weight.t())
                if layer.bias is not None:
                    layer.bias.zero_()

    def forward(self, x: Tensor) -> Tensor:
        """Map (samples, features) to (samples, targets)."""
        return self.linear2(self.activation(self.linear1(x)))

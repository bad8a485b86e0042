"""The network of `TwoLayerNet`, computed by a single Function."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from .two_layer_net import INITS


class OneFunctionNet(nn.Module):
    """network(x, w1, w2), with the two weights; the Function computes everything else.

    The weights start as those of a `TwoLayerNet` without biases: w1 and then w2 are drawn from the
    global random state. They also have the same names, `linear1.weight` and `linear2.weight`, so
    that two trainings can be compared tensor by tensor.

    Args:
        features, hidden, targets: widths of the input, the hidden layer and the output.
        init: "normal" (N(0, 1), as in the tutorial) or "he" (N(0, 2 / in_features)).
        network: callable (x, w1, w2) -> (samples, targets), with x (samples, features),
            w1 (features, hidden) and w2 (hidden, targets).

    Raises:
        ValueError: init is none of the above.

    >>> import torch
    >>> net = OneFunctionNet(3, 4, 2, init="normal", network=lambda x, w1, w2: x @ w1 @ w2)
    >>> net(torch.ones(5, 3)).shape
    torch.Size([5, 2])
    """

    def __init__(
        self,
        features: int,
        hidden: int,
        targets: int,
        *,
        init: str,
        network: Callable[[Tensor, Tensor, Tensor], Tensor],
    ) -> None:
        super().__init__()
        if init not in INITS:
            raise ValueError(f"init={init} is not valid; use {' or '.join(INITS)}")
        self.linear1 = nn.ParameterDict({"weight": INITS[init](features, hidden)})
        self.linear2 = nn.ParameterDict({"weight": INITS[init](hidden, targets)})
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        """Map (samples, features) to (samples, targets)."""
        return self.network(x, self.linear1["weight"], self.linear2["weight"])

"""A Module over a linear Function: the Module holds weight and bias, the Function computes."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn


def mm(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """The built-in counterpart of a custom linear Function: `input.mm(weight) + bias`.

    Args:
        input: (samples, in_features).
        weight: (in_features, out_features).
        bias: (out_features,) or None.

    Returns:
        (samples, out_features).

    >>> mm(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0], [4.0]])).tolist()
    [[11.0]]
    """
    return input.mm(weight) if bias is None else torch.addmm(bias, input, weight)


class Linear(nn.Module):
    """y = function(x, weight, bias), with the parameters that a Function can't hold.

    A Function is stateless. Weights that are trained, moved with `.to(device)` and saved in a
    `state_dict` therefore belong to a Module.

    Args:
        in_features: size of the last dimension of the input.
        out_features: size of the last dimension of the output.
        bias: whether to learn an additive (out_features,) vector; otherwise `bias` is a
            registered None, as in `torch.nn.Linear`.
        function: callable (input, weight, bias) -> output, such as `LinearFunction.apply`.
        layout: shape of the weight that `function` expects: "out_in" for
            (out_features, in_features), "in_out" for (in_features, out_features).

    Raises:
        ValueError: the layout is neither of the two.

    >>> layer = Linear(3, 2, bias=False, function=mm, layout="in_out")
    >>> layer
    Linear(in_features=3, out_features=2, bias=False, layout=in_out)
    >>> layer(torch.ones(4, 3)).shape
    torch.Size([4, 2])
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        *,
        function: Callable[[Tensor, Tensor, Tensor | None], Tensor],
        layout: str = "out_in",
    ) -> None:
        super().__init__()
        if layout not in ("out_in", "in_out"):
            raise ValueError(f"layout={layout} is not valid; use out_in or in_out")
        self.in_features = in_features
        self.out_features = out_features
        self.function = function
        self.layout = layout
        shape = (out_features, in_features) if layout == "out_in" else (in_features, out_features)
        self.weight = nn.Parameter(torch.empty(shape))
        self.bias: nn.Parameter | None
        self.register_parameter("bias", nn.Parameter(torch.empty(out_features)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw from U(-b, b) with b = 1/sqrt(in_features), the range of `torch.nn.Linear`."""
        bound = 1 / math.sqrt(self.in_features)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to an input of shape (..., in_features)."""
        return self.function(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The line that `print(model)` shows between the brackets."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}, layout={self.layout}"
        )

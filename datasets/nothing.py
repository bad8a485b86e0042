"""No data, for a model whose output is the number to minimise."""

from __future__ import annotations

from .data import Data


def nothing() -> Data:
    """Data without inputs and targets, whose loss is the output itself."""
    return Data(x=None, y=None, loss=lambda output, y: output)

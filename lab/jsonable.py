"""What JSON can't represent, and what no terminal or font can show."""

from __future__ import annotations

import math
from typing import Any


def jsonable(value: Any) -> Any:
    """Replace numbers that are not finite by the texts "nan", "inf" and "-inf".

    >>> jsonable({"loss": float("inf"), "steps": [1, 2.5]})
    {'loss': 'inf', 'steps': [1, 2.5]}
    """
    if isinstance(value, dict):
        return {key: jsonable(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [jsonable(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def printable(text: str) -> str:
    r"""The text with an escape in place of what no terminal or font can show.

    >>> print(printable("two\nlines, no UTF-8: \udcff"))
    two\nlines, no UTF-8: \udcff
    """
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)

"""Numbers that JSON can't represent."""

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

"""Run folders written by hand, in the format of lab/recording, for tests of what reads them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lab.recording.curve import start_curve
from lab.recording.summary import Summary


def write_run(folder: Path, losses: Sequence[float], **changes: Any) -> Path:
    """Write a run with these losses at steps 0, 1, 2...; `changes` replace keys of its summary."""
    folder.mkdir(parents=True)
    keys = {
        "function": "myrelu", "optimizer": "manual_sgd", "model": "two_layer_net",
        "data": "random", "device": "cpu", "dtype": "float64", "seed": 0, "steps": len(losses),
        "status": "finished", "steps_per_second": 1234.5,
    } | changes  # fmt: skip
    config = {"seed": keys["seed"], "optimizer": {"lr": keys.get("lr", 1e-6)}}
    summary = Summary(**{"config": config | {"data": {"samples": 64}}} | keys)
    start_curve(folder, summary, list(enumerate(losses)))
    return folder


def damaged(content: bytes, chance: random.Random) -> tuple[bytes, int]:
    """The content cut short, or with one bit changed; and where."""
    at = chance.randrange(len(content))
    if chance.random() < 0.5:
        return content[:at], at
    changed = bytearray(content)
    changed[at] ^= 1 << chance.randrange(8)
    return bytes(changed), at

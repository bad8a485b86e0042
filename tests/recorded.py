"""Run folders written by hand, in the format of lab/recording, for tests of what reads them."""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lab.recording.curves import summary_crc32


def write_run(folder: Path, losses: Sequence[float], **changes: Any) -> Path:
    """Write a run with these losses at steps 0, 1, 2...; `changes` replace keys of its summary."""
    folder.mkdir(parents=True)
    lines = [f"{step},{loss!r}\n" for step, loss in enumerate(losses)]
    content = "".join(["step,loss\n", *lines]).encode()
    (folder / "curve.csv").write_bytes(content)
    summary = {
        "function": "myrelu", "optimizer": "manual_sgd", "model": "two_layer_net",
        "data": "random", "device": "cpu", "dtype": "float64", "seed": 0, "steps": len(losses),
        "status": "finished", "first_loss": plain(losses[0]) if losses else None,
        "final_loss": plain(losses[-1]) if losses else None, "steps_per_second": 1234.5,
        "error": None,
    } | changes  # fmt: skip
    summary.setdefault(
        "config",
        {
            "seed": summary["seed"],
            "optimizer": {"lr": summary.get("lr", 1e-6)},
            "data": {"samples": 64},
        },
    )
    summary |= {"curve_bytes": len(content), "curve_crc32": zlib.crc32(content)}
    summary["summary_crc32"] = summary_crc32(summary)
    (folder / "summary.json").write_text(json.dumps(summary, indent=1))
    return folder


def damaged(content: bytes, chance: random.Random) -> tuple[bytes, int]:
    """The content cut short, or with one bit changed; and where."""
    at = chance.randrange(len(content))
    if chance.random() < 0.5:
        return content[:at], at
    changed = bytearray(content)
    changed[at] ^= 1 << chance.randrange(8)
    return bytes(changed), at


def plain(loss: float) -> float | str:
    return loss if abs(loss) < float("inf") else str(loss)

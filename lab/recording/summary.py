"""`summary.json`: what a run is, how far it came, and a checksum over all of it."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Self

from lab.files import write_whole
from lab.jsonable import jsonable

SUMMARY = "summary.json"
CHOICES = ("function", "optimizer", "model", "data")
NUMBERS = ("lr", "first_loss", "final_loss", "test_accuracy", "steps_per_second")


class Damaged(Exception):
    """A run on disk that can't be trusted; its text is the reason."""


@dataclass
class Summary:
    """One run in a few numbers; a key that an older edition did not write is None.

    Args:
        function, optimizer, model, data: the file chosen for each.
        steps: how many are done.
        status: "running" (or killed), "finished", "diverged", "interrupted" or "failed".
        first_loss, final_loss: of the recorded curve, None before its first point.
        test_accuracy: the fraction of the test set classified correctly at the last step.
        steps_per_second: of the last process that trained the run.
        threads: CPU threads that PyTorch used.
        torch: PyTorch's version.
        error: why the run stopped, in one line.
        overrides: the command line of the first process, as it was typed.
        config: the keys of conf/config.yaml and their values.
        curve_bytes, curve_crc32: length and checksum of the part of `curve.csv` that is whole.
    """

    function: str
    optimizer: str
    model: str
    data: str
    device: str
    dtype: str
    seed: int
    lr: float | None = None
    threads: int | None = None
    steps: int = 0
    status: str = "running"
    first_loss: float | None = None
    final_loss: float | None = None
    test_accuracy: float | None = None
    steps_per_second: float | None = None
    torch: str | None = None
    error: str | None = None
    overrides: list[str] | None = None
    config: dict[str, Any] = field(default_factory=dict)
    curve_bytes: int = 0
    curve_crc32: int = 0

    @classmethod
    def of_keys(
        cls, keys: dict[str, Any], choices: Mapping[str, str], overrides: tuple[str, ...]
    ) -> Self:
        """The summary of a run that has not begun.

        Args:
            keys: of the config; no rule may have validated them, as a job may fail for one of them.
        """
        lr = (keys.get("optimizer") or {}).get("lr")
        parts: dict[str, Any] = {name: choices[name] for name in CHOICES}
        return cls(
            **parts,
            device=str(keys["device"]),
            dtype=str(keys["dtype"]),
            seed=keys["seed"],
            lr=lr if isinstance(lr, int | float) else None,
            overrides=list(overrides),
            config=keys,
        )

    def to_json(self) -> str:
        """The text of `summary.json`; numbers that are not finite are "nan", "inf" or "-inf"."""
        content = jsonable(asdict(self))
        content["summary_crc32"] = _crc32(content)
        return json.dumps(content, indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read what `to_json` of this edition or an older one wrote.

        Raises:
            Damaged: the text is not a summary, or it has changed since it was written.
        """
        try:
            content = json.loads(text)
            written = content.pop("summary_crc32")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise Damaged(f"{SUMMARY} is not the summary of a run") from error
        # Only what a run wrote has the right checksum, so its keys have the right types.
        if written != _crc32(content):
            raise Damaged(f"{SUMMARY} has changed since the run wrote it: its checksum differs")
        summary = cls(**{key.name: content.get(key.name) for key in fields(cls)})
        for name in NUMBERS:
            if getattr(summary, name) is not None:
                setattr(summary, name, float(getattr(summary, name)))
        if summary.error is not None:  # a terminal might obey what can't be printed
            summary.error = "".join(c if c.isprintable() else " " for c in summary.error)
        return summary

    def write(self, folder: Path) -> None:
        """Replace the `summary.json` of a run folder.

        Raises:
            UserError: no space; the old file is still there.
        """
        write_whole(folder / SUMMARY, self.to_json().encode())

    def outcome(self) -> str:
        """The result of the run in one line."""
        assert self.first_loss is not None and self.final_loss is not None
        words = (
            f"{self.status} on {self.device}: loss {self.first_loss:.8g} at step 0, "
            f"{self.final_loss:.8g} at step {self.steps - 1}"
        )
        if self.test_accuracy is not None:
            words += f", test accuracy {self.test_accuracy:.1%}"
        if self.steps_per_second is not None:
            words += f"; {self.steps_per_second:,.0f} steps a second"
        return words


def _crc32(content: dict[str, Any]) -> int:
    """Checksum of the keys and values, whatever the layout of the file."""
    return zlib.crc32(json.dumps(content, sort_keys=True).encode())

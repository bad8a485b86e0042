"""The config of one run, after `lab.composing.rules` has validated it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Self


@dataclass(frozen=True)
class Config:
    """One attribute for each key of conf/config.yaml, with every interpolation resolved.

    Args:
        function, model, data, optimizer: `_target_` and arguments of each part.
        choices: the file that was chosen for each of these four, such as `{"function": "myrelu"}`.
        overrides: the command line, as it was typed.
        resume: the run folder to resume, or None for a new run.
    """

    function: dict[str, Any]
    model: dict[str, Any]
    data: dict[str, Any]
    optimizer: dict[str, Any]
    steps: int = 500
    seed: int = 0
    device: str = "cpu"
    dtype: str = "float32"
    threads: int | str = "auto"
    compile: bool = False
    log_every: int = 1
    flush_seconds: float = 2
    checkpoint_every: int = 0
    resume: str | None = None
    progress: bool | None = None
    choices: Mapping[str, str] = field(default_factory=dict)
    overrides: tuple[str, ...] = ()

    @property
    def keys(self) -> dict[str, Any]:
        """The keys of conf/config.yaml and their values, nested as there."""
        keys = asdict(self)
        del keys["choices"], keys["overrides"]
        return keys

    @classmethod
    def from_keys(
        cls, keys: Mapping[str, Any], choices: Mapping[str, str], overrides: tuple[str, ...] = ()
    ) -> Self:
        """Make the config of a recorded run; keys that no longer exist are left out.

        Args:
            keys: nested as in conf/config.yaml.
            choices, overrides: as for the class.

        >>> parts = dict.fromkeys(("function", "model", "data", "optimizer"), {})
        >>> Config.from_keys(parts | {"steps": 3, "an_old_key": 1}, {}).steps
        3
        """
        known = {key.name: keys[key.name] for key in fields(cls) if key.name in keys}
        return cls(**known | {"choices": dict(choices), "overrides": overrides})

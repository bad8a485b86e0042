"""Is the config valid? Each rule names a key and says in words which values it allows."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from lab.composing.suggestions import no_such_choice, no_such_key
from lab.config import Config
from lab.devices import ALLOWED, pick_device
from lab.errors import UserError
from lab.parts import DTYPES

GROUPS = ("function", "model", "data", "optimizer")
MOST_ELEMENTS = 10**9  # of one tensor: 4 GB in float32

Rule = tuple[Callable[[Any], bool], str]


def _whole(least: int, most: int) -> Rule:
    def holds(value: Any) -> bool:
        return type(value) is int and least <= value <= most

    return holds, f"a whole number from {least:,} to {most:,}".replace(",", "_")


def _number(least: float, open_end: bool = False) -> Rule:
    def holds(value: Any) -> bool:
        number = type(value) in (int, float) and math.isfinite(value)
        return number and (value > least if open_end else value >= least)

    return holds, f"a finite number {'above' if open_end else 'of at least'} {least:g}"


def _one_of(*allowed: Any) -> Rule:
    def holds(value: Any) -> bool:
        return any(value is a or (isinstance(a, str) and value == a) for a in allowed)

    words = [as_typed(a) for a in allowed]
    return holds, f"{', '.join(words[:-1])} or {words[-1]}"


def as_typed(value: Any) -> str:
    """A value as one would type it on the command line.

    >>> as_typed(None), as_typed(True), as_typed(1e-6)
    ('null', 'true', '1e-06')
    """
    words = {None: "null", True: "true", False: "false"}
    return words[value] if value is None or isinstance(value, bool) else str(value)


RULES: dict[str, Rule] = {
    "steps": _whole(1, 10**9),
    "seed": _whole(0, 2**63 - 1),
    "device": (lambda value: isinstance(value, str), ALLOWED),
    "dtype": _one_of(*DTYPES),
    "threads": (
        lambda value: value == "auto" or (type(value) is int and 1 <= value <= 1024),
        "auto, or a whole number from 1 to 1_024",
    ),
    "compile": _one_of(True, False),
    "log_every": _whole(1, 10**9),
    "flush_seconds": _number(0, open_end=True),
    "checkpoint_every": _whole(0, 10**9),
    "resume": (lambda v: v is None or (isinstance(v, str) and v != ""), "a run folder, or null"),
    "progress": _one_of(True, False, None),
    "data.samples": _whole(1, 10**9),
    "data.features": _whole(1, 10**9),
    "data.targets": _whole(1, 10**9),
    "model.hidden": _whole(1, 10**9),
    "model.bias": _one_of(True, False),
    "model.init": _one_of("normal", "he"),
    "optimizer.lr": _number(0),
    "optimizer.momentum": _number(0),
    "function.layout": _one_of("out_in", "in_out"),
}
KEYS = {*RULES, *GROUPS, "show", "function.linear", "function.activation"}
OF_A_RUN = [key.name for key in dataclasses.fields(Config)][:-2]  # not choices and overrides


def validated(cfg: DictConfig, choices: Mapping[str, str], overrides: Sequence[str]) -> Config:
    """The config of one run, with every interpolation resolved.

    Args:
        cfg: as Hydra composed it, without its own section.
        choices: Hydra's, group to file name.
        overrides: the command line.

    Raises:
        UserError: the first key that breaks its rule; names key, value and what is allowed.
    """
    for group in GROUPS:
        if not OmegaConf.is_dict(cfg.get(group)):
            raise UserError(no_such_choice(group, as_typed(cfg.get(group))))
    if ("features" in cfg.model) != ("features" in cfg.data):
        needed = "data=random or data=digits" if "features" in cfg.model else "data=nothing or sine"
        raise UserError(
            f"model={choices['model']} does not fit data={choices['data']}; it needs {needed}"
        )
    for key in [*map(str, cfg), *(f"function.{key}" for key in cfg.function)]:
        if key not in KEYS:
            raise UserError(no_such_key(key))
    for key in ("linear", "layout", "activation"):
        if key not in cfg.function:
            raise UserError(
                f"conf/function/{choices['function']}.yaml does not say {key}; let its first line "
                "be defaults: [_activation]"
            )
    try:
        keys: Any = OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True)
    except OmegaConfBaseException as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{error.full_key} is not valid: {reason}") from None
    if type(keys.get("resume")) is int:  # a folder such as 2024
        keys["resume"] = str(keys["resume"])
    for key, (holds, words) in RULES.items():
        section, _, name = key.rpartition(".")
        values = keys[section] if section else keys
        if name in values and not holds(value := values[name]):
            if isinstance(value, float) and value.is_integer() and holds(int(value)):
                raise UserError(f"{key}={value} is a float; write {key}={int(value)}")
            raise UserError(f"{key}={as_typed(value)} is not valid; use {words}")
    for name in OF_A_RUN:
        if name not in keys:
            raise UserError(f"~{name} is not possible: a run needs it; leave ~{name} out")
    _check_sizes(keys)
    if pick_device(keys["device"]).type == "mps" and keys["dtype"] == "float64":
        raise UserError("dtype=float64 does not exist on MPS; use float32, or device=cpu")
    if keys["resume"] and Path(keys["resume"]).name == "checkpoint.pt":
        keys["resume"] = str(Path(keys["resume"]).parent)
    made_of = {group: choices[group] for group in GROUPS}
    typed = [override.lstrip("+") for override in overrides]
    changes = [t.removeprefix("function.") for t in typed if t.startswith("function.")]
    if any(change.startswith("layout") for change in changes):
        raise UserError(
            "function.layout can't be changed: it is the layout of the weight that the linear part "
            "of the function expects; choose another function"
        )
    if changes:
        made_of["function"] += f" with {', '.join(changes)}"
    return Config.from_keys(keys, made_of, tuple(overrides))


def _check_sizes(keys: Mapping[Any, Any]) -> None:
    sizes = {f"data.{k}": keys["data"].get(k) for k in ("samples", "features", "targets")}
    sizes["model.hidden"] = keys["model"].get("hidden")
    pairs = [
        ("data.samples", "data.features"),
        ("data.samples", "model.hidden"),
        ("data.features", "model.hidden"),
        ("data.samples", "data.targets"),
        ("model.hidden", "data.targets"),
    ]
    for first, second in pairs:
        rows, columns = sizes[first], sizes[second]
        if rows and columns and rows * columns > MOST_ELEMENTS:
            raise UserError(
                f"{first}={rows} and {second}={columns} make a tensor of {rows * columns:.2g} "
                f"numbers; use at most {MOST_ELEMENTS:.0e}"
            )

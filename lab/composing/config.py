"""The config, checked before anything is made: each rule says in words what is allowed."""

from __future__ import annotations

import difflib
import functools
import math
import re
from collections.abc import Callable
from typing import Any

import torch
from hydra.errors import InstantiationException
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from torch import Tensor, nn

from lab import HOME
from lab.devices import ALLOWED, pick_device
from lab.errors import UserError, users_lines
from models import OneFunctionNet

CONF = HOME / "conf"
GROUPS = ("function", "model", "data", "optimizer")
DTYPES = {"float32": torch.float32, "float64": torch.float64}
MOST_ELEMENTS = 10**9  # of one tensor: 4 GB in float32


def _whole(least: int, most: int) -> tuple[Callable[[Any], bool], str]:
    def holds(value: Any) -> bool:
        return type(value) is int and least <= value <= most

    return holds, f"a whole number from {least:,} to {most:,}".replace(",", "_")


def _number(least: float, open_end: bool = False) -> tuple[Callable[[Any], bool], str]:
    def holds(value: Any) -> bool:
        number = type(value) in (int, float) and math.isfinite(value)
        return number and (value > least if open_end else value >= least)

    return holds, f"a finite number {'above' if open_end else 'of at least'} {least:g}"


def _one_of(*allowed: Any) -> tuple[Callable[[Any], bool], str]:
    def holds(value: Any) -> bool:
        return any(value is a or (isinstance(a, str) and value == a) for a in allowed)

    words = [{True: "true", False: "false", None: "null"}.get(a, a) for a in allowed]
    return holds, f"{', '.join(words[:-1])} or {words[-1]}"


RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "steps": _whole(1, 10**9),
    "seed": _whole(0, 2**63 - 1),
    "device": (lambda value: isinstance(value, str), ALLOWED),
    "dtype": _one_of(*DTYPES),
    "compile": _one_of(True, False),
    "log_every": _whole(1, 10**9),
    "flush_seconds": _number(0, open_end=True),
    "checkpoint_every": _whole(0, 10**9),
    "resume": (lambda v: v is None or (isinstance(v, str) and v), "a run folder, or null"),
    "stop_on_nonfinite": _one_of(True, False),
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
KEYS = [*RULES, *GROUPS, "function.linear", "function.activation"]


def checked(cfg: DictConfig) -> dict[str, Any]:
    """The config with every interpolation resolved, as plain containers.

    Raises:
        UserError: the first key whose value breaks its rule; names key, value, what is allowed.
    """
    for group in GROUPS:
        if not OmegaConf.is_dict(cfg.get(group)):
            raise UserError(no_such_choice(group, shown(cfg.get(group))))
    if "features" in cfg.model and "features" not in cfg.data:
        raise UserError("data=nothing: this model needs data=random or data=digits")
    keys = [str(key) for key in cfg] + [f"function.{key}" for key in cfg.function]
    for key in keys:
        if key not in KEYS:
            raise UserError(no_such_key(key))
    try:
        config = OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True)
    except OmegaConfBaseException as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{error.full_key}: {reason}") from None
    for key, (holds, words) in RULES.items():
        section, _, name = key.rpartition(".")
        values = config[section] if section else config
        if name in values and not holds(values[name]):
            raise UserError(f"{key}={shown(values[name])}: {words}")
    _check_sizes(config)
    if pick_device(config["device"]).type == "mps" and config["dtype"] == "float64":
        raise UserError("dtype=float64: MPS has none; use float32, or device=cpu")
    return config


def no_such_key(key: str) -> str:
    """The words for a key that nothing reads."""
    near = difflib.get_close_matches(key, KEYS, n=1)
    hint = f"did you mean {near[0]}?" if near else f"the keys are {', '.join(KEYS)}"
    return f"{key}: no such key; {hint}"


def no_such_choice(group: str, name: str) -> str:
    """The words for a choice that is no file of its group."""
    if group.startswith("hydra/"):
        return f"{group}={name}: not installed, or unknown; docs/sweeps.md says which there are"
    choices = sorted(path.stem for path in (CONF / group).glob("*.yaml"))
    return f"{group}={name}: one of {', '.join(choices)}"


def _check_sizes(config: dict[str, Any]) -> None:
    sizes = {f"data.{k}": config["data"].get(k) for k in ("samples", "features", "targets")}
    sizes["model.hidden"] = config["model"].get("hidden")
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
                f"{first}={rows}, {second}={columns}: a tensor of {rows * columns:.2g} numbers; "
                f"at most {MOST_ELEMENTS:.0e}"
            )


def shown(value: Any) -> str:
    """A value as one would type it on the command line."""
    return "null" if value is None else str(value).lower() if value in (True, False) else str(value)


def build(config: dict[str, Any], group: str, *args: Any) -> Any:
    """Make the part that `config[group]` describes.

    Args:
        config: from `checked`.
        group: function, model, data or optimizer.
        args: handed to the part in front of what the config says.

    Raises:
        UserError: a target in it can't be imported, or refuses an argument; says which and why.
    """
    try:
        return _plain(instantiate(config[group], _convert_="all", _partial_=True))(*args)
    except InstantiationException as error:
        where = re.search(r"full_key: (\S+)", str(error))
        key = f"{group}.{where[1]}" if where else group
        # The model takes these two from the function: there they stand in its file.
        key = re.sub(r"^model\.(?=(linear|activation)\b)", "function.", key)
        raise UserError(f"{key}: {_root_cause(error)}") from error
    except (TypeError, ValueError) as error:
        raise UserError(f"{group}: {error}") from error


def _plain(part: Any) -> Any:
    """The same without Hydra's own kind of partial, which takes 70 µs to check each call."""
    if not isinstance(part, functools.partial):
        return part
    keywords = {key: _plain(value) for key, value in part.keywords.items()}
    return functools.partial(part.func, *map(_plain, part.args), **keywords)


def _root_cause(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    lines = str(error).splitlines()
    # What an import really failed with is quoted by Hydra in its own words.
    return lines[0] if not isinstance(error, InstantiationException) else " ".join(lines)


def check_function(model: nn.Module, function: str) -> None:
    """Refuse a Function that does not fit its place in the model.

    Args:
        model: its activation is tried once, on a (2, 3) tensor of twos; a `Point` where it stands.
        function: the name of the choice, for the message.

    Raises:
        UserError: it takes other arguments, or its output has another shape.
    """
    if isinstance(model, OneFunctionNet):
        return  # it uses no function of this config
    activation, tried = getattr(model, "activation", model), None
    says = f"function={function}: no surface for model=point, which needs (x, y) -> one number"
    if activation is not model:
        tried = torch.full((2, 3), 2.0)
        says = f"function={function}: no activation for a network, which needs tensor -> same shape"
    try:
        with torch.no_grad():
            output = activation(tried)
    except TypeError as error:
        if users_lines(error):
            raise
        raise UserError(f"{says}; {error}") from error
    wanted = () if tried is None else tuple(tried.shape)
    if not isinstance(output, Tensor) or output.shape != wanted:
        got = tuple(output.shape) if isinstance(output, Tensor) else type(output).__name__
        raise UserError(f"{says}; {wanted or 'two numbers'} gave {got}")

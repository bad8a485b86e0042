"""Is the config valid? A refusal names the key, its value and which values are allowed."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException

from lab.composing.keys import GROUPS, KEYS, RULES, as_typed, no_such_key
from lab.composing.names import run_to_resume
from lab.config import Config
from lab.devices import pick_device
from lab.errors import UserError

OF_A_FUNCTION = ("linear", "layout", "activation")
SIZES = ("data.samples", "data.features", "model.hidden", "data.targets")
DATA_OF_ITS_OWN = {"cubic": "sine", "point": "nothing"}  # model -> data
EXPERIMENTS = {"sine": "sine", "nothing": "descend"}  # data -> an experiment with a model for it
MOST_NUMBERS = 10**9  # in one tensor: 4 GB in float32


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
            raise UserError(
                f"{group}={as_typed(cfg.get(group))} is not valid; use a file in conf/{group}/"
            )
    model, data = choices["model"], choices["data"]
    needed = DATA_OF_ITS_OWN.get(model, "random or data=digits")
    unfit = "features" in cfg.model and "features" not in cfg.data
    if model in DATA_OF_ITS_OWN:
        unfit = data in {"random", "digits", *DATA_OF_ITS_OWN.values()} - {needed}
    if unfit:
        fits = f"; experiment={EXPERIMENTS[data]} fits data={data}" if data in EXPERIMENTS else ""
        raise UserError(f"model={model} does not fit data={data}; it needs data={needed}{fits}")
    known = [*KEYS, *(f"function.{key}" for key in OF_A_FUNCTION)]
    for key in [*map(str, cfg), *(f"function.{key}" for key in cfg.function)]:
        if key not in known:
            raise UserError(no_such_key(key))
    for key in OF_A_FUNCTION:
        if cfg.function.get(key) is None:
            raise UserError(
                f"function.{key} is missing; let the first line of "
                f"conf/function/{choices['function']}.yaml be defaults: [_activation]"
            )
    try:
        keys: Any = OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True)
    except MissingMandatoryValue as error:
        key = str(error.full_key)
        group = key.partition(".")[0]
        file = f", or add it to conf/{group}/{choices[group]}.yaml" if group in GROUPS else ""
        raise UserError(f"{key} has no value; write {key}=VALUE{file}") from None
    except OmegaConfBaseException as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{error.full_key} is not valid: {reason}") from None
    _check_values(keys)
    if pick_device(keys["device"]).type == "mps" and keys["dtype"] == "float64":
        raise UserError("dtype=float64 does not exist on MPS; use float32, or device=cpu")
    if keys["resume"] is not None:
        keys["resume"] = str(run_to_resume(keys["resume"]))
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


def _check_values(keys: dict[str, Any]) -> None:
    nested = [(f"{group}.{key}", value) for group in GROUPS for key, value in keys[group].items()]
    values = keys | dict(nested)
    for key, (holds, words) in RULES.items():
        if key not in values and "." not in key:
            raise UserError(f"~{key} is not possible: a run needs it; leave ~{key} out")
        if key in values and not holds(value := values[key]):
            if isinstance(value, float) and value.is_integer() and holds(int(value)):
                raise UserError(f"{key}={value} is a float; write {key}={int(value)}")
            raise UserError(f"{key}={as_typed(value)} is not valid; use {words}")
    for first, second in itertools.combinations(SIZES, 2):
        numbers = values.get(first, 0) * values.get(second, 0)
        if numbers > MOST_NUMBERS and {first, second} != {"data.features", "data.targets"}:
            raise UserError(
                f"{first}={values[first]} and {second}={values[second]} make a tensor of "
                f"{numbers:.2g} numbers; use at most {MOST_NUMBERS:.0e}"
            )

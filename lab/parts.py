"""From the config to the parts of a training, in the order in which train.py makes them."""

from __future__ import annotations

import difflib
import functools
import inspect
import re
import sys
from collections.abc import Iterable
from typing import Any, Protocol

import torch
from hydra.errors import InstantiationException
from hydra.utils import get_object, instantiate
from torch import Tensor, nn

from lab.config import Config
from lab.devices import pick_device
from lab.errors import UserError, users_lines

DTYPES = {"float32": torch.float32, "float64": torch.float64}
PYTORCHS_THREADS = torch.get_num_threads()  # before a run has set a number of its own
# With fewer multiplications in a forward, a second thread is not worthwhile: docs/speed.md.
MULTIPLICATIONS_FOR_THREADS = 10**8


# What a run calls of each part.
METHODS = {
    "data": ("x", "y", "x_test", "loss", "to"),
    "model": ("named_parameters", "state_dict", "load_state_dict", "to"),
    "optimizer": ("step", "zero_grad", "state_dict", "load_state_dict"),
}


class Optimizer(Protocol):
    """The methods that the loop calls; those of `torch.optim` and `ManualSGD` have them."""

    def step(self) -> Any: ...
    def zero_grad(self) -> None: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state_dict: dict[str, Any]) -> None: ...


def make_parts(config: Config) -> tuple[Any, nn.Module, Optimizer]:
    """Make what `train.train` makes, in the same order and from the same random numbers.

    Returns:
        The `datasets.Data`, the model and the optimizer of a training before its first step.

    Raises:
        UserError: a part can't be made.
    """
    device, dtype = pick_device(config.device), DTYPES[config.dtype]
    torch.manual_seed(config.seed)
    data = build(config, "data").to(device, dtype)
    model = build(config, "model").to(device, dtype)
    check_fits(model, config.choices["function"])
    return data, model, build(config, "optimizer", model.parameters())


def build(config: Config, group: str, *args: Any) -> Any:
    """Make the part that a group of the config describes.

    Args:
        config: of the run.
        group: function, model, data or optimizer.
        args: positional arguments of the part, before those in the config.

    Raises:
        UserError: a target can't be imported or refuses an argument; says which one and why.
    """
    described = getattr(config, group)
    try:
        part = _without_hydra(instantiate(described, _convert_="all", _partial_=True))(*args)
    except InstantiationException as error:
        fault = _first(error)
        if not users_lines(fault):
            where = re.search(r"full_key: (\S+)", str(error))
            key = f"{group}.{where[1]}" if where else group
            # The model takes its layers and its activation from the function's file.
            key = re.sub(r"^model\.(?=(linear|activation)\b)", "function.", key)
            raise UserError(f"{key} can't be made: {_in_words(fault)}") from error
    except (TypeError, ValueError) as error:
        if users_lines(error):
            raise
        takes = ""
        if "unexpected keyword" in str(error):
            names = inspect.signature(get_object(described["_target_"])).parameters
            takes = f"; it takes {', '.join(names)}"
        raise UserError(f"{group}: {error}{takes}") from error
    else:
        if lacking := [name for name in METHODS.get(group, ()) if not hasattr(part, name)]:
            made = f"{described['_target_']} makes a {type(part).__name__}"
            raise UserError(f"{group}: {made}, which has no {lacking[0]}; see docs/parts.md")
        return part
    # Of the user's own code. Out here, as in the `except` it would become a cause of itself.
    raise fault


def _without_hydra(part: Any) -> Any:
    """Replace Hydra's own kind of partial, which takes 70 µs to check each call."""
    if not isinstance(part, functools.partial):
        return part
    keywords = {key: _without_hydra(value) for key, value in part.keywords.items()}
    return functools.partial(part.func, *map(_without_hydra, part.args), **keywords)


def _first(error: BaseException) -> BaseException:
    """The first error in a chain."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def _in_words(error: BaseException) -> str:
    """What an error says, in one line."""
    if isinstance(error, ModuleNotFoundError) and error.name:
        # `functions.MyRelu` is taken for a module where the class is misspelt.
        parent, _, name = error.name.rpartition(".")
        names = getattr(sys.modules.get(parent), "__all__", ())
        if near := difflib.get_close_matches(name, names, n=1):
            return f"{parent} has no {name}; did you mean {near[0]}?"
    # Hydra quotes the error of an import in its own message, over several lines.
    return " ".join(str(error).split())


def check_fits(model: nn.Module, function: str) -> None:
    """Refuse a Function that does not fit its place in the model, before the first step.

    Args:
        model: its `activation` is called once, on a (2, 3) tensor of twos; a `Point`, which has a
            `function` of two numbers instead, is called as it is.
        function: the name of the choice, for the message.

    Raises:
        UserError: the Function takes other arguments, or its output has another shape.
    """
    wanted: tuple[int, ...]
    if activation := getattr(model, "activation", None):
        tried, wanted = torch.full((2, 3), 2.0), (2, 3)
        needs = "the activation of a network maps a tensor to one of the same shape"
    elif hasattr(model, "function"):
        activation, tried, wanted = model, None, ()
        needs = "the surface of model=point maps two numbers to one"
    else:
        return
    try:
        with torch.no_grad():
            output = activation(tried)
    except TypeError as error:
        if users_lines(error):
            raise
        raise UserError(f"function={function} does not fit: {needs}; {error}") from error
    if isinstance(output, torch.autograd.Function):
        name = type(output).__name__
        raise UserError(f"function={function} names the Function {name} itself; write {name}.apply")
    got = tuple(output.shape) if isinstance(output, Tensor) else type(output).__name__
    if got != wanted:
        raise UserError(
            f"function={function} does not fit: {needs}, and {wanted or 'two numbers'} gave {got}"
        )
    if tried is not None and output.dtype != tried.dtype:
        given = f"{tried.dtype} gave {output.dtype}"
        raise UserError(f"function={function} must keep the dtype of its input, and {given}")


def threads_for(config: Config, data: Any, parameters: Iterable[Tensor]) -> int:
    """The number of CPU threads of this run: `threads` of the config, or what `auto` means.

    A small network gets one thread, because more threads gain little, wait for each other on a busy
    machine, and change the last digits. A large network gets PyTorch's own number.
    """
    if config.threads != "auto":
        return int(config.threads)
    rows = 1 if data.x is None else len(data.x)
    multiplications = rows * sum(parameter.numel() for parameter in parameters)
    return 1 if multiplications < MULTIPLICATIONS_FOR_THREADS else PYTORCHS_THREADS

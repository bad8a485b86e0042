"""From what is written on the command line to Functions: a name, a dotted path, or a file."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from lab.checking.children import every_module
from lab.errors import UserError

_ALLOWED = "a Function's name, a dotted path such as my_module.Swish, or a .py file"


def find_functions(target: str) -> list[Any]:
    """The Functions that a target means.

    Args:
        target: the bare name of one in functions/, a dotted path to one or to a module that holds
            some, or the path of a .py file, which may lie anywhere.

    Raises:
        UserError: the target names no Function; the message lists the choices.
        Exception: whatever importing the module raises.

    >>> find_functions("MyReLU")
    [<class 'functions.myrelu.MyReLU'>]
    """
    if not target:
        raise UserError(f"'': {_ALLOWED}")
    if target.endswith(".py"):
        return _all_in(module_of_file(Path(target)), target)
    if "." not in target:
        shipped = {function.__name__: function for function in _shipped(target)}
        if target in shipped:
            return [shipped[target]]
        if importlib.util.find_spec(target) is None:
            raise UserError(f"{target} is not a Function in functions/.{_choices(target, shipped)}")
    module, rest = _import(target)
    found: Any = module
    for name in rest:
        if not hasattr(found, name):
            inside = [function.__name__ for function in functions_in(module)]
            raise UserError(f"{target}: no {name} in {module.__name__}.{_choices(name, inside)}")
        found = getattr(found, name)
    return _all_in(found, target) if isinstance(found, ModuleType) else [found]


def functions_in(module: ModuleType) -> list[type]:
    """The Functions that a module defines, also inside its Modules; not those that it imports."""
    found: list[type] = []
    waiting = [value for value in vars(module).values() if inspect.isclass(value)]
    while waiting:
        value = waiting.pop(0)
        if value.__module__ != module.__name__ or value in found:
            continue
        if issubclass(value, torch.autograd.Function):
            found.append(value)
        elif issubclass(value, torch.nn.Module):
            waiting += [inner for inner in vars(value).values() if inspect.isclass(inner)]
    return found


def _shipped(wanted: str) -> list[type]:
    """All Functions of functions/; a file that can't be imported matters if it holds the wanted."""
    found, first_error = [], None
    for name in every_module():
        try:
            found += functions_in(importlib.import_module(name))
        except (Exception, SystemExit) as error:  # somebody's unfinished file may raise anything
            first_error = first_error or error
    if first_error and wanted not in [function.__name__ for function in found]:
        raise first_error
    return found


def module_of_file(path: Path) -> ModuleType:
    """The module in a file that may lie anywhere, run anew at each call.

    Raises:
        UserError: the file does not exist.
        Exception: whatever its code raises.
    """
    if not path.is_file():
        raise UserError(f"{path} does not exist; check the path")
    beside = str(path.parent.resolve())
    if beside not in sys.path:
        sys.path.insert(1, beside)  # it may import what lies beside it
    module = ModuleType(f"file {path.stem}")
    module.__file__ = str(path.resolve())
    sys.modules[module.__name__] = module  # where dataclasses and pickle look for it
    # Not by import: that may take a cached bytecode for a file saved twice within a second.
    try:
        code = compile(path.read_bytes(), module.__file__, "exec", dont_inherit=True)
    except SyntaxError as error:
        error.filename = module.__file__  # Python leaves it out for a file that is no text
        raise
    exec(code, vars(module))
    return module


def _import(target: str) -> tuple[ModuleType, list[str]]:
    """The longest prefix that is a module, and the names that remain."""
    parts = target.split(".")
    if not all(part.isidentifier() for part in parts):
        raise UserError(f"{target}: {_ALLOWED}")
    for count in range(len(parts), 0, -1):
        name = ".".join(parts[:count])
        try:
            return importlib.import_module(name), parts[count:]
        except ModuleNotFoundError as error:
            if not f"{name}.".startswith(f"{error.name}."):
                raise
    raise UserError(f"{target}: there is no module {parts[0]} here or installed")


def _all_in(module: ModuleType, target: str) -> list[type]:
    found = functions_in(module)
    if not found:
        raise UserError(
            f"{target} defines no torch.autograd.Function; name a module or a file that does"
        )
    return found


def _choices(name: str, choices: Any) -> str:
    close = difflib.get_close_matches(name.lower(), [choice.lower() for choice in choices], n=1)
    meant = [choice for choice in choices if choice.lower() in close]
    if meant:
        return f" Did you mean {meant[0]}?"
    return f" Choices: {', '.join(sorted(choices))}" if choices else ""

"""The keys of a run: which values each may have, and which key a user meant by a wrong one."""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Callable, Iterable
from typing import Any

from lab.devices import ALLOWED
from lab.parts import DTYPES

GROUPS = ("function", "model", "data", "optimizer")

Rule = tuple[Callable[[Any], bool], str]


def _whole(least: int, most: int) -> Rule:
    words = f"a whole number from {least:_} to {most:_}"
    return lambda value: type(value) is int and least <= value <= most, words


def _one_of(*allowed: Any) -> Rule:
    *others, last = map(as_typed, allowed)
    words = f"{', '.join(others)} or {last}"
    # `==` alone would take 1 for true.
    return lambda value: any(type(value) is type(a) and value == a for a in allowed), words


def _is_finite(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


NOT_NEGATIVE: Rule = (
    lambda value: _is_finite(value) and value >= 0,
    "a finite number of at least 0",
)


def as_typed(value: Any) -> str:
    """A value as one would type it on the command line.

    >>> as_typed(None), as_typed(True), as_typed(1e-6)
    ('null', 'true', '1e-06')
    """
    return json.dumps(value) if value is None or isinstance(value, bool) else str(value)


# Whether a value is valid, and which values are, in words. A run needs each key without a dot.
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
    "flush_seconds": (lambda value: _is_finite(value) and value > 0, "a finite number above 0"),
    "checkpoint_every": _whole(0, 10**9),
    "resume": (lambda value: value is None or value != "", "a run folder, or null"),
    "progress": _one_of(True, False, None),
    "show": _one_of("backward", None),
    "data.samples": _whole(1, 10**9),
    "data.features": _whole(1, 10**9),
    "data.targets": _whole(1, 10**9),
    "model.hidden": _whole(1, 10**9),
    "model.bias": _one_of(True, False),
    "model.init": _one_of("normal", "he"),
    "optimizer.lr": NOT_NEGATIVE,
    "optimizer.momentum": NOT_NEGATIVE,
}
KEYS = [*GROUPS, *RULES]
# What other programs call these keys, where the names look nothing alike.
OTHER_NAMES = {
    "epochs": "steps", "iterations": "steps", "iters": "steps", "random_seed": "seed",
    "gpu": "device", "accelerator": "device", "precision": "dtype", "num_workers": "threads",
    "log_interval": "log_every", "save_every": "checkpoint_every", "checkpoint": "resume",
    "verbose": "progress", "activation": "function", "network": "model", "opt": "optimizer",
    "input_size": "data.features", "num_classes": "data.targets", "width": "model.hidden",
    "learning_rate": "optimizer.lr",
}  # fmt: skip


_NAMES = {name.rpartition(".")[2]: name for name in KEYS} | OTHER_NAMES
_NAMES |= {name: name for name in KEYS}


def meant_by(name: str) -> str | None:
    """The key that a name stands for: its own, its last part, or what others call it.

    >>> meant_by("lr"), meant_by("epochs"), meant_by("colour")
    ('optimizer.lr', 'steps', None)
    """
    return _NAMES.get(name)


def no_such_key(key: str) -> str:
    """The message for a key that nothing reads.

    >>> no_such_key("epochs")
    'epochs is not a key of the config; did you mean steps?'
    """
    said = f"{key} is not a key of the config"
    if key.removeprefix("data.") in ("batch_size", "batch", "batchsize"):
        return f"{said}: each step uses all of the data; data.samples says how many rows that is"
    group, _, argument = key.rpartition(".")
    meant = meant_by(_nearest(key, _NAMES))
    if meant not in (None, key):
        return f"{said}; did you mean {meant}?"
    if group in GROUPS[1:]:
        return (
            f"{key} is not in the file of this {group}; choose another {group}, or add an argument "
            f"that its class takes with a +: +{group}.{argument}=VALUE"
        )
    return f"{said}; the keys are {', '.join(KEYS)}"


def no_such_choice(group: str, name: str, choices: Iterable[str]) -> str:
    """The message for a choice that is none of the files that Hydra found in its group."""
    if group.startswith("hydra/"):
        return f"{group}={name} is not installed; docs/sweeps.md lists the launchers and sweepers"
    files = [file for file in choices if not file.startswith("_")]
    if near := _nearest(name, files):
        return f"{group}={name} is not a choice; did you mean {near}?"
    daily = [file for file in files if not file.startswith(("exercise_", "mistake_"))]
    return f"{group}={name} is not a choice; use one of {', '.join(daily)}"


def _nearest(typed: str, names: Iterable[str]) -> str:
    """The name that is spelled most alike, or ""; capitals and `_` do not count."""
    spelled = {name.lower().replace("_", ""): name for name in names}
    near = difflib.get_close_matches(typed.lower().replace("_", ""), spelled, n=1, cutoff=0.7)
    return spelled[near[0]] if near else ""

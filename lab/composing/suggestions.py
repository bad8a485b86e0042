"""What somebody may have meant who typed a key or a choice that does not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from lab import HOME

CONF = HOME / "conf"
# The keys of a run, as they are typed, and what other programs call them.
KEYS = {
    "steps": ("epochs", "iterations", "iters", "max_steps", "num_steps", "n_steps"),
    "seed": ("random_seed", "manual_seed"),
    "device": ("gpu", "accelerator"),
    "dtype": ("precision",),
    "threads": ("num_threads", "num_workers", "cpus"),
    "compile": (),
    "log_every": ("log_interval", "log_every_n_steps"),
    "flush_seconds": ("flush_secs",),
    "checkpoint_every": ("save_every", "checkpoint_interval"),
    "resume": ("checkpoint", "resume_from"),
    "progress": ("progress_bar", "verbose"),
    "show": (),
    "function": ("activation", "act"),
    "model": ("net", "network"),
    "data": ("dataset",),
    "optimizer": ("optim", "opt"),
    "data.samples": ("samples", "n_samples", "num_samples"),
    "data.features": ("features", "in_features", "input_size"),
    "data.targets": ("targets", "out_features", "num_classes"),
    "model.hidden": ("hidden", "hidden_size", "hidden_dim", "width"),
    "model.bias": ("bias",),
    "model.init": ("init",),
    "optimizer.lr": ("lr", "learning_rate"),
    "optimizer.momentum": ("momentum",),
}
ONE_BATCH = ("batch_size", "batch", "batchsize", "data.batch_size")


def no_such_key(key: str) -> str:
    """The message for a key that nothing reads.

    >>> no_such_key("epochs")
    'epochs is not a key of the config; did you mean steps?'
    """
    said = f"{key} is not a key of the config"
    if key in ONE_BATCH:
        return f"{said}: each step uses all of the data; data.samples says how many rows that is"
    group, _, argument = key.rpartition(".")
    names = {name: meant for meant, others in KEYS.items() for name in (meant, *others)}
    if near := _nearest(key, names):
        if names[near] != key:
            return f"{said}; did you mean {names[near]}?"
    elif group == "" and (near := _nearest(key, (name.rpartition(".")[2] for name in KEYS))):
        return f"{said}; did you mean {near}?"
    if group in ("optimizer", "data", "model"):
        return (
            f"{key} is not in the file of this {group}; choose another {group}, or add an argument "
            f"that its class takes with a +: +{group}.{argument}=VALUE"
        )
    return f"{said}; the keys are {', '.join(KEYS)}"


def no_such_choice(group: str, name: str, choices: Iterable[str] = ()) -> str:
    """The message for a choice that is no file of its group.

    Args:
        choices: all that Hydra found, if it said so; else those in conf/.
    """
    if group.startswith("hydra/"):
        return f"{group}={name} is not installed; docs/sweeps.md lists the launchers and sweepers"
    listed = [choice for choice in choices if not choice.startswith("_")]
    listed = listed or sorted(path.stem for path in (CONF / group).glob("[!_]*.yaml"))
    if near := _nearest(name, listed):
        return f"{group}={name} is not a choice; did you mean {near}?"
    daily = [choice for choice in listed if not choice.startswith(("exercise_", "mistake_"))]
    return f"{group}={name} is not a choice; use one of {', '.join(daily)}"


def _nearest(typed: str, names: Iterable[str]) -> str | None:
    """The name that is spelled most alike; capitals and `_` do not count."""
    spelled = {name.lower().replace("_", ""): name for name in names}
    near = difflib.get_close_matches(typed.lower().replace("_", ""), spelled, n=1, cutoff=0.7)
    return spelled[near[0]] if near else None

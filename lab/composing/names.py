"""Names of run and sweep folders: readable, and never the same twice."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from hydra.core.hydra_config import HydraConfig
from omegaconf import OmegaConf

from lab.devices import pick_device
from lab.files import named

LONGEST = 120  # characters; file systems take 255 bytes, a legend far fewer


def run_name(choices: Mapping[str, str], device: str, overrides: Sequence[str] = ()) -> str:
    """Say what a run is: function, optimizer, device, and what else was set for it.

    >>> run_name({"function": "myrelu", "optimizer": "adam"}, "cpu", ["optimizer.lr=0.1"])
    'myrelu_adam_cpu_lr-0.1'
    """
    said = ("function", "optimizer", "device", "experiment", "resume")
    parts = [str(choices["function"]), str(choices["optimizer"]), device]
    for override in overrides:
        key, _, value = override.lstrip("+~").partition("=")
        if key not in said and not key.startswith("hydra"):
            parts.append(f"{key.rpartition('.')[2]}-{value}")
    # No character that a shell, or Hydra in `resume=NAME`, would want quoted.
    return re.sub(r"[^\w.+-]+", "-", "_".join(parts), flags=re.ASCII)[:LONGEST]


def new_folder(parent: str, name: str) -> str:
    """Make a folder that nobody else has: the name, date and time, a number if need be."""
    stem = f"{name}_{datetime.now():%Y-%m-%d_%H-%M-%S}"
    number = 1
    with named(Path(parent)):
        while True:
            folder = Path(parent) / (stem if number == 1 else f"{stem}-{number}")
            try:
                folder.mkdir(parents=True)
                return str(folder)
            except FileExistsError:  # another run took the name this instant
                number += 1


def quoted(path: Path) -> str:
    """The path as a value in an override: Hydra wants quotes around most characters.

    >>> quoted(Path("outputs/run")), quoted(Path("my runs/a=b"))
    ('outputs/run', '"my runs/a=b"')
    """
    text = str(path)
    return text if re.fullmatch(r"[\w./+-]+", text, flags=re.ASCII) else f'"{text}"'


def _name_of_this_job(device: str) -> str:
    if device == "auto":
        device = str(pick_device(device))
    hydra = HydraConfig.get()
    return run_name(hydra.runtime.choices, device, hydra.overrides.task)


def _run_folder(parent: str, device: str, resume: str | None) -> str:
    return resume or new_folder(parent, _name_of_this_job(device))


def _sweep_folder(parent: str, experiment: str | None) -> str:
    return new_folder(parent, experiment or "sweep")


def _record_folder(resume: str | None) -> str:
    return ".hydra/resume" if resume else ".hydra"


def register_resolvers() -> None:
    """Let the config name folders; cached, so that all jobs of a sweep see one sweep folder."""
    register = OmegaConf.register_new_resolver
    register("run_name", _name_of_this_job, replace=True)
    register("run_folder", _run_folder, use_cache=True, replace=True)
    register("sweep_folder", _sweep_folder, use_cache=True, replace=True)
    register("record_folder", _record_folder, replace=True)

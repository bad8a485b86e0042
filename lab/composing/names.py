"""Names of run and sweep folders: readable, and never the same twice."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from omegaconf import OmegaConf

from lab.devices import pick_device

LONGEST = 120  # characters; file systems allow 255 bytes, and a legend has less space


def run_name(choices: Mapping[str, str], device: str, overrides: Sequence[str] = ()) -> str:
    """Name a run after its function, optimizer, device, and what else was set for it.

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


def quoted(text: str) -> str:
    """A text as the value of an override: Hydra wants quotes around most characters.

    >>> quoted("outputs/run"), quoted("my runs/a=b"), quoted("2024")
    ('outputs/run', '"my runs/a=b"', '"2024"')
    """
    plain = r"(?!(null|true|false|nan|inf)$)[a-z_][\w./+-]*"
    is_plain = re.fullmatch(plain, text, flags=re.ASCII | re.IGNORECASE)
    return text if is_plain else '"{}"'.format(text.replace('"', r"\""))


def run_to_resume(resume: str | int) -> Path:
    """The run folder that the key `resume` names; a file in it stands for it.

    >>> run_to_resume("outputs/run/checkpoint.pt").as_posix()
    'outputs/run'
    """
    path = Path(str(resume))
    return path.parent if path.name == "checkpoint.pt" or path.is_file() else path


def _name_of_this_job(device: Any) -> str:
    device = str(device)  # which the rules have not seen yet
    if device == "auto":
        device = str(pick_device(device))
    return run_name(HydraConfig.get().runtime.choices, device, typed_overrides())


def typed_overrides() -> tuple[str, ...]:
    """The overrides of this job as they were typed, with no `${...}` in them resolved."""
    return tuple(OmegaConf.to_container(HydraConfig.get().overrides.task))  # type: ignore[arg-type]


def _run_folder(device: str, resume: str | None) -> str:
    if resume:
        return str(run_to_resume(resume))
    return f"outputs/{_name_of_this_job(device)}_{_this_moment()}"


def _sweep_folder(experiment: str | None) -> str:
    return f"outputs/{experiment or 'sweep'}_{_this_moment()}"


def _this_moment() -> str:
    """The time and the process, which two runs on one machine never share."""
    return f"{datetime.now():%Y-%m-%d_%H-%M-%S-%f}-{os.getpid()}"


def register_resolvers() -> None:
    """Let the config name folders, once for each process: all jobs of a sweep share its folder."""
    register = OmegaConf.register_new_resolver
    register("run_name", _name_of_this_job, replace=True)
    register("run_folder", _run_folder, use_cache=True, replace=True)
    register("sweep_folder", _sweep_folder, use_cache=True, replace=True)

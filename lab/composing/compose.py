"""A config without a command line, for a notebook or a script."""

from __future__ import annotations

from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from lab import HOME
from lab.composing.command_line import explaining_hydra
from lab.composing.rules import validated
from lab.config import Config


def compose_config(*overrides: str) -> Config:
    """The config that `python train.py *overrides` would train.

    Args:
        overrides: as on the command line, one string each: `"optimizer.lr=1e-5"`.

    Raises:
        UserError: an override names no key or no choice, or its value is not valid.

    >>> compose_config("function=relu", "steps=3").steps
    3
    """
    with explaining_hydra(), initialize_config_dir(str(HOME / "conf"), version_base="1.3"):
        cfg = compose("config", list(overrides), return_hydra_config=True)
    keys = OmegaConf.masked_copy(cfg, [str(key) for key in cfg if key != "hydra"])
    return validated(keys, cfg.hydra.runtime.choices, overrides)

"""What is typed behind `python train.py`, where Hydra's own words would not help."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException, OverrideParseException
from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from lab.composing.config import GROUPS, checked, no_such_choice, no_such_key
from lab.errors import UserError, explained
from lab.files import locked
from lab.recording.checkpoint import load_checkpoint, resumed_config
from lab.recording.run_folder import points_before, refuse_used_folder

SWEEP = "several values are a sweep: python train.py -m"


def check_choices(arguments: Sequence[str]) -> None:
    """Refuse what is no choice, or takes something away, before Hydra composes it.

    Args:
        arguments: the command line without the script.

    Raises:
        UserError: names the argument, and what is allowed.

    >>> check_choices(["-m", "function=relu,myrelu", "steps=5"])
    >>> check_choices(["~steps"])
    Traceback (most recent call last):
        ...
    lab.errors.UserError: ~steps: a run needs each key; leave this out for the default
    """
    sweeps = any(
        word in ("-m", "--multirun") or word.startswith("experiment=") for word in arguments
    )
    for argument in arguments:
        key, given, value = argument.partition("=")
        if key.startswith("~"):
            raise UserError(f"{argument}: a run needs each key; leave this out for the default")
        if key.lstrip("+") not in (*GROUPS, "experiment") or not given:
            continue
        if key.startswith("+"):
            raise UserError(f"{argument}: leave the + out")
        if key == "experiment" and "," in value:
            raise UserError(f"{argument}: one experiment at a time")
        if "," in value and "[" not in value and not sweeps:
            raise UserError(f"{argument}: {SWEEP} {argument}")
        names = value.split(",") if sweeps and "(" not in value else [value]
        for name in names:
            # In a sweep Hydra also takes functions of its own: glob(*), choice(a,b).
            word = r"[A-Za-z_][\w.-]*" + (r"|\w+\(.*\)" if sweeps else "")
            if name == "null" or not re.fullmatch(word, name):
                raise UserError(no_such_choice(key, name))


@contextmanager
def composed() -> Iterator[None]:
    """Tell what Hydra refuses to compose in the words of this lab."""
    try:
        yield
    except OverrideParseException as error:
        raise UserError(
            f"{error.override}: not of the form key=value; a value with other "
            "characters goes between quotes, 'key=\"value\"'"
        ) from error
    except (HydraException, OmegaConfBaseException) as error:
        raise UserError(_about(str(error))) from error


def _about(text: str) -> str:
    if key := re.search(r"Could not (?:override|append to config) '([^'=]+)", text):
        return no_such_key(key[1])
    if choice := re.search(r"Could not (?:find|load) '([\w/]+)/([^'/]*)'", text):
        return no_such_choice(*choice.groups())
    if several := re.search(r"Ambiguous value for argument '([^']+)'", text):
        return f"{several[1]}: {SWEEP} {several[1]}"
    if ours := re.search(r"UserError raised while resolving interpolation: (.*)", text):
        return ours[1]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return "; ".join(lines[:2])


class CheckFirst(Callback):
    """Refuses what can't be run before Hydra makes or touches a folder."""

    def on_run_start(self, config: DictConfig, **kwargs: Any) -> None:
        # Hydra turns an exception of a callback into a warning, but lets the SystemExit through
        # that `explained` makes of it.
        with explained(), composed():
            job = checked(OmegaConf.masked_copy(config, [key for key in config if key != "hydra"]))
            HydraConfig.instance().set_config(config)  # the name of the folder is made from it
            if config.resume is None:
                refuse_used_folder(Path(config.hydra.run.dir))
            else:
                folder, hydra = Path(config.resume), config.hydra
                checkpoint = load_checkpoint(folder)
                job = resumed_config(checkpoint, job, hydra.runtime.choices, hydra.overrides.task)
                points_before(checkpoint["step"], folder, job["log_every"])
                with locked(folder):
                    pass

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        with explained():
            for override in config.hydra.overrides.task:
                if override.startswith("resume=") and override != "resume=null":
                    raise UserError(f"{override}: goes on with one run; a sweep makes new ones")

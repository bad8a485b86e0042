"""Around Hydra's main: errors as messages, and what Hydra refuses in words that help."""

from __future__ import annotations

import gc
import logging
import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException, OverrideParseException
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from lab.composing.keys import GROUPS, meant_by, no_such_choice, no_such_key
from lab.composing.sweep import sweep_compared
from lab.errors import UserError, errors_as_messages

MULTIRUN = {"-m", "--multirun"}


@contextmanager
def command_line() -> Iterator[None]:
    """Run Hydra's main so that whatever stops it is one message and an exit code."""
    os.environ.setdefault("HYDRA_FULL_ERROR", "1")  # else Hydra prints a traceback of its own
    logging.raiseExceptions = False  # a full disk is one message, not one more for train.log
    logging.captureWarnings(True)  # so that they go above a progress bar, and into train.log
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # All is imported, and it stays: the garbage collector need not look through it (lab/start.py).
    gc.freeze()
    gc.enable()
    sys.path.append(os.getcwd())  # a Function may lie in the folder that the user stands in
    for stream in ("stdout", "stderr"):
        if getattr(sys, stream) is None:  # closed by the shell
            setattr(sys, stream, open(os.devnull, "w"))  # noqa: SIM115
    try:
        with errors_as_messages(), sweep_compared(), explaining_hydra():
            refuse_flags(sys.argv[1:])
            refuse_no_run(sys.argv[1:])
            yield
            print(end="", flush=True)  # an error here means that the outcome was not printed
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # nothing is left to interrupt


def refuse_flags(arguments: list[str]) -> None:
    """Refuse `--steps 100`, which other programs take for `steps=100`.

    >>> refuse_flags(["function=relu", "--steps", "100"])
    Traceback (most recent call last):
        ...
    lab.errors.UserError: --steps is not an option; write steps=100
    """
    for argument, following in zip(arguments, [*arguments[1:], "VALUE"], strict=True):
        flag, _, value = argument.partition("=")
        key = meant_by(flag.lstrip("-").replace("-", "_"))
        if flag.startswith("-") and key:
            raise UserError(f"{flag} is not an option; write {key}={value or following}")
    for flag in MULTIRUN & {*arguments}:
        at = arguments.index(flag)
        if all(any("=" in a for a in side) for side in (arguments[:at], arguments[at:])):
            raise UserError("put -m first: python train.py -m KEY=VALUE,VALUE")


def refuse_no_run(arguments: list[str]) -> None:
    """Refuse to resume what does not exist, before Hydra makes a folder of that name."""
    typed = [a for a in arguments if a.lstrip("+").startswith("resume=") and "${" not in a]
    for argument in () if MULTIRUN & {*arguments} else typed:
        with suppress(HydraException):  # what it can't parse, Hydra refuses later
            run = OverridesParser.create().parse_override(argument).value()
            if isinstance(run, str) and run and not os.path.exists(run):
                raise UserError(f"{argument} is not possible: {run} does not exist")


@contextmanager
def explaining_hydra() -> Iterator[None]:
    """Turn what Hydra refuses to compose into a `UserError`."""
    try:
        yield
    except (HydraException, OmegaConfBaseException, YAMLError, ValueError) as error:
        raise UserError(_explanation(error)) from error


def _explanation(error: Exception) -> str:
    text = str(error)
    if isinstance(error, OverrideParseException):
        return (
            f"{error.override} is not valid; write key=value without spaces, and quote a value "
            "that contains special characters: 'key=\"value\"'"
        )
    if isinstance(error, YAMLError):
        return f"a config file is not valid YAML: {' '.join(text.split())}"
    if text.startswith("Config group override must be"):
        typed = [a for a in sys.argv if a.lstrip("+").partition("=")[0] in (*GROUPS, "experiment")]
        return (
            f"{' '.join(typed)} is not valid; a choice is the name of a file, such as function=relu"
        )
    if key := re.search(r"Could not (?:override|append to config) '([^'=]+)", text):
        return no_such_key(key[1])
    if choice := re.search(r"Could not (?:find|load) '([\w/]+)/([^'/]*)'", text):
        return no_such_choice(choice[1], choice[2], re.findall(r"^\t(\S+)$", text, re.MULTILINE))
    if several := re.search(r"Ambiguous value for argument '([^']+)'", text):
        if several[1].startswith("experiment="):
            return f"{several[1]} is not possible; run one experiment at a time"
        return f"{several[1]} has several values; for a sweep: python train.py -m {several[1]}"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " ".join(lines[:2])

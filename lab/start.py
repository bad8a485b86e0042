"""How `python train.py` starts and ends; imported before PyTorch.

Ctrl-C during the imports ends without a traceback. The garbage collector is off until all is
imported: what is imported stays, and the collector would walk through all of PyTorch again and
again (0.6 s).
"""

# ruff: noqa: E402
from __future__ import annotations

import gc
import signal

signal.signal(signal.SIGINT, signal.SIG_DFL)
gc.disable()

import argparse
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def _let_argparse_skip_lazy_help() -> None:
    """Let Hydra start on Python 3.14, whose argparse formats every help string at once.

    Hydra 1.3.8 gives `--shell-completion` a help object that is no string until it is printed
    (hydra#3121). This can go when Hydra gives it a string.
    """
    check = getattr(argparse._ActionsContainer, "_check_help", None)
    if check is None:
        return

    def check_strings(self: Any, action: argparse.Action) -> None:
        if isinstance(action.help, str):
            check(self, action)

    argparse._ActionsContainer._check_help = check_strings  # type: ignore[attr-defined]


@contextmanager
def command_line() -> Iterator[None]:
    """Run Hydra's main so that whatever stops it is one message and an exit code."""
    from lab.composing.command_line import explaining_hydra
    from lab.errors import errors_as_messages

    os.environ.setdefault("HYDRA_FULL_ERROR", "1")  # else Hydra prints a traceback of its own
    logging.raiseExceptions = False  # a full disk is one message, not one more for train.log
    signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.freeze()
    gc.enable()
    sys.path.append(os.getcwd())  # a Function may lie in the folder that the user stands in
    _let_argparse_skip_lazy_help()
    try:
        with errors_as_messages(), explaining_hydra():
            yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # nothing is left to interrupt

"""How `python train.py` starts; imported before PyTorch.

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


_let_argparse_skip_lazy_help()

"""Prepare the start of `python train.py`; imported before PyTorch.

Ctrl-C during the imports gives no traceback. The garbage collector is off during the imports,
because it would examine all of PyTorch again and again (0.6 s) without finding anything to free.
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

    Hydra 1.3.8 gives `--shell-completion` a help object that becomes a string when it is printed
    (hydra#3121). Remove this when Hydra gives it a string.
    """
    check = getattr(argparse._ActionsContainer, "_check_help", None)
    if check is None:
        return

    def check_strings(self: Any, action: argparse.Action) -> None:
        if isinstance(action.help, str):
            check(self, action)

    argparse._ActionsContainer._check_help = check_strings  # type: ignore[attr-defined]


_let_argparse_skip_lazy_help()

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

# Hydra 1.3.8 gives `--shell-completion` a help object that becomes a string when it is printed
# (hydra#3121). Python 3.14 checks every help string at once, and Hydra would not start. Remove this
# when Hydra gives it a string.
argparse._ActionsContainer._check_help = lambda self, action: None  # type: ignore[attr-defined]

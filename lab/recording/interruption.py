"""Ctrl-C, SIGTERM and SIGHUP: the first asks a training to stop, the second stops it at once."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any, Self

# A lost connection sends SIGHUP, which Windows does not have.
SIGNALS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]


class Interruption:
    """Listens for a signal while its block runs.

    Attributes:
        signal: the number of the first signal that came, or None.
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        self._handlers: dict[int, Any] = {}

    def __enter__(self) -> Self:
        # Python allows handlers only in the main thread.
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                if signal.getsignal(number) is not signal.SIG_IGN:  # nohup
                    self._handlers[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.signal = number
        self.__exit__()  # the next signal stops at once

"""Ctrl-C, SIGTERM and SIGHUP: the first asks a training to stop, the second stops it at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType

# A lost connection sends SIGHUP, which Windows does not have.
SIGNALS = [one for one in signal.Signals if one.name in ("SIGINT", "SIGTERM", "SIGHUP")]


@contextmanager
def first_signal_to(note: Callable[[int], None]) -> Iterator[None]:
    """While the block runs, pass the number of the first signal to `note`, not to Python."""
    noted: list[int] = []
    with ExitStack() as handlers:

        def handle(number: int, frame: FrameType | None) -> None:
            noted.append(number)
            if len(noted) == 1:
                note(number)
            else:  # whoever handled it before stops at once
                handlers.close()
                signal.raise_signal(number)

        # Python allows handlers only in the main thread.
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                if signal.getsignal(number) is not signal.SIG_IGN:  # nohup
                    handlers.callback(signal.signal, number, signal.signal(number, handle))
        yield

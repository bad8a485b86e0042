"""The terminal of a session: single keys, a cleared screen, colours. Plain lines elsewhere."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager

TICK_SECONDS = 0.1
_CODES = {"green": 32, "red": 31, "yellow": 33, "bold": 1, "dim": 2}


def is_terminal() -> bool:
    """Whether a person can press keys and see a screen."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def painted(text: str, colour: str) -> str:
    """The text in a colour, where the terminal has colours and NO_COLOR is not set."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not sys.stdout.isatty():
        return text
    return f"\033[{_CODES[colour]}m{text}\033[0m"


def clear() -> None:
    """Clear the screen, and what has scrolled out of it."""
    print("\033[2J\033[3J\033[H", end="")


def ticks() -> Generator[str, None, None]:
    """A key that was pressed, or an empty text after a short time without one."""
    if not is_terminal():
        while True:
            time.sleep(TICK_SECONDS)
            yield ""
    with _single_keys() as read_key:
        while True:
            yield read_key()


@contextmanager
def _single_keys() -> Iterator[Callable[[], str]]:
    """A function that waits a tick for a key; keys come at once, without Enter."""
    if sys.platform == "win32":
        import msvcrt

        os.system("")  # this switches the escape codes on

        def read_key() -> str:
            time.sleep(TICK_SECONDS)
            return msvcrt.getwch() if msvcrt.kbhit() else ""

        yield read_key
        return
    import select
    import termios
    import tty

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)

    def read_key() -> str:
        ready, _, _ = select.select([descriptor], [], [], TICK_SECONDS)
        return os.read(descriptor, 1).decode(errors="replace") if ready else ""

    try:
        tty.setcbreak(descriptor)
        yield read_key
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)

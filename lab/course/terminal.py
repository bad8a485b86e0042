"""The terminal of a session: single keys, a cleared screen, colours. Plain lines elsewhere."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Generator

TICK_SECONDS = 0.1
_CODES = {"green": 32, "red": 31, "bold": 1, "dim": 2}


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
    """A key at once when it is pressed, without Enter; an empty text after a time without one."""
    if not is_terminal():
        while True:
            time.sleep(TICK_SECONDS)
            yield ""
    if sys.platform == "win32":
        import msvcrt

        os.system("")  # this switches the escape codes on
        while True:
            time.sleep(TICK_SECONDS)
            yield msvcrt.getwch() if msvcrt.kbhit() else ""
    import select
    import termios
    import tty

    before = termios.tcgetattr(sys.stdin)
    try:
        tty.setcbreak(sys.stdin)
        while True:
            ready, _, _ = select.select([sys.stdin], [], [], TICK_SECONDS)
            yield os.read(sys.stdin.fileno(), 1).decode(errors="replace") if ready else ""
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)

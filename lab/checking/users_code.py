"""Run somebody else's code, and report what it raises with the lines of that code."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from lab.errors import UserError


class Crash(Exception):
    """The code under check raised; `doing` says what it was asked to do."""

    def __init__(self, error: BaseException, doing: str, kind: str):
        super().__init__(str(error))
        frames = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
        # PyTorch's apply calls one after the other.
        if doing == "in forward" and any(f.f_code.co_name == "setup_context" for f in frames):
            doing = "in setup_context"
        self.error, self.doing, self.kind = error, doing, kind

    @property
    def told(self) -> str:
        """What happened, in one sentence.

        >>> Crash(ValueError("too small\\nby far"), "in forward", "crash").told
        'ValueError in forward: too small'
        >>> Crash(SystemExit(3), "in backward", "crash").told
        'sys.exit() is called in backward'
        """
        if isinstance(self.error, SystemExit):
            return f"sys.exit() is called {self.doing}"
        message = str(self.error).strip().partition("\n")[0]
        if isinstance(self.error, UserError):
            return message
        return f"{type(self.error).__name__} {self.doing}: {message}"


@contextmanager
def users_code(doing: str, kind: str = "crash") -> Iterator[None]:
    try:
        yield
    except Crash:
        raise
    except (Exception, SystemExit) as error:  # anything may be raised, and a class is graded on
        raise Crash(error, doing, kind) from error

"""Run somebody else's code, and report what it raises with the lines of that code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch.autograd.gradcheck import GradcheckError

from lab.errors import UserError


class Crash(Exception):
    """The code under check raised; `doing` says what it was asked to do."""

    def __init__(self, error: BaseException, doing: str, kind: str):
        super().__init__(str(error))
        self.error, self.doing, self.kind = error, doing, kind

    @property
    def told(self) -> str:
        """What happened, in one sentence.

        >>> Crash(ValueError("too small\\nby far"), "in forward", "crash").told
        'It raises ValueError in forward: too small'
        >>> Crash(SystemExit(3), "in backward", "crash").told
        'It ends the program in backward.'
        """
        if isinstance(self.error, SystemExit):
            return f"It ends the program {self.doing}."
        message = str(self.error).strip().partition("\n")[0]
        if isinstance(self.error, UserError):
            return message
        return f"It raises {type(self.error).__name__} {self.doing}: {message}"


@contextmanager
def users_code(doing: str, kind: str = "crash") -> Iterator[None]:
    # What somebody's forward or backward may raise is anything; gradcheck's verdict is no fault.
    try:
        yield
    except (GradcheckError, Crash):
        raise
    except (Exception, SystemExit) as error:  # a script that grades a class must go on
        raise Crash(error, doing, kind) from error

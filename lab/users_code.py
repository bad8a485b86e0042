"""Running somebody else's code: what it raises is told with their lines, not with ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch.autograd.gradcheck import GradcheckError


class Crash(Exception):
    """The code under check raised; `doing` says what it was asked to do."""

    def __init__(self, error: Exception, doing: str, kind: str):
        super().__init__(str(error))
        self.error, self.doing, self.kind = error, doing, kind


@contextmanager
def users_code(doing: str, kind: str = "crash") -> Iterator[None]:
    # What somebody's forward or backward may raise is anything; gradcheck's verdict is no fault.
    try:
        yield
    except (GradcheckError, Crash):
        raise
    except Exception as error:
        raise Crash(error, doing, kind) from error

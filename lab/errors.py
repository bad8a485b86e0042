"""Errors for people: a user's mistake is one message and an exit code, never a traceback."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


class UserError(Exception):
    """A mistake of the user; its text names the key, the value and what is allowed.

    >>> str(UserError("steps=-1: a whole number of at least 1"))
    'steps=-1: a whole number of at least 1'
    """


@contextmanager
def explained() -> Iterator[None]:
    """Run a command so that a `UserError` in it becomes one message on stderr and exit code 2."""
    try:
        yield
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)

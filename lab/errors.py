"""Errors for people: a user's mistake is one message and an exit code, never a traceback."""

from __future__ import annotations

import os
import sys
import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HOME = Path(__file__).parent.parent
# Code that a user did not write. functions/ and exercises/ are not here: that is where they do.
OURS = [HOME / name for name in ("lab", "models", "optimizers", "datasets")]
OURS += [HOME / f"{name}.py" for name in ("train", "check", "compare")]
INSTALLED = [Path(path) for path in {*sysconfig.get_paths().values()}]


class UserError(Exception):
    """A mistake of the user; its text names the key, the value and what is allowed.

    >>> str(UserError("steps=-1: a whole number of at least 1"))
    'steps=-1: a whole number of at least 1'
    """

    exit_code = 2


@contextmanager
def explained() -> Iterator[None]:
    """Run a command so that what stops it is told to a person.

    A `UserError` becomes one message on stderr and its exit code, a file that can't be written one
    message and 2, Ctrl-C exit code 130, and a fault in the user's code the traceback of that code.
    """
    try:
        yield
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # `| head` has read enough; what is still to be flushed goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except OSError as error:
        if error.filename is None:
            raise
        print(f"error: {error.filename}: {error.strerror}", file=sys.stderr)
        sys.exit(2)
    except Exception as error:
        print(user_traceback(error), end="", file=sys.stderr)
        sys.exit(1)


def user_traceback(error: BaseException) -> str:
    """The traceback from the first line of the user's own code on; all of it if there is none."""
    frames = error.__traceback__
    while frames is not None and not _is_users(frames.tb_frame.f_code.co_filename):
        frames = frames.tb_next
    if frames is None and not _is_users_syntax(error):
        frames = error.__traceback__
    return "".join(traceback.format_exception(type(error), error, frames, chain=False))


def users_lines(error: BaseException) -> str:
    """The same, or nothing where the error never passed through the user's code."""
    passed = any(
        _is_users(frame.f_code.co_filename) for frame, _ in traceback.walk_tb(error.__traceback__)
    )
    return user_traceback(error) if passed or _is_users_syntax(error) else ""


def _is_users_syntax(error: BaseException) -> bool:
    """A file that does not parse never ran: it is in no frame, and the message has its line."""
    return isinstance(error, SyntaxError) and _is_users(error.filename or "")


def _is_users(filename: str) -> bool:
    path = Path(filename)
    return path.is_file() and not any(path.is_relative_to(place) for place in OURS + INSTALLED)

"""Errors for people: a user's mistake is one message and an exit code, never a traceback."""

from __future__ import annotations

import os
import re
import sys
import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab import HOME

# Code that a user did not write; users write theirs into functions/ and exercises/.
OURS = [HOME / name for name in ("lab", "models", "optimizers", "datasets")]
OURS += [HOME / f"{name}.py" for name in ("train", "check", "compare")]
INSTALLED = [Path(path) for path in {*sysconfig.get_paths().values()}]

OUT_OF_MEMORY = "can't allocate memory|out of memory"


class UserError(Exception):
    """A mistake of the user; its text names the key, the value and what is allowed.

    >>> str(UserError("steps=-1 is not valid; use a whole number of at least 1"))
    'steps=-1 is not valid; use a whole number of at least 1'
    """

    exit_code = 2


@contextmanager
def errors_as_messages() -> Iterator[None]:
    """Run a command so that an error ends it with a message and an exit code.

    A `UserError` becomes one line on stderr and its exit code, a file that can't be written one
    line and 2, Ctrl-C one word and 130. A fault in the user's code becomes the traceback of that
    code and 1.
    """
    try:
        yield
    except (KeyboardInterrupt, Exception) as error:
        message, exit_code = _message(error)
        print(message, end="", file=sys.stderr)
        sys.exit(exit_code)


def _message(error: BaseException) -> tuple[str, int]:
    """What to print for an error, line ends included, and the exit code."""
    if is_interruption(error):
        return "interrupted\n", 130
    if isinstance(error, UserError):
        return f"error: {error}\n", error.exit_code
    if isinstance(error, BrokenPipeError):  # the reader, such as `| head`, has ended
        # The rest of the output is dropped.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return "", 141
    if unwritten := _unwritten(error):
        return f"error: {unwritten}\n", 1
    if lines := users_lines(error):
        return lines, 1
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return f"error: {where}{error.strerror or error}\n", 2
    # PyTorch raises a plain RuntimeError for the CPU, and its own subclass for an accelerator.
    is_pytorchs = isinstance(error, RuntimeError) and re.search(OUT_OF_MEMORY, str(error))
    if is_pytorchs or isinstance(error, MemoryError):
        return f"error: there is not enough memory; use smaller sizes ({one_line(error)})\n", 2
    return user_traceback(error), 1


def is_interruption(error: BaseException | None) -> bool:
    """Whether Ctrl-C is the cause, also where a library's own clean-up failed because of it."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def one_line(error: BaseException) -> str:
    """The error in one line, for a log or a summary.

    >>> one_line(UserError("steps=-1: too few")), one_line(ValueError("bad\\nvery bad"))
    ('steps=-1: too few', 'ValueError: bad')
    """
    if unwritten := _unwritten(error):
        return unwritten
    text = (str(error).strip() or type(error).__name__).splitlines()[0]
    return text if isinstance(error, UserError) else f"{type(error).__name__}: {text}"


def _unwritten(error: BaseException) -> str:
    """A sentence on the method that is not written yet; an empty text for any other error."""
    users = [f for f in traceback.extract_tb(error.__traceback__) if is_users_file(f.filename)]
    if type(error) is not NotImplementedError or str(error) or not users:
        return ""
    where = f"{os.path.relpath(users[-1].filename)}, line {users[-1].lineno}"
    return f"{where}: {users[-1].name} is not written yet"


def user_traceback(error: BaseException) -> str:
    """Format the traceback from the first line of the user's own code on.

    Autograd's C++ may raise without any of the user's lines in the traceback. Then the last line of
    the lab remains, such as `loss.backward()`.
    """
    if lines := users_lines(error):
        return lines
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if _is_in(frame.filename, OURS)]
    return _formatted(error, ours[-1:] or frames)


def users_lines(error: BaseException) -> str:
    """The same traceback, or "" if the error did not pass through the user's code."""
    frames = traceback.extract_tb(error.__traceback__)
    for number, frame in enumerate(frames):
        if is_users_file(frame.filename):
            return _formatted(error, frames[number:])
    # A file with a syntax error never ran, so no frame shows it.
    is_syntax = isinstance(error, SyntaxError) and is_users_file(error.filename or "")
    return _formatted(error, []) if is_syntax else ""


def _formatted(error: BaseException, frames: list[traceback.FrameSummary]) -> str:
    head = "Traceback (most recent call last):\n" if frames else ""
    lines = [*traceback.format_list(frames), *traceback.format_exception_only(error)]
    return head + "".join(lines)


def is_users_file(filename: str) -> bool:
    """Whether a user wrote this file: it is neither the lab's nor an installed package's."""
    return Path(filename).is_file() and not _is_in(filename, OURS + INSTALLED)


def _is_in(filename: str, places: list[Path]) -> bool:
    return any(Path(filename).is_relative_to(place) for place in places)

"""Files that hold all of the new content or all of the old, after a kill or on a full disk too."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab.errors import UserError

with warnings.catch_warnings():
    # Without fcntl the lock is a file with a process id; filelock breaks that of a dead process.
    warnings.filterwarnings("ignore", "only soft file lock is available", UserWarning)
    from filelock import FileLock, Timeout

LOCK = ".lock"


def write_whole(path: Path, content: bytes) -> None:
    """Replace `path` by a file with this content, or leave it as it was.

    Raises:
        UserError: no space, no permission; `path` is then unchanged.
    """
    beside = path.with_name(f"{path.name}.{os.getpid()}.part")
    with system_errors_named(path):
        try:
            with beside.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
        if os.name == "posix":  # Windows can't open a folder
            # Without this a power cut may remove the new name.
            folder = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)


def append_whole(path: Path, content: bytes) -> None:
    """Append all of `content` to a file and sync it, or append nothing.

    Raises:
        UserError: no space; the file then ends where it ended before.
    """
    if not content:
        return
    with system_errors_named(path), path.open("ab", buffering=0) as file:
        end = file.tell()
        try:
            rest = memoryview(content)
            while rest:
                rest = rest[file.write(rest) :]
            os.fsync(file.fileno())
        except BaseException:  # a second Ctrl-C must not leave a torn record either
            file.truncate(end)
            raise


@contextmanager
def system_errors_named(path: Path) -> Iterator[None]:
    """Turn an error of the operating system into one line: the path and the reason."""
    try:
        yield
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from error


@contextmanager
def locked(folder: Path, wait: bool = False) -> Iterator[None]:
    """Hold the lock of a folder; the system releases it when this process ends, however it ends.

    Args:
        wait: whether to wait for another process that is in it.

    Raises:
        UserError: another process holds it, or the folder can't be written.
    """
    with system_errors_named(folder / LOCK):
        try:
            held = FileLock(folder / LOCK, blocking=wait).acquire()
        except Timeout as error:
            raise UserError(f"{folder}: another process is writing a run there") from error
    with held:
        yield

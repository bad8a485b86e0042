"""Files that are whole or the old ones, whenever the process is killed or the disk is full."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path

from lab.errors import UserError


def write_whole(path: Path, content: bytes) -> None:
    """Replace `path` by a file with this content, or leave it as it was.

    Raises:
        UserError: no space, no permission; `path` is then unchanged.
    """
    beside = path.with_name(f"{path.name}.{os.getpid()}.part")
    with named(path):
        try:
            with beside.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
        with opened(path.parent) as folder:
            os.fsync(folder)  # a power cut must not take the name back


def append_whole(path: Path, file: FileIO, content: bytes) -> None:
    """Append all of `content` to an unbuffered file and bring it to the disk, or append nothing.

    Args:
        path: of the file, for the message.
        file: open for appending, without a buffer.

    Raises:
        UserError: no space; the file then ends where it ended before.
    """
    if not content:
        return
    with named(path):
        end = os.fstat(file.fileno()).st_size
        try:
            rest = memoryview(content)
            while rest:
                rest = rest[file.write(rest) :]
            os.fsync(file.fileno())
        except BaseException:  # a second Ctrl-C too must leave no torn record
            file.truncate(end)
            file.seek(end)
            raise


@contextmanager
def named(path: Path) -> Iterator[None]:
    """Tell what the system refuses in one line: the path, and the reason."""
    try:
        yield
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from error


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other processes that ask for it out of a folder, until the end of this one at most.

    Raises:
        UserError: another process is in it.
    """
    with opened(folder) as descriptor:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UserError(f"{folder}: another process is writing a run there") from error
        except OSError:
            pass  # some network file systems lock no folders
        yield


@contextmanager
def opened(folder: Path) -> Iterator[int]:
    """The descriptor of a folder."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)

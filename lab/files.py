"""Files that are whole or the old ones, whenever the process is killed or the disk is full."""

from __future__ import annotations

import os
from collections.abc import Callable
from io import FileIO
from pathlib import Path
from typing import BinaryIO


def write_whole(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Replace `path` by what `write` puts into a file beside it, or leave it as it was.

    Args:
        path: the file to write.
        write: called once with a file open for writing bytes.

    Raises:
        OSError: no space, no permission; `path` is then unchanged.
    """
    beside = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with beside.open("wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def append_whole(file: FileIO, data: bytes) -> None:
    """Append all of `data` to an unbuffered file and bring it to the disk, or append nothing.

    Raises:
        OSError: no space; the file then ends where it ended before.
    """
    end = os.fstat(file.fileno()).st_size
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[file.write(rest) :]
        os.fsync(file.fileno())
    except BaseException:  # a second Ctrl-C too must leave no torn record
        file.truncate(end)
        raise

"""Files are whole or the old ones."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

import lab.files
from lab.errors import UserError
from lab.files import append_whole, locked, write_whole


def no_space(descriptor: int) -> None:
    raise OSError(28, "No space left on device")


def test_a_file_that_can_not_be_written_is_the_old_one(tmp_path, monkeypatch):
    file = tmp_path / "file"
    write_whole(file, b"old")
    monkeypatch.setattr(lab.files.os, "fsync", no_space)
    with pytest.raises(UserError, match=rf"^{file}: No space left on device$"):
        write_whole(file, b"new")
    assert file.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_what_can_not_be_appended_whole_is_not_there_at_all(tmp_path, monkeypatch, error):
    class HalfWritten(io.FileIO):
        """A file on a disk that has room for three more bytes."""

        def write(self, data: memoryview) -> int:
            if len(data) < 6:
                raise error
            return super().write(data[:3])

    path = tmp_path / "file"
    append_whole(path, b"whole")
    with monkeypatch.context() as full:
        full.setattr(Path, "open", lambda path, mode, buffering: HalfWritten(path, mode))
        with pytest.raises((UserError, KeyboardInterrupt)):
            append_whole(path, b"broken")
    assert path.read_bytes() == b"whole"
    append_whole(path, b", again")
    assert path.read_bytes() == b"whole, again"


def test_a_missing_folder_is_told_in_one_line(tmp_path):
    with pytest.raises(UserError, match=r"file: No such file or directory$"):
        write_whole(tmp_path / "none/file", b"")


def test_a_lock_ends_with_its_block(tmp_path):
    for _ in range(2):
        with locked(tmp_path), pytest.raises(UserError, match="another process"), locked(tmp_path):
            pass

"""Recorded runs for tests of what compares them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lab.recording.reading import RecordedRun, read_run
from tests.recorded import write_run


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., RecordedRun]:
    """Write a run under a name and read it back; `tests.recorded.write_run` has the defaults."""

    def make(name, losses=(3.0, 2.0, 1.0), **changes):
        return read_run(write_run(tmp_path / name, losses, **changes))

    return make

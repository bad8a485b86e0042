"""`python train.py ...` as it is typed, without the seconds that each `import torch` takes.

A server process imports everything once and forks for each command: real processes, real signals,
real exit codes.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import resource
import runpy
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path

import tqdm

from lab.checking.limited import warm_up

HOME = Path(__file__).parent.parent
DEADLINE_SECONDS = 60

_processes = multiprocessing.get_context("forkserver")
# One server for these commands and for the children of check.py: it imports what both need.
warm_up(["lab.course.answers", "train", "lab.comparing.picture", "tests.typed"])


def wait_for(seen: Callable[[], bool], alive: Callable[[], bool]) -> None:
    """Wait until something can be seen, while a process is alive."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not seen():
        assert alive(), "ended before it was seen"
        assert time.monotonic() < deadline, "never seen"
        time.sleep(0.002)


@dataclass
class Typed:
    """A command that is going on; what it prints is in `out` and `err`."""

    process: BaseProcess
    folder: Path

    @property
    def out(self) -> str:
        return (self.folder / "stdout.txt").read_text()

    @property
    def err(self) -> str:
        """What went to stderr, but for the lines that show how far a run is."""
        lines = (self.folder / "stderr.txt").read_text().splitlines(keepends=True)
        return "".join(line for line in lines if not line.startswith("step "))

    def wait(self) -> int:
        """The exit code; -9 where it was killed by signal 9."""
        self.process.join(DEADLINE_SECONDS)
        assert self.process.exitcode is not None, "still running"
        return self.process.exitcode

    def wait_for(self, seen: Callable[[], bool]) -> None:
        """Wait until something can be seen, while the command goes on."""
        wait_for(seen, self.process.is_alive)

    def signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):  # it has ended already
            os.kill(self.process.pid, number)


@contextlib.contextmanager
def typed(*arguments: str, cwd: Path, largest_file: int | None = None) -> Iterator[Typed]:
    """Start `python train.py *arguments` in `cwd`; it has ended when the block ends.

    Args:
        largest_file: bytes; a write beyond them fails as on a full disk.
    """
    cwd.mkdir(exist_ok=True)
    process = _processes.Process(target=_run, args=(arguments, cwd, largest_file))
    process.start()
    try:
        yield Typed(process, cwd)
    finally:
        process.kill()
        process.join()
        process.close()


def _run(arguments: tuple[str, ...], cwd: Path, largest_file: int | None) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # what is not train.py gives no traceback either
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # blocked in the server
    os.chdir(cwd)
    for name, descriptor in (("stdout.txt", 1), ("stderr.txt", 2)):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
    tqdm.tqdm.set_lock(threading.RLock())  # its own is a semaphore, which a kill leaves behind
    for name in ("stdout", "stderr"):
        getattr(sys, name).reconfigure(line_buffering=True)
    if largest_file is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
    sys.argv = ["train.py", *arguments]
    sys.path.insert(0, str(HOME))
    try:
        runpy.run_path(str(HOME / "train.py"), run_name="__main__")
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        sys.stdout.flush()
        if os.path.exists("/proc/self/fd"):
            Path("open_files.txt").write_text(str(len(os.listdir("/proc/self/fd"))))

"""Run somebody's code in a child process that is ended at a time limit, whatever the code does.

A server process imports torch and the lab once and forks for each call, in a few milliseconds.
Where there is no fork (Windows), each call starts a new Python and imports them again.

The child answers with plain data, as JSON in a file; the parent unpickles nothing that comes from
a child and needs no torch. So code that prints, hangs, crashes or calls `os._exit` ends its own
child and nothing else, and what its end means is for the parent to decide.
"""

from __future__ import annotations

import contextlib
import faulthandler
import itertools
import json
import multiprocessing
import os
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, Literal

from lab import HOME
from lab.errors import UserError, is_users_file, one_line, users_lines

# torch.autograd.grad imports the second one, a second's work, when it is first called.
PRELOADED = ["torch", "torch.fx.experimental.symbolic_shapes", "lab.checking.check"]
LARGEST_FILE_BYTES = 50_000_000  # an endless loop may print
PRINTED_CHARACTERS = 10_000

_HAS_FORK = "forkserver" in multiprocessing.get_all_start_methods()
_context: Any = multiprocessing.get_context("forkserver" if _HAS_FORK else "spawn")
# The child ends itself at the limit. The parent ends a child that does not: without fork, only
# after the time that a slow machine takes to import torch.
_GRACE_SECONDS = 2 if _HAS_FORK else 60


@dataclass(frozen=True)
class Outcome:
    """How a call in a child ended.

    Args:
        how: "returned"; "refused", the call raised `UserError`; "raised" anything else; "timed
            out"; or "died", the process ended before the call returned.
        value: what the call returned.
        text: a sentence on what happened; the message of a `UserError`.
        users_lines: the traceback, from the user's own code on where it passed there.
        printed: the end of what the call wrote to stdout and stderr.
    """

    how: Literal["returned", "refused", "raised", "timed out", "died"]
    value: Any = None
    text: str = ""
    users_lines: str = ""
    printed: str = ""


class Child:
    """One call that runs in a child process.

    Args:
        call: a function of a module, or a `functools.partial` of one, with arguments that can be
            pickled. It returns plain data: what `json` writes and reads back.
        seconds: how long it may run.
    """

    def __init__(self, call: Callable[[], Any], seconds: float):
        warm_up()
        self._seconds = seconds
        self._folder = Path(tempfile.mkdtemp(prefix="check-"))
        self._process = _context.Process(
            target=_run, args=(call, seconds, self._folder), daemon=True
        )
        self._process.start()
        self._deadline = time.monotonic() + seconds + _GRACE_SECONDS

    @property
    def seconds_left(self) -> float:
        """Until `outcome` ends the child."""
        return max(0.0, self._deadline - time.monotonic())

    @property
    def sentinel(self) -> int:
        """What `multiprocessing.connection.wait` waits for."""
        return self._process.sentinel

    def outcome(self, timeout: float | None = None) -> Outcome | None:
        """How the call ended; None if it still runs after `timeout` seconds.

        The child and what it started are gone once this has returned an outcome.
        """
        left = self.seconds_left
        ended = wait([self.sentinel], left if timeout is None else min(left, timeout))
        if not ended and self.seconds_left:
            return None
        try:
            return self._read()
        finally:
            self.end()

    def end(self) -> None:
        """End the child and what it started, if they still run."""
        if self._process is None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError, AttributeError):
            os.killpg(self._process.pid, signal.SIGKILL)  # type: ignore[attr-defined,unused-ignore]
        self._process.kill()
        self._process.join()
        self._process.close()
        self._process = None
        shutil.rmtree(self._folder, ignore_errors=True)

    def _read(self) -> Outcome:
        exit_code = self._process.exitcode  # None if it runs on after the limit
        printed = _text_of(self._folder / "printed.txt")[-PRINTED_CHARACTERS:]
        stack = _text_of(self._folder / "stack.txt")
        place = _place_in_users_code(stack)
        if exit_code is None or stack.startswith("Timeout"):
            text = f"It was still running after {self._seconds:g} s and was stopped{place}."
            return Outcome("timed out", text=text, printed=printed)
        if exit_code == 0:
            with contextlib.suppress(ValueError, TypeError):
                answer = json.loads(_text_of(self._folder / "answer.json"))
                return Outcome(**answer, printed=printed)
        what = f"with exit code {exit_code}"
        if exit_code < 0:
            with contextlib.suppress(ValueError):
                what = f"by signal {signal.Signals(-exit_code).name}"
        text = f"It ended the Python process {what}{place}."
        return Outcome("died", text=text, printed=printed)


def call_in_child(call: Callable[[], Any], seconds: float) -> Outcome:
    """Run one call in a child.

    >>> from functools import partial
    >>> call_in_child(partial(divmod, 17, 5), seconds=20).value
    [3, 2]
    >>> outcome = call_in_child(partial(os._exit, 0), seconds=20)
    >>> outcome.how, outcome.text
    ('died', 'It ended the Python process with exit code 0.')
    """
    (outcome,) = call_in_children([call], seconds)
    return outcome


def call_in_children(
    calls: Iterable[Callable[[], Any]], seconds: float, at_once: int = 1
) -> Iterator[Outcome]:
    """Run each call in a child of its own, and yield the outcomes in the order of the calls.

    Args:
        calls: as for `Child`.
        seconds: how long each may run.
        at_once: how many may run at the same time.
    """
    waiting = iter(calls)
    children: deque[Child] = deque()  # in the order of the calls, the finished among them
    finished: dict[Child, Outcome] = {}
    try:
        while True:
            free = at_once - (len(children) - len(finished))
            children += [Child(call, seconds) for call in itertools.islice(waiting, free)]
            if not children:
                return
            running = [child for child in children if child not in finished]
            wait(
                [child.sentinel for child in running], min(child.seconds_left for child in running)
            )
            for child in running:
                if outcome := child.outcome(timeout=0):
                    finished[child] = outcome
            while children and children[0] in finished:
                yield finished.pop(children.popleft())
    finally:
        for child in children:
            child.end()


def warm_up(also: Sequence[str] = ()) -> None:
    """Start the server in the background, so that the first call need not wait for its imports.

    Args:
        also: modules to import there beyond `PRELOADED`.
    """
    if not _HAS_FORK:
        return
    _context.set_forkserver_preload([*PRELOADED, *also])
    # The server finds the lab from any folder, takes nothing from the current one, and leaves
    # Ctrl-C to the parent: it inherits all three from here.
    environment = dict(os.environ)
    path = [str(HOME), *filter(None, [environment.get("PYTHONPATH")])]
    os.environ |= {"PYTHONPATH": os.pathsep.join(path), "PYTHONSAFEPATH": "1"}
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")  # PyTorch's own remarks on slow vmap
    resource_tracker.ensure_running()  # the server would start it and unblock Ctrl-C
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        from multiprocessing import forkserver

        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        os.environ.clear()
        os.environ.update(environment)


def _run(call: Callable[[], Any], seconds: float, folder: Path) -> None:
    """In the child: write the answer to a file and end, without any clean-up of the user's."""
    with (folder / "printed.txt").open("w") as printed, (folder / "stack.txt").open("w") as stack:
        if _HAS_FORK:
            import resource

            os.setsid()  # one signal then ends all that the call starts
            resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_FILE_BYTES,) * 2)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
            os.dup2(printed.fileno(), stream.fileno())
        faulthandler.enable(stack)
        faulthandler.dump_traceback_later(seconds, exit=True, file=stack)
        try:
            answer = {"how": "returned", "value": call()}
        except UserError as error:
            answer = {"how": "refused", "text": str(error)}
        except BaseException as error:
            lines = users_lines(error) or "".join(traceback.format_exception(error))
            answer = {"how": "raised", "text": one_line(error), "users_lines": lines}
        (folder / "answer.json").write_text(json.dumps(answer))
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(0)


def _text_of(file: Path) -> str:
    with contextlib.suppress(OSError):
        return file.read_text(errors="replace")
    return ""


def _place_in_users_code(stack: str) -> str:
    """Where the stack that `faulthandler` wrote was last in the user's code.

    >>> _place_in_users_code(f'  File "{HOME}/functions/myrelu.py", line 7 in backward')
    ' in backward, line 7 of myrelu.py'
    """
    for file, line, function in re.findall(r'File "(.+)", line (\d+) in (.+)', stack):
        if is_users_file(file):
            return f" in {function}, line {line} of {Path(file).name}"
    return ""

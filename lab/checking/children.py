"""Check the Functions that targets mean, each in a child process with a time limit.

Nothing here imports torch; the children do.
"""

from __future__ import annotations

import os
import pkgutil
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from lab import HOME
from lab.checking.limited import Outcome, call_in_child, call_in_children, warm_up
from lab.checking.verdict import Finding, Verdict
from lab.errors import UserError

RAISED = {
    "import": "Importing it raises",
    "check failed": "The check itself failed, no verdict on this one:",
}


def every_module() -> list[str]:
    """The modules of functions/: one Function a file, and the mistakes together in one."""
    modules = pkgutil.iter_modules([HOME / "functions"])
    return [f"functions.{module.name}" for module in modules]


def verdicts_on(targets: list[str], seconds: float, **how: Any) -> Iterator[Verdict]:
    """A verdict on each Function of each target, in order.

    Args:
        targets: see `lab.checking.targets.find_functions`.
        seconds: how long the import of a target, and the check of a Function, may take.
        how: for `check_function`.

    Raises:
        UserError: the target does not exist.
    """
    # torch.func imports it, a second's work, for the first Function that it takes.
    warm_up(["torch._dynamo"] if len(targets) > 1 else [])
    at_once = os.cpu_count() or 1
    folder = os.getcwd()
    listed = call_in_children([partial(_names, t, folder) for t in targets], seconds, at_once)
    ready: list[Verdict | str] = []  # what could not be imported; the names of all else
    calls = []
    for target, outcome in zip(targets, listed, strict=True):
        if outcome.how == "refused":
            raise UserError(outcome.text)
        if outcome.how == "returned":
            ready += outcome.value
            calls += [partial(_check, target, folder, i, how) for i in range(len(outcome.value))]
        else:
            ready.append(not_returned(target.removeprefix("functions."), outcome, "import"))
    outcomes = call_in_children(calls, seconds, at_once)
    for name in ready:
        if isinstance(name, Verdict):
            yield name
            continue
        outcome = next(outcomes)
        if outcome.how == "returned":
            verdict = Verdict.from_plain(outcome.value)
            verdict.printed = outcome.printed
            yield verdict
        else:
            yield not_returned(name, outcome, "check failed")


def plot_of(target: str, file: Path, seconds: float, **how: Any) -> str:
    """Draw the Function that a target means into a file; see `lab.checking.plot.save_plot`.

    Returns:
        Why there is nothing to draw; an empty string if it was drawn.

    Raises:
        UserError: the target means several Functions, or the file can't be written.
    """
    outcome = call_in_child(partial(_draw, target, os.getcwd(), str(file), how), seconds)
    if outcome.how == "refused":
        raise UserError(outcome.text)
    return outcome.value if outcome.how == "returned" else outcome.text


def _draw(target: str, folder: str, file: str, how: dict[str, Any]) -> str:
    """In a child: `plot_of`."""
    from lab.checking.plot import save_plot

    found = _found(target, folder)
    if len(found) > 1:
        names = ", ".join(function.__name__ for function in found)
        raise UserError(f"--plot draws one Function, and {target} holds {len(found)}: {names}")
    return save_plot(found[0], Path(file), **how)


def not_returned(name: str, outcome: Outcome, kind: str) -> Verdict:
    """The verdict where a child ended without one.

    Args:
        kind: of the finding if the child raised: "import" or "check failed".
    """
    kinds = {"timed out": "timed out", "died": "crashed"}
    text = f"{RAISED[kind]} {outcome.text}" if outcome.how == "raised" else outcome.text
    return Verdict(
        name,
        "cannot run",
        findings=[Finding(kinds.get(outcome.how, kind), text)],
        users_lines=outcome.users_lines,
        printed=outcome.printed,
    )


def _names(target: str, folder: str) -> list[str]:
    """In a child: the names of the Functions that a target means."""
    return [getattr(found, "__name__", target) for found in _found(target, folder)]


def _check(target: str, folder: str, index: int, how: dict[str, Any]) -> dict[str, Any]:
    """In a child: the verdict on one of them."""
    from lab.checking.check import check_function

    return check_function(_found(target, folder)[index], **how).to_plain()


def _found(target: str, folder: str) -> list[Any]:
    import torch

    from lab.checking.targets import find_functions

    torch.set_num_threads(1)  # the tensors are small, and there is a child on each core
    os.chdir(folder)
    sys.path.insert(1, folder)  # a Function of your own, in the folder you stand in
    return find_functions(target)

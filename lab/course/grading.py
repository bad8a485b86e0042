"""Grade answers, each in a child process with a time limit. Nothing here imports torch.

The child says what is wrong with an answer (`lab.course.answers`). This side decides: an answer is
solved only if the child also returns right numbers for inputs that this process has just drawn. So
an answer that ends its process, or makes it report success, can't pass without right gradients. One
that takes them from the solution can.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

from lab.checking.children import not_returned
from lab.checking.limited import Child, Outcome, call_in_child, call_in_children, warm_up
from lab.checking.verdict import Finding, Verdict
from lab.course.exercise import Exercise, unwritten_places
from lab.errors import UserError

SECONDS = 20  # for one answer
_SECRET = secrets.randbits(62)


def grade(exercise: Exercise, *, seconds: float = SECONDS, **how: Any) -> Verdict:
    """Check the learner's answer and compare it with the solution.

    Args:
        exercise: the code in its file is run, in a child process.
        seconds: the time limit.
        how: device, seed, eps and atol of `lab.checking.check.check_function`.

    Returns:
        A verdict that is `as_declared` when the exercise is solved. Beside the verdicts of
        `check_function`, its `verdict` may be "not started", "timed out", "crashed" or "forged".

    Raises:
        UserError: the file does not exist.
    """
    (verdict,) = grade_all([exercise], seconds=seconds, **how)
    return verdict


def grade_all(
    exercises: list[Exercise], *, seconds: float = SECONDS, **how: Any
) -> Iterator[Verdict]:
    """Grade several answers on all cores; yield the verdicts in their order."""
    for exercise in exercises:
        if not exercise.file.is_file():
            raise UserError(f"{exercise.file} does not exist; check the path")
    known = [not_started(exercise) for exercise in exercises]
    calls = [
        partial(_judge, exercise, _SECRET, how)
        for exercise, verdict in zip(exercises, known, strict=True)
        if not verdict
    ]
    if calls:
        prepare()
    outcomes = call_in_children(calls, seconds, os.cpu_count() or 1)
    for exercise, verdict in zip(exercises, known, strict=True):
        yield verdict or verdict_of(exercise, next(outcomes), **how)


def not_started(exercise: Exercise) -> Verdict | None:
    """A verdict without running anything, if the file still raises NotImplementedError."""
    places = unwritten_places(exercise.file)
    if not places:
        return None
    where = " and ".join(f"{function} (line {line})" for function, line, _ in places)
    text = f"{where} still raise{'s' * (len(places) == 1)} NotImplementedError."
    for _, line, code_follows in places:
        if code_follows:
            text += f" Python never reaches the code below line {line}: remove that line."
    return Verdict(exercise.defines, "not started", findings=[Finding("not written", text)])


def prepare() -> None:
    """Start in the background what grading needs, before there is anything to grade."""
    warm_up(["lab.course.answers"])


def start(exercise: Exercise, *, seconds: float = SECONDS, **how: Any) -> Child:
    """Start to grade an answer; `verdict_of` makes a verdict of the child's outcome."""
    return Child(partial(_judge, exercise, _SECRET, how), seconds)


def verdict_of(exercise: Exercise, outcome: Outcome, **how: Any) -> Verdict:
    """The verdict on an answer, from how its child ended."""
    if outcome.how != "returned":
        verdict = not_returned(exercise.defines, outcome, "check failed")
        if outcome.how in ("timed out", "died"):
            verdict.verdict = verdict.kinds[0]
        return verdict
    with suppress(TypeError, KeyError, ValueError, AttributeError):  # it may be no verdict at all
        record, proof = outcome.value
        verdict = Verdict.from_plain({**record, "printed": outcome.printed})
        if not verdict.as_declared or _proves(proof, exercise, how):
            return verdict
    text = "The file interferes with the check: it reports success, but its numbers are wrong."
    findings = [Finding("forged", text)]
    return Verdict(exercise.defines, "forged", findings=findings, printed=outcome.printed)


def record(exercise: Exercise, verdict: Verdict) -> dict[str, Any]:
    """A verdict for scripts, with the exercise and the file that it belongs to."""
    return {
        **verdict.to_plain(),
        "as_declared": verdict.as_declared,
        "exercise": exercise.name,
        "file": str(exercise.file),
    }


def _judge(exercise: Exercise, secret: int, how: dict[str, Any]) -> list[Any]:
    """In the child."""
    from lab.course.answers import judge

    verdict, proof = judge(exercise, secret, **how)
    return [verdict.to_plain(), proof]


def _proves(numbers: list[float], exercise: Exercise, how: dict[str, Any]) -> bool:
    """Whether they are the solution's. Loosely: the child has compared the answer strictly."""
    right = _right_numbers(exercise.solution, how.get("device", "cpu"), how.get("seed", 0))
    tolerance = 1e-2 * max(map(abs, right), default=0.0)
    return len(numbers) == len(right) and all(
        abs(a - b) <= tolerance for a, b in zip(numbers, right, strict=True)
    )


@cache
def _right_numbers(solution: Path, device: str, seed: int) -> list[float]:
    outcome = call_in_child(partial(_solve, solution, device, seed, _SECRET), seconds=60)
    if outcome.how != "returned":
        raise RuntimeError(f"{solution} can't be run: {outcome.text}")
    return outcome.value


def _solve(solution: Path, device: str, seed: int, secret: int) -> list[float]:
    """In a child that runs no answer."""
    from lab.course.answers import numbers_for_proof, task_of

    task = task_of(solution, device, seed)
    return numbers_for_proof(task.right, task, secret)

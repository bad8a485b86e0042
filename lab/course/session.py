"""What a learner sees: the overview, the report on one exercise, a hint, and the watch."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from lab.checking.check import attempt
from lab.checking.verdict import Verdict
from lab.course.exercise import Exercise, every_exercise
from lab.course.grading import grade


def report(exercise: Exercise, verdict: Verdict, width: int = 80) -> str:
    """The verdict for the learner, and what to do next."""
    paragraphs = [finding.text for finding in verdict.findings]
    command = f"python check.py exercises.{exercise.name}"
    advice = []
    if verdict.as_declared:
        of = "its surrogate" if verdict.verdict == "surrogate" else "forward"
        paragraphs += [f"Backward is the derivative of {of}.", *map(str, verdict.kinks)]
        paragraphs += verdict.notes
        following = [other for other in every_exercise() if other.number > exercise.number]
        if exercise.is_own and exercise.trains:
            advice.append(f"Train it:  python train.py function=exercise_{exercise.name}")
        if exercise.is_own and following:
            advice.append(f"Next:      {_path(following[0].file)}")
    elif verdict.verdict == "not started":
        advice.append(f"The task:  {_path(exercise.file)}")
    elif exercise.is_own:
        advice.append(f"A hint:    {command} --hint")
    lines = [f"Exercise {exercise.number}, {exercise.name}: {_state(verdict)}"]
    for text in paragraphs:
        lines += textwrap.wrap(text, width, initial_indent="  ", subsequent_indent="  ")
    if verdict.users_lines and verdict.verdict != "not started":
        lines += ["", textwrap.indent(verdict.users_lines.rstrip(), "  "), *[""] * bool(advice)]
    return "\n".join(lines + [f"  {line}" for line in advice])


def _state(verdict: Verdict) -> str:
    if verdict.as_declared:
        return "solved"
    return "not started" if verdict.verdict == "not started" else verdict.words


def print_overview(course: list[Exercise], **how: Any) -> list[Verdict]:
    """Grade all exercises; print a line each, a bar, and which one comes next."""
    verdicts = []
    for exercise in course:
        verdicts.append(attempt(grade, exercise, **how))
        print(f"{exercise.number:4}  {exercise.name:18}  {_state(verdicts[-1])}", flush=True)
    unsolved = [e for e, v in zip(course, verdicts, strict=True) if not v.as_declared]
    solved = len(course) - len(unsolved)
    print(f"\n[{'#' * solved:.<{len(course)}}] {solved} of {len(course)} solved")
    if unsolved:
        print(f"\nNext:      {_path(unsolved[0].file)}")
        print(f"Check it:  python check.py exercises.{unsolved[0].name}")
    return verdicts


def print_hint(course: list[Exercise], **how: Any) -> None:
    """The hint for the exercise, or for the first of several that is not solved."""
    for exercise in course:
        if len(course) == 1 or not attempt(grade, exercise, **how).as_declared:
            print(
                textwrap.fill(f"Exercise {exercise.number}, {exercise.name}: {exercise.hint}", 80)
            )
            return
    print("Every exercise is solved.")


def watch(
    exercises: list[Exercise], changes: Iterable[Any] | None = None, **how: Any
) -> list[Verdict]:
    """Check an exercise again at each save until it is solved, then go on to the next.

    Args:
        exercises: where to start; an exercise in exercises/ is followed by those after it.
        changes: yields whenever a file may have changed; by default, when `watchfiles` sees one.
        how: for `grade`.

    Returns:
        The last verdict of each exercise that was looked at.
    """
    first = exercises[0]
    if first in every_exercise():
        exercises = [other for other in every_exercise() if other.number >= first.number]
    wakes = iter(_saves(first.file.parent) if changes is None else changes)
    verdicts = []
    for exercise in exercises:
        for _ in _versions(exercise.file, wakes):
            verdict = attempt(grade, exercise, **how)
            print(report(exercise, verdict), flush=True)
            if verdict.as_declared:
                print(flush=True)
                break
            print(f"\n-- waiting for {_path(exercise.file)} to be saved; Ctrl-C ends\n", flush=True)
        verdicts.append(verdict)
        if not verdict.as_declared:
            break  # no more changes will come
    return verdicts


def _versions(file: Path, wakes: Iterator[Any]) -> Iterator[bytes]:
    """The content of the file: now, and whenever it has changed."""
    content = file.read_bytes()
    yield content
    for _ in wakes:
        try:
            now = file.read_bytes()
        except FileNotFoundError:  # an editor is between removing the old and writing the new
            continue
        if now != content:
            content = now
            yield content


def _saves(folder: Path) -> Iterator[Any]:
    import watchfiles  # only --watch needs it

    # It wakes at a save, and each second for a save that fell between two waits.
    return watchfiles.watch(folder, recursive=False, rust_timeout=1000, yield_on_timeout=True)


def _path(path: Path) -> str:
    return Path(os.path.relpath(path)).as_posix()

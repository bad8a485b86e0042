"""What a learner sees: the overview, the report on one exercise, a hint, and the watch."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import Any

from lab.checking.limited import Child
from lab.checking.verdict import Verdict
from lab.course.exercise import Exercise, every_exercise
from lab.course.grading import grade, grade_all, not_started, start, verdict_of
from lab.course.terminal import clear, is_terminal, painted, ticks

WIDTH = 80
PRINTED_LINES = 10


def report(exercise: Exercise, verdict: Verdict) -> str:
    """The verdict for the learner, and what to do next."""
    paragraphs = [finding.text for finding in verdict.findings]
    advice = {}
    if verdict.as_declared:
        if exercise.defines != exercise.name:
            of = "its surrogate" if verdict.verdict == "surrogate" else "forward"
            paragraphs.append(f"Backward is the derivative of {of}.")
        paragraphs += [*map(str, verdict.kinks), *verdict.notes]
        if exercise.is_own:
            following = every_exercise()[exercise.number : exercise.number + 1]
            advice = {"Compare": _path(exercise.solution)}
            advice |= {"Train it": f"python train.py {exercise.trains_as}"} if exercise.trains_as else {}
            advice |= {"Next": _path(other.file) for other in following}
    elif verdict.verdict == "not started":
        advice = {"The task": _path(exercise.file)}
    elif exercise.is_own:
        advice = {"A hint": f"python check.py exercises.{exercise.name} --hint"}
    state = painted(_state(verdict), _colour(verdict))
    lines = [f"Exercise {exercise.number}, {exercise.name}: {state}"]
    for text in paragraphs:
        lines += textwrap.wrap(text, WIDTH, initial_indent="  ", subsequent_indent="  ")
    blocks = [verdict.users_lines]
    if verdict.printed:
        blocks.append("Your code printed:\n" + _last_lines(verdict.printed))
    for block in filter(None, blocks):
        lines += ["", textwrap.indent(block.rstrip(), "  ")]
    lines += [""] if any(blocks) and advice else []
    return "\n".join(lines + [f"  {name + ':':10} {text}" for name, text in advice.items()])


def print_overview(course: list[Exercise], **how: Any) -> list[Verdict]:
    """Grade all exercises; print them by chapter, a bar, and where to begin or go on."""
    verdicts: list[Verdict] = []
    graded = zip(course, grade_all(course, at_once=os.cpu_count() or 1, **how), strict=True)
    for title, chapter in groupby(graded, key=lambda pair: pair[0].chapter):
        pairs = list(chapter)
        solved = sum(verdict.as_declared for _, verdict in pairs)
        print(painted(f"{title:60} {solved} of {len(pairs)}", "bold"))
        for exercise, verdict in pairs:
            state = painted(_state(verdict), _colour(verdict))
            print(f"{exercise.number:4}  {exercise.name:20}  {state}", flush=True)
            verdicts.append(verdict)
    unsolved = [e for e, v in zip(course, verdicts, strict=True) if not v.as_declared]
    print(f"\n{_bar(len(course) - len(unsolved), len(course))}")
    if unsolved == course:
        print("\nStart here: exercises/README.md says how it works; each file states its task.")
    if unsolved:
        print(f"\nNext:      {_path(unsolved[0].file)}")
        print(f"Check it:  python check.py exercises.{unsolved[0].name}")
    return verdicts


def print_hint(course: list[Exercise], level: int, **how: Any) -> None:
    """Hints for the exercise, or for the first of several that is not solved.

    Args:
        level: 1 for the idea; 2 for the first line of the answer, too.
    """
    for exercise in course:
        if len(course) == 1 or not grade(exercise, **how).as_declared:
            print(_hints(exercise, level))
            return
    print("Every exercise is solved.")


def watch(
    exercises: list[Exercise], events: Iterator[str] | None = None, **how: Any
) -> list[Verdict]:
    """Check an exercise again at each save until it is solved, then go on to the next.

    In a terminal it shows one exercise on a cleared screen and listens to keys; elsewhere it prints
    plain lines. A save while a check runs ends that check and starts another.

    Args:
        exercises: where to start; an exercise in exercises/ is followed by those after it.
        events: keys, or empty texts at which to look at the files; by default from the terminal.
        how: for `grade`.

    Returns:
        The last verdict of each exercise that was looked at.
    """
    first = exercises[0]
    if first in every_exercise():
        exercises = every_exercise()[first.number - 1 :]
    session = _Watch(exercises, how)
    with closing(ticks() if events is None else events) as keys:
        try:
            session.begin()
            for key in keys:
                if key == "q" or not session.step(key):
                    break
        finally:
            session.stop_check()
    return [session.verdicts[exercise] for exercise in exercises if exercise in session.verdicts]


class _Watch:
    """The state of a watch: which exercise is current, what it held, and the check that runs."""

    def __init__(self, exercises: list[Exercise], how: dict[str, Any]):
        self.exercises, self.how = exercises, how
        self.verdicts: dict[Exercise, Verdict] = {}
        self.contents = {exercise: _content(exercise) for exercise in exercises}
        self.current = exercises[0]
        self.check: Child | None = None
        self.hint_level = 0
        self.screen = is_terminal()

    @property
    def unsolved(self) -> list[Exercise]:
        return [
            exercise
            for exercise in self.exercises
            if exercise not in self.verdicts or not self.verdicts[exercise].as_declared
        ]

    def begin(self) -> None:
        """Find out what is solved already, and show the first exercise that is not."""
        written = [e for e in self.exercises if not not_started(e)]
        if written and len(self.exercises) > 1 and self.screen:
            print(f"Checking the {len(written)} exercises that you have started ...", flush=True)
        graded = grade_all(written, at_once=os.cpu_count() or 1, **self.how)
        self.verdicts = dict(zip(written, graded, strict=True))
        if not any(verdict.as_declared for verdict in self.verdicts.values()):
            self._show(WELCOME)
        self.go_to(*self.unsolved[:1])

    def step(self, key: str) -> bool:
        """React to a key, to a save, or to the end of a check; False when all is solved."""
        for exercise in self.exercises:
            content = _content(exercise)
            if content not in (self.contents[exercise], b""):  # an editor may be replacing the file
                self.contents[exercise] = content
                self.go_to(exercise)
        if self.check and (outcome := self.check.outcome(timeout=0)):
            self.check = None
            self._finish(verdict_of(self.current, outcome, **self.how))
        elif key == "h":
            self.hint_level += 1
            self._show(_hints(self.current, self.hint_level))
        elif key == "l":
            self._show(_list(self.exercises, self.verdicts))
        elif key == "n" and (unsolved := self.unsolved):
            later = [e for e in unsolved if e.number > self.current.number]
            self.go_to((later or unsolved)[0])
        return bool(self.unsolved)

    def go_to(self, *exercises: Exercise) -> None:
        """Make an exercise the current one, and check it."""
        self.stop_check()
        for self.current in exercises:
            self.hint_level = 0
            if verdict := not_started(self.current):
                self._finish(verdict)
            else:
                self.check = start(self.current, **self.how)

    def stop_check(self) -> None:
        if self.check:
            self.check.end()
            self.check = None

    def _finish(self, verdict: Verdict) -> None:
        exercise = self.current
        self.verdicts[exercise] = verdict
        ...

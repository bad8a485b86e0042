"""What a learner sees: the overview, the report on one exercise, a hint, and the watch."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Generator
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import Any

from lab.checking.limited import Child
from lab.checking.verdict import Verdict
from lab.course.exercise import Exercise, every_exercise
from lab.course.grading import grade, grade_all, not_started, prepare, start, verdict_of
from lab.course.terminal import clear, is_terminal, painted, ticks

WIDTH = 80
PRINTED_LINES = 10


def report(exercise: Exercise, verdict: Verdict, at_terminal: bool = True) -> str:
    """The verdict for the learner, and, at a terminal, what to do next."""
    paragraphs: list[str] = []
    advice: dict[str, str] = {}
    own = exercise.is_own and at_terminal
    if verdict.as_declared:
        if exercise.defines != exercise.name:
            of = "its surrogate" if verdict.verdict == "surrogate" else "forward"
            paragraphs.append(f"Backward is the derivative of {of}.")
        paragraphs += [*map(str, verdict.kinks), *verdict.notes]
        if own:
            advice["Compare"] = _path(exercise.solution)
            if exercise.trains_as:
                advice["Train it"] = f"python train.py {exercise.trains_as}"
            for following in every_exercise()[exercise.number : exercise.number + 1]:
                advice["Next"] = _path(following.file)
    elif own and verdict.verdict == "not started":
        advice = {"The task": _path(exercise.file)}
    elif own:
        advice = {"A hint": f"python check.py exercises.{exercise.name} --hint"}
    state = painted(_state(verdict), _colour(verdict)) if at_terminal else _state(verdict)
    lines = [f"Exercise {exercise.number}, {exercise.name}: {state}"]
    for finding in verdict.findings:
        lines += finding.lines(WIDTH)
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
    exercises: list[Exercise], events: Generator[str, None, None] | None = None, **how: Any
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
    prepare()
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
        self.unknown: list[Exercise] = []
        self.shown: Exercise | None = None
        self.text = ""  # the last report
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
        """Find out what is solved already; `step` then shows the first exercise that is not."""
        self.unknown = [exercise for exercise in self.exercises if not not_started(exercise)]
        if not self.unknown and len(self.exercises) > 1:
            self._show(WELCOME)
            if self.screen:  # until a key or a save
                return
        self._catch_up()

    def step(self, key: str) -> bool:
        """React to a key, to a save, or to the end of a check; False when all is solved."""
        for exercise in self.exercises:
            content = _content(exercise)
            if content not in (self.contents[exercise], b""):  # an editor may be replacing the file
                self.contents[exercise] = content
                self._go_to(exercise)
        if self.check and (outcome := self.check.outcome(timeout=0)):
            self.check = None
            verdict = verdict_of(self.current, outcome, **self.how)
            if self.shown:
                self._finish(verdict)
            else:
                self.verdicts[self.current] = verdict
                self._catch_up()
        elif key == "h":
            self.hint_level += 1
            self._show(f"{self.text}\n\n{_hints(self.current, self.hint_level)}")
        elif key == "l":
            self._show(_list(self.exercises, self.verdicts))
        elif key == "n":
            self._go_to_next()
        return bool(self.unsolved)

    def stop_check(self) -> None:
        if self.check:
            self.check.end()
            self.check = None

    def _catch_up(self) -> None:
        if not self.unknown:
            self.current = self.exercises[0]
            return self._go_to_next()
        if self.screen:
            clear()
            print(f"Checking what you have written, {len(self.unknown)} to go ...", flush=True)
        self.current = self.unknown.pop(0)
        self.check = start(self.current, **self.how)
        return None

    def _go_to_next(self) -> None:
        """To the next unsolved exercise that is not on the screen; after the last, to the first."""
        unsolved = self.unsolved
        start_at = self.current.number + (self.shown == self.current)
        later = [exercise for exercise in unsolved if exercise.number >= start_at]
        for exercise in (later or unsolved)[:1]:
            self._go_to(exercise)
        if not unsolved:
            self._show(ALL_SOLVED)

    def _go_to(self, exercise: Exercise) -> None:
        """Make an exercise the current one, and check it."""
        self.stop_check()
        self.current = self.shown = exercise
        self.hint_level = 0
        if verdict := not_started(exercise):
            self._finish(verdict)
        else:
            self.check = start(exercise, **self.how)
            if self.screen:
                print(painted(f"\nChecking {_path(exercise.file)} ...", "dim"), flush=True)

    def _finish(self, verdict: Verdict) -> None:
        """Show the verdict; after a solved exercise the next one is current."""
        self.verdicts[self.current] = verdict
        self.text = report(self.current, verdict)
        if not verdict.as_declared:
            self._show(self.text)
        elif not self.unsolved:
            self._show(f"{self.text}\n\n{ALL_SOLVED}")
        elif self.screen:
            later = [e for e in self.unsolved if e.number > self.current.number]
            self.current, self.hint_level = (later or self.unsolved)[0], 0
            self._show(f"{self.text}\n\n{painted('Exercise done.', 'green')} Press n to go on.")
        else:
            print(f"{self.text}\n", flush=True)
            self._go_to_next()

    def _show(self, text: str) -> None:
        if not self.screen:
            waits = f"\n-- waiting for {_path(self.current.file)} to be saved; Ctrl-C ends\n"
            print(text + waits * (text == self.text), flush=True)
            return
        clear()
        solved = len(self.exercises) - len(self.unsolved)
        print(f"{text}\n\n{_bar(solved, len(self.exercises))}")
        if self.unsolved:
            print(f"Current exercise: {painted(_path(self.current.file), 'bold')}")
            print(painted("h hint   n next   l list   q quit", "dim"), flush=True)


def _content(exercise: Exercise) -> bytes:
    try:
        return exercise.file.read_bytes()
    except FileNotFoundError:
        return b""


def _state(verdict: Verdict) -> str:
    if verdict.as_declared:
        return "solved"
    unique = verdict.verdict in ("wrong", "cannot run")
    return verdict.words if unique else verdict.verdict


def _colour(verdict: Verdict) -> str:
    if verdict.as_declared:
        return "green"
    return "dim" if verdict.verdict == "not started" else "red"


def _bar(solved: int, count: int) -> str:
    return f"[{painted('#' * solved, 'green')}{'.' * (count - solved)}] {solved} of {count} solved"


def _list(exercises: list[Exercise], verdicts: dict[Exercise, Verdict]) -> str:
    """The exercises by chapter, in few lines: solved ones in brackets with a plus."""
    lines = []
    for title, chapter in groupby(exercises, key=lambda exercise: exercise.chapter):
        names = []
        for exercise in chapter:
            solved = exercise in verdicts and verdicts[exercise].as_declared
            names.append(f"[{'x' if solved else chr(160)}]\xa0{exercise.name}")
        wrapped = textwrap.wrap("  ".join(names), WIDTH - 2, break_on_hyphens=False)
        lines += [painted(title, "bold"), *(f"  {line}" for line in wrapped)]
    return "\n".join(lines).replace("\xa0", " ")


def _hints(exercise: Exercise, level: int) -> str:
    idea, first_line = exercise.hints
    lines = textwrap.wrap(f"Hint for {exercise.name}: {idea}", WIDTH)
    if level > 1:
        lines += textwrap.wrap(f"First line: {first_line}", WIDTH)
    return "\n".join(lines)


def _last_lines(text: str) -> str:
    lines = text.rstrip().splitlines()
    left_out = ["..."] if len(lines) > PRINTED_LINES else []
    return "\n".join(left_out + lines[-PRINTED_LINES:])


def _path(path: Path) -> str:
    return Path(os.path.relpath(path)).as_posix()


WELCOME = """\
Welcome. Each exercise is one small file in exercises/: forward is there, and
backward is yours. Open the current exercise in your editor, read the task at its
top, put your answer in place of `raise NotImplementedError`, and save. Each save
is checked here, and a wrong answer gets a sentence about what is wrong.

n shows the current exercise, h a hint; exercises/README.md says more."""

ALL_SOLVED = """\
You have solved every exercise. Compare your answers with exercises/solutions/,
check a Function of your own with `python check.py my_file.py`, or train a
network through one: README.md shows how."""

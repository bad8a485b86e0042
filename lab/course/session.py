"""What a learner sees: the overview, the report on one exercise, a hint, and the watch."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Generator
from contextlib import closing, suppress
from itertools import groupby
from pathlib import Path
from typing import Any

from lab.checking.limited import Child
from lab.checking.verdict import Finding, Verdict
from lab.course.exercise import Exercise, every_exercise
from lab.course.grading import grade, grade_all, not_started, prepare, start, verdict_of
from lab.course.terminal import clear, is_terminal, painted, ticks

WIDTH = 80
PRINTED_LINES = 10


def report(exercise: Exercise, verdict: Verdict, has_keys: bool = False) -> str:
    """The verdict for the learner, and, on an answer in exercises/, what to do next.

    Args:
        has_keys: whether a key shows a hint, so that no command has to.
    """
    findings = list(verdict.findings)
    if verdict.as_declared:
        texts = [*map(str, verdict.kinks), *verdict.notes]
        if exercise.defines != exercise.name:
            texts.insert(0, verdict.statement)
        findings += [Finding("", text) for text in texts]
    blocks = [verdict.users_lines]
    if printed := verdict.printed.rstrip().splitlines():
        left_out = ["..."] if len(printed) > PRINTED_LINES else []
        lines = [line[: WIDTH - 2] for line in printed[-PRINTED_LINES:]]
        blocks.append("\n".join(["Your code printed:", *left_out, *lines]))
    if exercise.is_own and verdict.verdict != "missing":
        blocks.append(_advice(exercise, verdict, has_keys))
    lines = [f"Exercise {exercise.number}, {exercise.name}: {_state(verdict)}"]
    for finding in findings:
        lines += finding.lines(WIDTH)
    for block in filter(None, blocks):
        lines += ["", textwrap.indent(block.rstrip(), "  ")]
    return "\n".join(lines)


def _advice(exercise: Exercise, verdict: Verdict, has_keys: bool) -> str:
    """What to do next, a line each."""
    hint = f"python check.py exercises.{exercise.name} --hint"
    advice = {} if has_keys else {"A hint": hint}
    if verdict.as_declared:
        advice = {"Compare": _path(exercise.solution)}
        if exercise.trains_as:
            advice["Train it"] = f"python train.py {exercise.trains_as}"
        later = [each for each in every_exercise() if each.number > exercise.number]
        if later and not has_keys:
            advice["Next"] = _path(later[0].file)
    elif verdict.verdict == "not started":
        advice = {"The task": _path(exercise.file)}
    return "\n".join(f"{name + ':':10} {text}" for name, text in advice.items())


def print_overview(course: list[Exercise], **how: Any) -> list[Verdict]:
    """Grade all exercises; print them by chapter, a bar, and where to begin or go on."""
    verdicts: list[Verdict] = []
    graded = zip(course, grade_all(course, **how), strict=True)
    for title, chapter in groupby(graded, key=lambda pair: pair[0].chapter):
        pairs = list(chapter)
        solved = sum(verdict.as_declared for _, verdict in pairs)
        print(painted(f"{title:60} {solved} of {len(pairs)}", "bold"))
        for exercise, verdict in pairs:
            print(f"{exercise.number:4}  {exercise.name:20}  {_state(verdict)}", flush=True)
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
        exercises = [each for each in every_exercise() if each.number >= first.number]
    session = _Watch(exercises, how)
    with closing(ticks() if events is None else events) as keys:
        try:
            session.begin()
            for key in keys:
                if key == "q" or not session.step(key):
                    break
        finally:
            session.stop_check()
    return list(session.verdicts.values())


class _Watch:
    """The state of a watch: which exercise is current, what it held, and the check that runs."""

    def __init__(self, exercises: list[Exercise], how: dict[str, Any]):
        self.exercises, self.how, self.screen = exercises, how, is_terminal()
        self.contents = {exercise: _content(exercise) for exercise in exercises}
        self.verdicts: dict[Exercise, Verdict] = {}
        self.unknown = [exercise for exercise in exercises if not not_started(exercise)]
        self.current = exercises[0]
        self.shown = 0  # the number of the exercise that the last report was on
        self.text = self.on_screen = ""  # the last report, and what is shown, such as a hint
        self.hint_level = 0
        self.check: Child | None = None
        self.unseen: Exercise | None = None  # what it checks, if there will be no report on it

    @property
    def unsolved(self) -> list[Exercise]:
        solved = [exercise for exercise, verdict in self.verdicts.items() if verdict.as_declared]
        return [exercise for exercise in self.exercises if exercise not in solved]

    def begin(self) -> None:
        """Find out what is solved already; then show the first exercise that is not."""
        if self.unknown or len(self.exercises) == 1:
            self._catch_up()
            return
        self._show(WELCOME)
        if not self.screen:  # there it waits for a key or a save
            self._go_on()

    def step(self, key: str) -> bool:
        """React to a key, to a save, or to the end of a check; False when all is solved."""
        for exercise in self.exercises:
            content = _content(exercise)
            if content not in (self.contents[exercise], b""):  # an editor may be replacing the file
                self.contents[exercise] = content
                self._go_to(exercise)
        if self.check and (outcome := self.check.outcome(timeout=0)):
            self.check = None
            if self.unseen:
                self._finish_unseen(verdict_of(self.unseen, outcome, **self.how))
            else:
                self._finish(verdict_of(self.current, outcome, **self.how))
        elif key in ("h", "l") and self.unseen and not self.shown:
            self._go_on()  # to an exercise that the key can be about
        elif key == "h":
            self.hint_level += 1
            self._show(f"{self.text}\n\n{_hints(self.current, self.hint_level)}")
        elif key == "l":
            self._show(self._list())
        elif key == "n":
            self._go_on()
        return bool(self.unsolved)

    def stop_check(self) -> None:
        if self.check:
            self.check.end()
            self.check = None

    def _catch_up(self) -> None:
        """Check what was written earlier, one after the other and without a report; then go on."""
        if self.unknown:
            if self.screen and not self.shown:
                clear()
                print(f"Checking what you have written, {len(self.unknown)} to go ...", flush=True)
            self.unseen = self.unknown.pop(0)
            self.check = start(self.unseen, **self.how)
        elif not self.shown:
            self._go_on()

    def _finish_unseen(self, verdict: Verdict) -> None:
        assert self.unseen is not None
        self.verdicts[self.unseen] = verdict
        if self.shown and self.current == self.unseen and verdict.as_declared and self.unsolved:
            self.current = self._next()
        self.unseen = None
        if self.shown and self.screen:  # the bar may have grown
            self._show(self.on_screen if self.unsolved else ALL_SOLVED)
        self._catch_up()

    def _next(self) -> Exercise:
        """The next unsolved exercise after the one shown; after the last, the first."""
        later = [exercise for exercise in self.unsolved if exercise.number > self.shown]
        return (later or self.unsolved)[0]

    def _go_on(self) -> None:
        if self.unsolved:
            self._go_to(self._next())
        else:
            self._show(ALL_SOLVED)

    def _go_to(self, exercise: Exercise) -> None:
        """Make an exercise the current one, and check it."""
        if self.unseen:
            self.unknown.insert(0, self.unseen)
        self.unknown = [each for each in self.unknown if each != exercise]
        self.unseen = None
        self.stop_check()
        self.current, self.shown, self.hint_level = exercise, exercise.number, 0
        if verdict := not_started(exercise):
            self._finish(verdict)
            return
        self.check = start(exercise, **self.how)
        if self.screen:
            print(painted(f"\nChecking {_path(exercise.file)} ...", "dim"), flush=True)

    def _finish(self, verdict: Verdict) -> None:
        """Show the verdict; after a solved exercise the next one is current."""
        self.verdicts[self.current] = verdict
        self.text = report(self.current, verdict, has_keys=self.screen)
        if not verdict.as_declared:
            waits = f"\n-- waiting for {_path(self.current.file)} to be saved; Ctrl-C ends\n"
            self._show(self.text if self.screen else self.text + waits)
        elif not self.unsolved:
            self._show(f"{self.text}\n\n{ALL_SOLVED}")
        elif self.screen:
            self.current, self.hint_level = self._next(), 0
            self._show(f"{self.text}\n\n{painted('Exercise done.', 'green')} Press n to go on.")
        else:
            self._show(f"{self.text}\n")
            self._go_on()
        if not self.check:
            self._catch_up()

    def _show(self, text: str) -> None:
        self.on_screen = text
        if self.screen:
            clear()
            solved = len(self.exercises) - len(self.unsolved)
            text += f"\n\n{_bar(solved, len(self.exercises))}"
            if self.unsolved:
                text += f"\nCurrent exercise: {painted(_path(self.current.file), 'bold')}\n"
                text += painted("h hint   n next   l list   q quit", "dim")
        print(text, flush=True)

    def _list(self) -> str:
        """The exercises by chapter, a line each; the solved ones are ticked."""
        lines = []
        for title, chapter in groupby(self.exercises, key=lambda exercise: exercise.chapter):
            names = [f"[{' ' if e in self.unsolved else 'x'}] {e.name}" for e in chapter]
            lines += [painted(title, "bold"), f"  {' '.join(names)}"]
        return "\n".join(lines)


def _content(exercise: Exercise) -> bytes:
    with suppress(FileNotFoundError):
        return exercise.file.read_bytes()
    return b""


def _state(verdict: Verdict) -> str:
    """The mark, with what is wrong, in its colour."""
    if verdict.as_declared:
        return painted("solved", "green")
    if verdict.verdict == "not started":
        return painted("not started", "dim")
    unique = verdict.verdict in ("wrong", "cannot run")
    return painted(verdict.words if unique else verdict.verdict, "red")


def _bar(solved: int, count: int) -> str:
    return f"[{painted('#' * solved, 'green')}{'.' * (count - solved)}] {solved} of {count} solved"


def _hints(exercise: Exercise, level: int) -> str:
    idea, first_line = exercise.hints
    texts = [f"Hint for {exercise.name}: {idea}", f"First line: {first_line}"]
    return "\n".join(textwrap.fill(text, WIDTH) for text in texts[:level])


def _path(path: Path) -> str:
    return Path(os.path.relpath(path)).as_posix()


WELCOME = """\
Welcome. Each exercise is one small file in exercises/: forward is there, and
backward is yours. Open the current exercise in your editor, read the task at
its top, put your answer in place of `raise NotImplementedError`, and save.
Each save is checked here; a wrong answer gets a sentence about what is wrong.

n shows the next unsolved exercise, h a hint; exercises/README.md says more."""

ALL_SOLVED = """\
You have solved every exercise. Compare your answers with exercises/solutions/,
check a Function of your own with `python check.py my_file.py`, or train a
network through one: README.md shows how."""

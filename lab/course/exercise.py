"""Which exercises there are, and which one a target of check.py or a file means.

The learner's file holds the task, forward, and an empty backward. The solution, a file of the same
name in exercises/solutions/, holds all that grading needs. Nothing here imports torch or runs
either of them.
"""

from __future__ import annotations

import ast
import difflib
import re
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from exercises import CHAPTERS
from lab import HOME
from lab.errors import UserError

FOLDER = HOME / "exercises"


@dataclass(frozen=True)
class Exercise:
    """One exercise.

    Args:
        stem: the name of its file without the ending: `e04_relu`.
        file: the answer, which may lie anywhere.
        solution: the file with the right answer.

    >>> exercise = find_exercises("exercises.square")[0]
    >>> exercise.name, exercise.defines, exercise.chapter
    ('square', 'Square', 'The chain rule, one element at a time')
    """

    stem: str
    file: Path
    solution: Path

    @property
    def number(self) -> int:
        return int(self.stem[1:3])

    @property
    def name(self) -> str:
        return self.stem[4:]

    @cached_property
    def hints(self) -> tuple[str, str]:
        """The idea, and the first line of the answer."""
        for statement in ast.parse(self.solution.read_text()).body:
            if "HINTS" in map(ast.unparse, getattr(statement, "targets", [])):
                return ast.literal_eval(statement.value)  # type: ignore[attr-defined]
        raise ValueError(f"{self.solution} defines no HINTS")

    @cached_property
    def defines(self) -> str:
        """The name of the Function, or of the plain function, that an answer defines."""
        defined = _defined_in(self.solution)
        return self.name if self.name in defined else defined[0]

    @property
    def chapter(self) -> str:
        """The title of its chapter."""
        title, starts = "", {name: title for title, name in CHAPTERS.items()}
        for exercise in every_exercise()[: self.number]:
            title = starts.get(exercise.name, title)
        return title

    @property
    def trains_as(self) -> str:
        """The choice of `python train.py` that uses the answer; empty if there is none."""
        for group in ("function", "model"):
            if (HOME / f"conf/{group}/exercise_{self.name}.yaml").exists():
                return f"{group}=exercise_{self.name}"
        return ""

    @property
    def is_own(self) -> bool:
        """Whether the answer is the learner's own file in exercises/."""
        return self.file.parent.resolve() == FOLDER.resolve()


def every_exercise() -> list[Exercise]:
    """All exercises, in their order."""
    return [
        Exercise(file.stem, file, FOLDER / "solutions" / file.name)
        for file in sorted(FOLDER.glob("e[0-9][0-9]_*.py"))
    ]


def find_exercises(target: str) -> list[Exercise]:
    """The exercises that a target of check.py means; an empty list if it means something else.

    Args:
        target: `exercises`; `exercises.relu`, `exercises.e04_relu` or `exercises.4`; or the path of
            an answer in any folder, which is recognised as `exercise_of` says.

    Raises:
        UserError: there is no such exercise; the message lists the choices.

    >>> [exercise.name for exercise in find_exercises("exercises.relu")]
    ['relu']
    >>> find_exercises("MyReLU")
    []
    """
    course = every_exercise()
    if target.rstrip("/") == "exercises":
        return course
    if target.endswith(".py"):
        exercise = exercise_of(Path(target))
        return [exercise] if exercise else []
    group, _, name = target.partition(".")
    if group != "exercises" or name.startswith("solutions"):
        return []
    name = name.partition(".")[0]
    found = [e for e in course if name in (e.name, e.stem, str(e.number), f"{e.number:02}")]
    return found or [_refuse(target, name)]


def exercise_of(file: Path) -> Exercise | None:
    """The exercise that a file answers, by its name; None if it is no answer to an exercise.

    `alice_e04_relu.py`, `e4-relu.py` and `e04_relu (1).py` answer relu, whatever the number. So
    does `relu.py` if it defines what relu asks for: it may be a Function of somebody's own.

    Raises:
        UserError: the name has the form of an answer, but there is no such exercise.
    """
    _, number, name = parts_of_name(file)
    for exercise in every_exercise():
        if exercise.name == name or (not number and f"_{name}".endswith(f"_{exercise.name}")):
            answer = replace(exercise, file=file)
            if number or exercise.defines in _defined_in(file):
                return answer
    return _refuse(str(file), name) if number else None


def submitted_exercise(file: Path) -> Exercise:
    """The exercise that a submission answers, by its name or else by what it defines.

    Raises:
        UserError: neither says which exercise it is, or they contradict each other.
    """
    defined = _defined_in(file)
    inside = [exercise for exercise in every_exercise() if exercise.defines in defined]
    try:
        named = exercise_of(file)
    except UserError:
        named = None
    if named and (named.defines in defined or not inside):
        return named
    if named:
        what = f"{inside[0].defines}, which answers {inside[0].name}"
        raise UserError(f"{file} is named after {named.name} but defines {what}")
    if len(inside) != 1:
        raise UserError(f"{file}: neither the name nor the code says which exercise it answers")
    return replace(inside[0], file=file)


def parts_of_name(file: Path) -> tuple[str, str, str]:
    """Student, number and name of the exercise; student and number may be empty.

    >>> parts_of_name(Path("Alice B_e4-row sum (1).py"))
    ('Alice B', '4', 'row_sum')
    >>> parts_of_name(Path("row_sum.py"))
    ('', '', 'row_sum')
    """
    stem = re.sub(r"([\s_-]*\(\d+\)|[\s_-]+copy)+$", "", file.stem, flags=re.IGNORECASE)
    parts = re.fullmatch(r"(?:(.*)[\s_-])?e(\d+)[\s_-]+(.+)", stem, flags=re.IGNORECASE)
    student, number, name = parts.groups(default="") if parts else ("", "", stem)
    return student, number, re.sub(r"[\s-]+", "_", name).lower()


def unwritten_places(file: Path) -> list[tuple[str, int, bool]]:
    """Where `raise NotImplementedError` remains: function, line, and whether code follows it."""
    try:
        functions = [
            n for n in ast.walk(ast.parse(file.read_bytes())) if isinstance(n, ast.FunctionDef)
        ]
    except (SyntaxError, ValueError):
        return []
    return [
        (function.name, statement.lineno, statement is not function.body[-1])
        for function in functions
        for statement in function.body
        if isinstance(statement, ast.Raise)
        and statement.exc is not None
        and ast.unparse(statement.exc) in ("NotImplementedError", "NotImplementedError()")
    ]


def _defined_in(file: Path) -> list[str]:
    """The classes and functions that a file defines; an empty list if it can't be parsed."""
    try:
        statements = ast.parse(file.read_bytes()).body
    except (OSError, SyntaxError, ValueError):
        return []
    return [s.name for s in statements if isinstance(s, ast.ClassDef | ast.FunctionDef)]


def _refuse(target: str, name: str) -> Exercise:
    names = [exercise.name for exercise in every_exercise()]
    close = difflib.get_close_matches(name, names, n=1)
    advice = f"Did you mean {close[0]}?" if close else f"Choices: {', '.join(names)}"
    raise UserError(f"{target}: no such exercise. {advice}")

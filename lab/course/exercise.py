"""Which exercises there are, and which one a target of check.py or a file means.

The learner's file holds the task, forward, and an empty backward. The solution, a file of the same
name in exercises/solutions/, holds all that grading needs. Nothing here imports torch or runs
either of them.
"""

from __future__ import annotations

import ast
import difflib
import re
from contextlib import suppress
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
        number: its place in the course.
        chapter: the title of its chapter.
        file: the answer, which may lie anywhere.
        solution: the file with the right answer, named after the exercise.

    >>> exercise = find_exercises("exercises.square")[0]
    >>> exercise.name, exercise.defines, exercise.chapter
    ('square', 'Square', 'The chain rule, one element at a time')
    """

    number: int
    name: str
    chapter: str
    file: Path
    solution: Path

    @property
    def stem(self) -> str:
        """The name of its file without the ending: `e04_relu`."""
        return self.solution.stem

    @cached_property
    def hints(self) -> tuple[str, str]:
        """The idea, and the first line of the answer."""
        statements = _parsed(self.solution).body
        assignments = [s for s in statements if isinstance(s, ast.Assign)]
        values = {ast.unparse(s.targets[0]): s.value for s in assignments}
        return ast.literal_eval(values["HINTS"])

    @cached_property
    def defines(self) -> str:
        """The name of the Function, or of the plain function, that an answer defines."""
        defined = _defined_in(self.solution)
        return self.name if self.name in defined else next(iter(defined))

    @property
    def trains_as(self) -> str:
        """The choice of `python train.py` that uses the answer, or an empty text."""
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
    starts = {name: title for title, name in CHAPTERS.items()}
    course: list[Exercise] = []
    chapter = ""
    for file in sorted(FOLDER.glob("e[0-9][0-9]_*.py")):
        number, name = int(file.stem[1:3]), file.stem[4:]
        chapter = starts.get(name, chapter)
        course.append(Exercise(number, name, chapter, file, FOLDER / "solutions" / file.name))
    return course


def find_exercises(target: str) -> list[Exercise]:
    """The exercises that a target of check.py means; an empty list if it means something else.

    Args:
        target: `exercises`; `exercises.relu`, `exercises.e04_relu` or `exercises.4`; or the path of
            an answer in any folder, which is recognised as `exercise_of` says.

    Raises:
        UserError: the exercise does not exist; the message lists the choices.

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
    package, name, *_ = [*target.split("."), ""]
    if package != "exercises" or name == "solutions":
        return []
    found = [e for e in course if name in (e.name, e.stem, str(e.number), f"{e.number:02}")]
    if not found:
        raise _no_such_exercise(target, name)
    return found


def exercise_of(file: Path) -> Exercise | None:
    """The exercise that a file answers, by its name; None if it does not answer an exercise.

    `alice_e04_relu.py`, `e4-relu.py` and `e04_relu (1).py` answer relu, whatever the number. So
    does `relu.py` if it defines what relu asks for, with as many parameters: it may be a Function
    of somebody's own.

    Raises:
        UserError: the name has the form of an answer, but the exercise does not exist.
    """
    _, number, name = parts_of_name(file)
    for exercise in every_exercise():
        if number:
            fits = exercise.name == name
        else:
            fits = f"_{name}".endswith(f"_{exercise.name}") and _has_same_form(file, exercise)
        if fits:
            return replace(exercise, file=file)
    if number:
        raise _no_such_exercise(str(file), name)
    return None


def submitted_exercise(file: Path) -> Exercise:
    """The exercise that a submission answers, by its name or else by what it defines.

    Raises:
        UserError: neither says which exercise it is, or they contradict each other.
    """
    defined = _defined_in(file)
    inside = [exercise for exercise in every_exercise() if exercise.defines in defined]
    named = None
    with suppress(UserError):
        named = exercise_of(file)
    if named and inside and named.defines not in defined:
        what = f"{inside[0].defines}, which answers {inside[0].name}"
        raise UserError(f"{file} is named after {named.name} but defines {what}")
    if not named and len(inside) != 1:
        raise UserError(f"{file}: neither the name nor the code says which exercise it answers")
    return named or replace(inside[0], file=file)


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
    return [
        (function.name, statement.lineno, statement is not function.body[-1])
        for function in ast.walk(_parsed(file))
        if isinstance(function, ast.FunctionDef)
        for statement in function.body
        if ast.unparse(statement) in ("raise NotImplementedError", "raise NotImplementedError()")
    ]


def _has_same_form(file: Path, exercise: Exercise) -> bool:
    """Whether a file defines what the exercise asks for, with as many parameters."""
    name = exercise.defines
    return _defined_in(file).get(name) == _defined_in(exercise.solution)[name]


def _defined_in(file: Path) -> dict[str, int]:
    """The classes and functions that a file defines, with how many parameters each takes."""
    statements = _parsed(file).body
    defined = {s.name: s for s in statements if isinstance(s, ast.ClassDef | ast.FunctionDef)}
    return {name: _parameters(statement) for name, statement in defined.items()}


def _parameters(defined: ast.ClassDef | ast.FunctionDef) -> int:
    """Of a function, or of the forward of a class; 0 if it has none."""
    if isinstance(defined, ast.FunctionDef):
        return len(defined.args.args)
    inside = (s for s in defined.body if isinstance(s, ast.FunctionDef) and s.name == "forward")
    return sum(map(_parameters, inside))


def _parsed(file: Path) -> ast.Module:
    """The syntax tree of a file; an empty one if it can't be read or parsed."""
    with suppress(OSError, SyntaxError, ValueError):
        return ast.parse(file.read_bytes())
    return ast.Module([], [])


def _no_such_exercise(target: str, name: str) -> UserError:
    names = [exercise.name for exercise in every_exercise()]
    close = difflib.get_close_matches(name, names, n=1)
    advice = f"Did you mean {close[0]}?" if close else f"Choices: {', '.join(names)}"
    return UserError(f"{target} is not an exercise. {advice}")

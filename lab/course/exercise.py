"""Which exercises there are, and which one a target of check.py means. Nothing here needs torch.

The learner's file holds the task, forward, and an empty backward. The solution, a file of the same
name in exercises/solutions/, holds all that grading needs.
"""

from __future__ import annotations

import ast
import difflib
from dataclasses import dataclass, replace
from pathlib import Path

from lab import HOME
from lab.errors import UserError

FOLDER = HOME / "exercises"


@dataclass(frozen=True)
class Exercise:
    """One exercise.

    Args:
        stem: the name of its file without the ending: `e03_relu`.
        file: the answer, which may lie anywhere.
        solution: the file with the right answer.

    >>> exercise = Exercise("e03_relu", FOLDER / "e03_relu.py", FOLDER / "solutions/e03_relu.py")
    >>> exercise.number, exercise.name
    (3, 'relu')
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

    @property
    def hint(self) -> str:
        for statement in ast.parse(self.solution.read_text()).body:
            if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "HINT":
                return ast.literal_eval(statement.value)
        raise ValueError(f"{self.solution} defines no HINT")

    @property
    def trains(self) -> bool:
        """Whether it is a choice of `python train.py`."""
        return (HOME / f"conf/function/exercise_{self.name}.yaml").exists()

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
        target: `exercises`, `exercises.relu`, `exercises.e03_relu`, or the path of a file whose
            name ends in `e03_relu.py`, in any folder.

    Raises:
        UserError: there is no such exercise; the message lists the choices.

    >>> [exercise.stem for exercise in find_exercises("exercises.relu")]
    ['e03_relu']
    >>> find_exercises("MyReLU")
    []
    """
    course = every_exercise()
    if target.rstrip("/") == "exercises":
        return course
    if target.endswith(".py"):
        path = Path(target)
        return [replace(e, file=path) for e in course if path.stem.endswith(e.stem)]
    group, _, name = target.partition(".")
    if group != "exercises" or name.startswith("solutions"):
        return []
    name = name.partition(".")[0]
    found = [exercise for exercise in course if name in (exercise.name, exercise.stem)]
    if not found:
        names = [exercise.name for exercise in course]
        close = difflib.get_close_matches(name, names, n=1)
        advice = f"Did you mean {close[0]}?" if close else f"Choices: {', '.join(names)}"
        raise UserError(f"{target}: no such exercise. {advice}")
    return found

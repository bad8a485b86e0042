"""Whether the course accepts every right answer: solutions and others, on many random inputs.

    python benchmarks/exercises.py             # eight seeds, some minutes
    python benchmarks/exercises.py --seeds 2   # as in the tests

Each answer is graded as `python check.py exercises.NAME --seed SEED` would grade it. Exit code 1 if
a right answer is refused.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

HOME = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(HOME), str(HOME / "tests")]

from answers import RIGHT, typed  # noqa: E402

from lab.course.exercise import Exercise, every_exercise  # noqa: E402
from lab.course.grading import grade_all  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=8, help="random inputs (default 8)")
    seeds = parser.parse_args().seeds
    refused = 0
    with tempfile.TemporaryDirectory() as folder:
        answers = right_answers(Path(folder))
        for seed in range(seeds):
            verdicts = grade_all(answers, seed=seed)
            wrong = [
                pair for pair in zip(answers, verdicts, strict=True) if not pair[1].as_declared
            ]
            refused += len(wrong)
            print(
                f"seed {seed}: {len(answers) - len(wrong)} of {len(answers)} accepted", flush=True
            )
            for answer, verdict in wrong:
                print(f"  {answer.name}, {answer.file.parent.name}: {verdict.words}")
    return 1 if refused else 0


def right_answers(folder: Path) -> list[Exercise]:
    """The solution of each exercise, and each other right answer typed into a folder of its own."""
    course = {exercise.name: exercise for exercise in every_exercise()}
    answers = [replace(exercise, file=exercise.solution) for exercise in course.values()]
    for i, (name, bodies) in enumerate(RIGHT):
        own = folder / f"answer_{i}"
        own.mkdir()
        answers.append(replace(course[name], file=typed(name, bodies, own)))
    return answers


if __name__ == "__main__":
    sys.exit(main())

"""A class: grade every answer in a folder, one row a student and one column an exercise."""

from __future__ import annotations

import csv
import os
import textwrap
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tqdm import tqdm

from lab.checking.verdict import Finding, Verdict
from lab.course.exercise import Exercise, every_exercise, parts_of_name, submitted_exercise
from lab.course.grading import grade_all, record
from lab.course.session import report
from lab.errors import UserError

# What a cell of the table shows. If a student hands in several files, the first of these counts.
SIGNS = {
    "solved": "+",
    "wrong": "x",
    "not started": ".",
    "cannot run": "E",
    "timed out": "T",
    "crashed": "C",
    "forged": "F",
    "unrecognised": "?",
    "missing": "-",
}
COLUMNS = 18  # exercises side by side on a screen of 80 characters
MISTAKES = 12  # named below the table


@dataclass(frozen=True)
class Submission:
    """What a student handed in for one exercise, or did not.

    Args:
        student: the name of the folder, or what the name of the file starts with.
        exercise: None if the file is not recognised.
        file: None if it is missing.
        verdict: its `verdict` may also be "missing" or "unrecognised".
    """

    student: str
    exercise: Exercise | None
    file: Path | None
    verdict: Verdict

    @property
    def mark(self) -> str:
        return "solved" if self.verdict.as_declared else self.verdict.verdict

    @property
    def name(self) -> str:
        """Of the exercise."""
        return self.exercise.name if self.exercise else ""

    def to_plain(self) -> dict[str, Any]:
        """For JSON: the student, the mark, the exercise, the file, and the verdict."""
        plain = record(self.exercise, self.verdict) if self.exercise else self.verdict.to_plain()
        where = {"student": self.student, "mark": self.mark, "exercise": self.name or None}
        return {**plain, **where, "file": str(self.file) if self.file else None}


def grade_class(folder: Path, **how: Any) -> list[Submission]:
    """Grade every answer in a folder, on all cores.

    Args:
        folder: holds one folder a student, or files named STUDENT_e04_relu.py.
        how: for `lab.course.grading.grade`.

    Returns:
        One submission for each file, and for each student and each exercise that somebody handed in
        at least one, which may be missing; sorted by student.

    Raises:
        UserError: no file in the folder answers an exercise.
    """
    files = [file for file in sorted(folder.rglob("*.py")) if "__pycache__" not in file.parts]
    found = [_submission(folder, file) for file in files]
    exercises = [submission.exercise for submission in found if submission.exercise]
    if not exercises:
        raise UserError(f"{folder}: no file in this folder answers an exercise")
    verdicts = iter(
        tqdm(
            grade_all(exercises, at_once=os.cpu_count() or 1, **how),
            total=len(exercises),
            leave=False,
            disable=None,  # where nobody watches
        )
    )
    graded = [replace(s, verdict=next(verdicts)) if s.exercise else s for s in found]
    handed_in = {(submission.student, submission.name) for submission in graded}
    students = {path.name for path in folder.iterdir() if path.is_dir()}
    for student in students | {submission.student for submission in graded}:
        for exercise in every_exercise():
            assigned = exercise.name in {name for _, name in handed_in}
            if assigned and (student, exercise.name) not in handed_in:
                missing = Verdict(exercise.defines, "missing")
                graded.append(Submission(student, exercise, None, missing))
    return sorted(graded, key=lambda s: (s.student, s.exercise.number if s.exercise else 0))


def _submission(folder: Path, file: Path) -> Submission:
    inside = file.relative_to(folder).parts
    student = inside[0] if len(inside) > 1 else parts_of_name(file)[0]
    try:
        exercise = submitted_exercise(file)
    except UserError as error:
        finding = Finding("unrecognised", str(error))
        return Submission(
            student, None, file, Verdict(file.name, "unrecognised", findings=[finding])
        )
    return Submission(student, exercise, file, Verdict(exercise.defines))


def marks_of(submissions: list[Submission]) -> dict[str, dict[str, str]]:
    """The mark for each student and exercise; of several files, the best."""
    order = list(SIGNS)
    marks: dict[str, dict[str, str]] = {}
    for submission in submissions:
        row = marks.setdefault(submission.student, {})
        if submission.name:
            other = row.get(submission.name, "missing")
            row[submission.name] = min(other, submission.mark, key=order.index)
    return marks


def class_report(submissions: list[Submission]) -> str:
    """The table, which sign means what, and what the class got wrong."""
    marks = marks_of(submissions)
    exercises = [e for e in every_exercise() if e.name in {s.name for s in submissions}]
    width = max(len("student"), *map(len, marks))
    lines = []
    for start in range(0, len(exercises), COLUMNS):
        some = exercises[start : start + COLUMNS]
        lines.append(f"{'student':{width}}" + "".join(f"{e.number:4}" for e in some))
        for student, row in marks.items():
            lines.append(f"{student:{width}}" + "".join(f"{SIGNS[row[e.name]]:>4}" for e in some))
        solved = [sum(row[e.name] == "solved" for row in marks.values()) for e in some]
        lines += [f"{'solved':{width}}" + "".join(f"{count:4}" for count in solved), ""]
    lines += [f"{e.number:4}  {e.name}" for e in exercises]
    used = {submission.mark for submission in submissions}
    legend = "  ".join(f"{sign} {mark}" for mark, sign in SIGNS.items() if mark in used)
    lines += ["", *textwrap.wrap(legend, 80)]
    if wrong := _mistakes(submissions):
        lines += ["", "What the class got wrong:"]
    for (kind, name), count in wrong.most_common(MISTAKES):
        lines.append(f"  {count} of {len(marks)}: {kind} ({name})")
    if unrecognised := [s for s in submissions if not s.exercise]:
        lines += ["", "Files that could not be recognised:"]
        lines += [f"  {s.verdict.findings[0].text}" for s in unrecognised]
    return "\n".join(lines)


def _mistakes(submissions: list[Submission]) -> Counter[tuple[str, str]]:
    """How many students made which mistake in which exercise."""
    made = {
        (s.student, s.verdict.kinds[0] if s.mark == "wrong" else s.mark, s.name)
        for s in submissions
        if s.name and s.mark not in ("solved", "not started", "missing")
    }
    return Counter((kind, name) for _, kind, name in sorted(made))


def write_csv(submissions: list[Submission], file: Path) -> None:
    """One row a student: the mark for each exercise, and how many are solved."""
    marks = marks_of(submissions)
    names = [e.name for e in every_exercise() if e.name in {s.name for s in submissions}]
    with file.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["student", *names, "solved"])
        for student, row in marks.items():
            solved = sum(mark == "solved" for mark in row.values())
            writer.writerow([student, *(row[name] for name in names), solved])


def write_feedback(submissions: list[Submission], folder: Path) -> None:
    """One text file a student: the report on each file, and which exercises are missing."""
    folder.mkdir(parents=True, exist_ok=True)
    for student, row in marks_of(submissions).items():
        solved = sum(mark == "solved" for mark in row.values())
        texts = [f"{student}: {solved} of {len(row)} solved"]
        for submission in submissions:
            if submission.student == student:
                heading = [f"{submission.file.name}"] if submission.file else []
                verdict = submission.verdict
                if submission.exercise:
                    heading.append(report(submission.exercise, verdict, at_terminal=False))
                else:
                    heading.append(f"  {verdict.findings[0].text}")
                texts.append("\n".join(heading))
        (folder / f"{student}.txt").write_text("\n\n".join(texts) + "\n", encoding="utf-8")

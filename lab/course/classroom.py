"""A class: grade every answer in a folder, one row a student and one column an exercise."""

from __future__ import annotations

import csv
import re
import textwrap
from collections import Counter
from dataclasses import dataclass, replace
from itertools import groupby, product
from pathlib import Path
from typing import Any

from tqdm import tqdm

from lab.checking.verdict import Finding, Verdict
from lab.course.exercise import Exercise, every_exercise, parts_of_name, submitted_exercise
from lab.course.grading import grade_all
from lab.course.session import report
from lab.errors import UserError
from lab.jsonable import printable

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
COLUMNS = 15  # exercises side by side on a screen of 80 characters
MISTAKES = 12  # named below the table


@dataclass(frozen=True)
class Submission:
    """What a student handed in for one exercise, or did not.

    Args:
        student: the name of the folder, or what the name of the file starts with; may be empty
            where the file is not recognised.
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
        return {
            **self.verdict.to_plain(),
            "as_declared": self.verdict.as_declared,
            "student": self.student or None,
            "mark": self.mark,
            "exercise": self.name or None,
            "file": str(self.file) if self.file else None,
        }


def grade_class(folder: Path, **how: Any) -> list[Submission]:
    """Grade every answer in a folder, on all cores.

    Args:
        folder: holds one folder a student, or files named STUDENT_e04_relu.py. It may also be the
            folder of a single student.
        how: for `lab.course.grading.grade`.

    Returns:
        One submission for each file that is, or is named like, an answer; and one for each student
        and each exercise that somebody handed in and this student did not. Sorted by student.

    Raises:
        UserError: no file in the folder answers an exercise.
    """
    files = [path for path in sorted(folder.rglob("*")) if _counts(path, folder)]
    # Where others are named, a file without a name is not that of the folder.
    is_class = any(parts_of_name(file)[0] or file.parent != folder for file in files)
    found = [_submission(folder, file, is_class) for file in files]
    answers = [submission.exercise for submission in found if submission.exercise]
    if not answers:
        raise UserError(
            f"{folder} holds no answer to an exercise; name files as in STUDENT_e04_relu.py"
        )
    # disable=None: no bar where nobody watches
    bar = tqdm(grade_all(answers, **how), total=len(answers), leave=False, disable=None)
    verdicts = iter(bar)
    graded = [replace(s, verdict=next(verdicts)) if s.exercise else s for s in found]
    handed_in = {(submission.student, submission.name) for submission in graded}
    students = {printable(p.name) for p in folder.iterdir() if p.is_dir() and not _hidden(p.name)}
    students |= {submission.student for submission in graded if submission.student}
    graded += [
        Submission(student, exercise, None, Verdict(exercise.defines, "missing"))
        for student, exercise in product(students, _handed_in(graded))
        if (student, exercise.name) not in handed_in
    ]
    return sorted(graded, key=lambda s: (s.student, s.exercise.number if s.exercise else 0))


def _hidden(name: str) -> bool:
    """Whether a file or a folder is one that a program left behind, such as __MACOSX or .git."""
    return name.startswith((".", "__"))


def _counts(path: Path, folder: Path) -> bool:
    """Whether a path in the folder may be an answer: a .py file, or named like one."""
    is_named = path.suffix == ".py" or parts_of_name(path)[1] != ""
    return is_named and not path.is_dir() and not any(map(_hidden, path.relative_to(folder).parts))


def _submission(folder: Path, file: Path, is_class: bool) -> Submission:
    inside = file.relative_to(folder).parts
    student, _, name = parts_of_name(file)
    student = printable(inside[0] if len(inside) > 1 else student)
    try:
        if file.suffix != ".py" or not file.is_file():
            raise UserError(f"{file} is not a .py file that can be read")
        exercise = submitted_exercise(file)
        if not student and (name != exercise.name or is_class):
            raise UserError(f"{file}: whose answer is it? Name it STUDENT_{exercise.stem}.py")
    except UserError as error:
        findings = [Finding("unrecognised", str(error))]
        return Submission(
            student, None, file, Verdict(file.name, "unrecognised", findings=findings)
        )
    student = student or printable(folder.resolve().name)
    return Submission(student, exercise, file, Verdict(exercise.defines))


def _handed_in(submissions: list[Submission]) -> list[Exercise]:
    """The exercises that anybody handed in."""
    names = {submission.name for submission in submissions}
    return [exercise for exercise in every_exercise() if exercise.name in names]


def marks_of(submissions: list[Submission]) -> dict[str, dict[str, str]]:
    """The mark for each student and exercise; of several files, the best."""
    order = list(SIGNS)
    marks: dict[str, dict[str, str]] = {s.student: {} for s in submissions if s.student}
    for submission in sorted(submissions, key=lambda s: order.index(s.mark), reverse=True):
        if submission.exercise:
            marks[submission.student][submission.name] = submission.mark
    return marks


def _solved(row: dict[str, str]) -> int:
    return list(row.values()).count("solved")


def class_report(submissions: list[Submission]) -> str:
    """The table, which sign means what, and what the class got wrong."""
    marks = marks_of(submissions)
    exercises = _handed_in(submissions)
    rows: list[tuple[str, list[Any]]] = [("student", [e.number for e in exercises])]
    rows += [(student, [SIGNS[row[e.name]] for e in exercises]) for student, row in marks.items()]
    columns = zip(*(cells for _, cells in rows), strict=True)
    rows.append(("solved", [column.count(SIGNS["solved"]) for column in columns]))
    width = max(len(name) for name, _ in rows)
    lines: list[str] = []
    for start in range(0, len(exercises), COLUMNS):
        blocks = ((name, cells[start : start + COLUMNS]) for name, cells in rows)
        lines += [f"{name:{width}}" + "".join(f"{c:>4}" for c in some) for name, some in blocks]
        lines.append("")
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
    """How many students made which mistake in which exercise, in the file that counts."""
    marks = marks_of(submissions)
    made = {
        (s.student, s.verdict.kinds[0] if s.mark == "wrong" else s.mark, s.name)
        for s in submissions
        if s.name and s.mark not in ("solved", "not started", "missing")
        if s.mark == marks[s.student][s.name]
    }
    return Counter((kind, name) for _, kind, name in sorted(made))


def write_csv(submissions: list[Submission], file: Path) -> None:
    """One row a student: the mark for each exercise, and how many are solved."""
    names = [exercise.name for exercise in _handed_in(submissions)]
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["student", *names, "solved"])
        for student, row in marks_of(submissions).items():
            writer.writerow([student, *(row[name] for name in names), _solved(row)])


def write_feedback(submissions: list[Submission], folder: Path) -> None:
    """One text file a student: the report on each file, and which exercises are missing."""
    folder.mkdir(parents=True, exist_ok=True)
    marks = marks_of(submissions)
    named = filter(lambda submission: submission.student, submissions)
    for student, own in groupby(named, key=lambda submission: submission.student):
        texts = [f"{student}: {_solved(marks[student])} of {len(marks[student])} solved"]
        for submission in own:
            name = f"{submission.file.name}\n" if submission.file else ""
            if submission.exercise:
                said = report(submission.exercise, submission.verdict)
            else:
                said = f"  {submission.verdict.findings[0].text}"
            texts.append(name + said)
        text = re.sub("\033\\[\\d+m", "", "\n\n".join(texts))  # no colours in a file
        (folder / f"{student}.txt").write_text(f"{text}\n", encoding="utf-8")

"""A class: marks for all that students hand in, the table, the CSV file and the feedback."""

import csv
import json
import shutil
from pathlib import Path

import pytest
from submissions import COURSE, ODD, hand_in

import check
from lab.course.classroom import class_report, grade_class, marks_of, write_csv, write_feedback
from lab.errors import UserError

NAMES = ("relu", "row_sum")
FEW = [ODD[i] for i in (0, 1, 4, 7, 8, 9, 10, 11, 12, 16)]  # of each kind one
STUDENTS = len(FEW) + 1
SECONDS = 6


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """The marks that a class deserves, and its graded submissions."""
    folder = tmp_path_factory.mktemp("submissions")
    return hand_in(folder, STUDENTS, NAMES, FEW), grade_class(folder, seconds=SECONDS)


@pytest.mark.slow
def test_each_mark_is_right(graded):
    deserved, submissions = graded
    assert marks_of(submissions) == deserved


def test_no_file_is_left_out(graded):
    _, submissions = graded
    (unknown,) = [s for s in submissions if s.mark == "unrecognised"]
    assert unknown.file.name == "e04_something.py"
    assert "which exercise" in unknown.verdict.findings[0].text


def test_the_table(graded):
    deserved, submissions = graded
    lines = class_report(submissions).splitlines()
    numbers = [str(COURSE[name].number) for name in NAMES]
    assert lines[0].split() == ["student", *numbers]
    assert lines[1].split() == ["student00", "-", "+"]
    assert lines[2].split() == ["student01", "T", "x"]
    solved = [
        sum(row[name] == "solved" for row in deserved.values()) for name in deserved["student00"]
    ]
    assert lines[STUDENTS + 1].split() == ["solved", *map(str, solved)]
    assert max(map(len, lines[: STUDENTS + 12])) <= 80


def test_what_the_class_got_wrong(graded):
    _, submissions = graded
    wrong = [s for s in submissions if s.mark == "wrong" and s.name == "row_sum"]
    kind = wrong[0].verdict.kinds[0]
    assert f"{len(wrong)} of {STUDENTS}: {kind} (row_sum)" in class_report(submissions)


def test_the_csv_file(graded, tmp_path):
    deserved, submissions = graded
    write_csv(submissions, tmp_path / "grades.csv")
    with (tmp_path / "grades.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [row["student"] for row in rows] == list(deserved)
    assert rows[1] == {"student": "student01", **deserved["student01"], "solved": "0"}


def test_feedback_for_each_student(graded, tmp_path):
    deserved, submissions = graded
    write_feedback(submissions, tmp_path / "feedback")
    assert {file.stem for file in (tmp_path / "feedback").iterdir()} == set(deserved)
    text = (tmp_path / "feedback/student01.txt").read_text()
    assert text.startswith("student01: 0 of 2 solved\n")
    assert "in backward, line" in " ".join(text.split())
    assert "\033" not in text
    missing = (tmp_path / "feedback/student00.txt").read_text()
    assert "relu: missing" in missing and "--hint" not in missing


def test_files_that_name_their_student_as_typed(tmp_path, capsys):
    for student, exercise in (("alice", "square"), ("bob", "square"), ("bob", "scale")):
        shutil.copy(COURSE[exercise].solution, tmp_path / f"{student}_{COURSE[exercise].stem}.py")
    shutil.copy(COURSE["square"].file, tmp_path / "bob_e02_square (1).py")
    assert check.main([str(tmp_path), "--json", "--csv", str(tmp_path / "grades.csv")]) == 0
    records = json.loads(capsys.readouterr().out)
    assert [(r["student"], r["exercise"], r["mark"]) for r in records] == [
        ("alice", "scale", "missing"),
        ("alice", "square", "solved"),
        ("bob", "scale", "solved"),
        ("bob", "square", "not started"),
        ("bob", "square", "solved"),
    ]
    assert Path(records[1]["file"]) == tmp_path / "alice_e02_square.py"
    assert {"name", "verdict", "findings", "notes", "as_declared"} <= set(records[0])
    assert (tmp_path / "grades.csv").read_text().splitlines()[2] == "bob,solved,solved,2"


def test_a_folder_without_answers_is_refused(tmp_path):
    (tmp_path / "notes.py").write_text("x = 1")
    with pytest.raises(UserError, match="holds no answer to an exercise"):
        check.main([str(tmp_path)])
    with pytest.raises(UserError, match="are for a class"):
        check.main(["exercises", "--csv", str(tmp_path / "grades.csv")])

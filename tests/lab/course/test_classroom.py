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


def hand_in_square(*places):
    for place in places:
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(COURSE["square"].solution, place)


def marks_in(folder):
    return {(s.student, s.name): s.mark for s in grade_class(folder)}


def test_files_without_a_student_are_listed_and_no_row_of_theirs_is_made(tmp_path):
    hand_in_square(
        tmp_path / "ann_square.py", tmp_path / "e02_square_bob.py", tmp_path / "eve/e2_square.py"
    )
    submissions = grade_class(tmp_path)
    assert marks_of(submissions) == {"eve": {"square": "solved"}}
    assert class_report(submissions).count("STUDENT_e02_square.py") == 2


def test_the_folder_of_one_student(tmp_path):
    hand_in_square(tmp_path / "bob/e02_square.py")
    assert marks_in(tmp_path / "bob") == {("bob", "square"): "solved"}


def test_what_programs_leave_behind_is_no_answer(tmp_path):
    hand_in_square(tmp_path / "bob/e02_square.py", tmp_path / "__MACOSX/bob/._e02_square.py")
    hand_in_square(tmp_path / "bob/.ipynb_checkpoints/e02_square-checkpoint.py")
    (tmp_path / ".git").mkdir()
    assert marks_in(tmp_path) == {("bob", "square"): "solved"}


def test_what_is_named_like_an_answer_and_is_none_is_listed(tmp_path):
    hand_in_square(tmp_path / "bob/e02_square.py")
    (tmp_path / "bob/e04_relu.ipynb").touch()
    (tmp_path / "bob/e03_product.py").symlink_to(tmp_path / "gone.py")
    (tmp_path / "eve/e05_sigmoid.py").mkdir(parents=True)  # a folder
    submissions = grade_class(tmp_path)
    names = [s.file.name for s in submissions if s.mark == "unrecognised"]
    assert sorted(names) == ["e03_product.py", "e04_relu.ipynb"]
    assert marks_of(submissions)["bob"] == {"square": "solved"}


def test_only_the_file_that_counts_is_a_mistake_of_the_class(tmp_path):
    hand_in_square(tmp_path / "bob/e02_square.py", tmp_path / "eve/e02_square.py")
    wrong = COURSE["square"].solution.read_text().replace("2 * x", "x")
    for name in ("bob/e02_square (1).py", "kim/e02_square.py"):
        hand_in_square(tmp_path / name)
        (tmp_path / name).write_text(wrong)
    assert "1 of 3: " in class_report(grade_class(tmp_path))


def test_a_name_that_is_not_utf8_is_kept(tmp_path):
    folder = tmp_path / b"J\xf6rg".decode(errors="surrogateescape")
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("this file system refuses such a name")
    hand_in_square(folder / "e02_square.py")
    submissions = grade_class(tmp_path)
    write_csv(submissions, tmp_path / "new/grades.csv")
    assert "J\\udcf6rg,solved,1" in (tmp_path / "new/grades.csv").read_text()


def test_what_a_class_does_not_take(tmp_path):
    hand_in_square(tmp_path / "bob/e02_square.py")
    for more in (["--hint"], ["--compile"], ["MyReLU"]):
        with pytest.raises(UserError, match="a class takes no"):
            check.main([str(tmp_path), *more])
    with pytest.raises(UserError, match="name a folder elsewhere"):
        check.main([str(tmp_path), "--feedback", str(tmp_path / "feedback")])


def test_marks_are_printed_before_a_file_that_cannot_be_written(tmp_path, capsys):
    hand_in_square(tmp_path / "bob/e02_square.py")
    with pytest.raises(UserError, match="directory"):
        check.main([str(tmp_path), "--csv", str(tmp_path)])
    assert "solved" in capsys.readouterr().out


def test_a_folder_without_answers_is_refused(tmp_path):
    (tmp_path / "notes.py").write_text("x = 1")
    with pytest.raises(UserError, match="holds no answer to an exercise"):
        check.main([str(tmp_path)])
    with pytest.raises(UserError, match="are for a class"):
        check.main(["exercises", "--csv", str(tmp_path / "grades.csv")])

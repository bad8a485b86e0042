"""The list, the hint, the watch, and the command line of the exercises, in a copy of them."""

import contextlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import check
from lab.course import exercise as exercise_module
from lab.course import session
from lab.course.exercise import every_exercise, find_exercises
from lab.course.session import watch
from lab.errors import UserError

HOME = Path(__file__).parents[3]
COUNT = len(every_exercise())


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A learner's copy of exercises/, and the folder stood in."""
    shutil.copytree(HOME / "exercises", tmp_path / "exercises")
    monkeypatch.setattr(exercise_module, "FOLDER", tmp_path / "exercises")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "exercises"


def solve(course, *stems):
    for stem in stems:
        shutil.copy(course / "solutions" / f"{stem}.py", course / f"{stem}.py")


def wrong(course):
    return (
        (course / "e01_square.py")
        .read_text()
        .replace("raise NotImplementedError", "return 2 * grad_output")
    )


@pytest.mark.parametrize(
    ("target", "found"),
    [
        ("exercises.relu", "e03_relu"),
        ("exercises.e03_relu", "e03_relu"),
        ("exercises.relu.ReLU", "e03_relu"),
        ("exercises/e03_relu.py", "e03_relu"),
        ("elsewhere/alice_e03_relu.py", "e03_relu"),
    ],
)
def test_names_of_one_exercise(target, found):
    (exercise,) = find_exercises(target)
    assert exercise.stem == found
    if target.endswith(".py"):
        assert exercise.file == Path(target)


def test_names_of_all_and_of_none():
    assert find_exercises("exercises") == find_exercises("exercises/") == every_exercise()
    for target in ("MyReLU", "my_module.Swish", "relu.py", "exercises.solutions.e03_relu.ReLU"):
        assert find_exercises(target) == []
    with pytest.raises(UserError, match=r"no such exercise\. Did you mean relu\?$"):
        find_exercises("exercises.rleu")


def test_the_list_of_a_beginner(course, capsys):
    assert check.main(["exercises"]) == 1
    out = capsys.readouterr().out
    assert out.count("not started") == COUNT
    assert f"[{'.' * COUNT}] 0 of {COUNT} solved" in out
    assert out.endswith(
        "Next:      exercises/e01_square.py\nCheck it:  python check.py exercises.square\n"
    )


def test_the_list_tells_solved_and_wrong_and_what_is_next(course, capsys):
    solve(course, "e02_product", "e03_relu")
    (course / "e01_square.py").write_text(wrong(course))
    assert check.main(["exercises"]) == 1
    rows = capsys.readouterr().out.splitlines()
    assert rows[0].split(maxsplit=2) == ["1", "square", "wrong (same slope everywhere)"]
    assert rows[1].split() == ["2", "product", "solved"]
    assert f"[##{'.' * (COUNT - 2)}] 2 of {COUNT} solved" in rows
    assert "Next:      exercises/e01_square.py" in rows


def test_the_list_at_the_end(course, capsys):
    solve(course, *(exercise.stem for exercise in every_exercise()))
    assert check.main(["exercises"]) == 0
    out = capsys.readouterr().out
    assert out.endswith(f"[{'#' * COUNT}] {COUNT} of {COUNT} solved\n")


def test_checking_changes_no_file(course, capsys):
    before = {path: path.read_bytes() for path in course.rglob("*.py")}
    check.main(["exercises"])
    check.main(["exercises.square"])
    assert before == {path: path.read_bytes() for path in course.rglob("*.py")}


def test_a_solved_one_names_the_training_and_the_next(course, capsys):
    solve(course, "e03_relu")
    assert check.main(["exercises.relu"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Exercise 3, relu: solved\n")
    assert "Backward chose 0; torch.relu chooses 0." in out
    assert "Train it:  python train.py function=exercise_relu\n" in out
    assert "Next:      exercises/e04_sigmoid.py\n" in out


def test_hints(course, capsys):
    solve(course, "e01_square")
    assert check.main(["exercises", "--hint"]) == 0
    assert capsys.readouterr().out.startswith("Exercise 2, product: ")
    assert check.main(["exercises.relu", "--hint"]) == 0
    assert "Draw it." in capsys.readouterr().out


@pytest.mark.parametrize("options", [["--hint"], ["MyReLU", "--watch"]])
def test_hint_and_watch_are_for_exercises(options):
    with pytest.raises(UserError, match="are for an exercise"):
        check.main(options)


def test_watch_checks_at_each_change_and_goes_on(course, capsys):
    file = course / "e01_square.py"

    def editor():
        yield "nothing changed"
        file.write_text(wrong(course))
        yield "saved"
        yield "saved again, without a change"
        file.rename(course / "moved.py")
        yield "an editor is replacing the file"
        solve(course, "e01_square")
        yield "saved"
        solve(course, "e02_product")
        yield "saved, the next one"

    verdicts = watch(find_exercises("exercises"), editor())
    titles = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Exercise ")]
    assert titles == [
        "Exercise 1, square: not started",
        "Exercise 1, square: wrong (same slope everywhere)",
        "Exercise 1, square: solved",
        "Exercise 2, product: not started",
        "Exercise 2, product: solved",
        "Exercise 3, relu: not started",
    ]
    assert [verdict.as_declared for verdict in verdicts] == [True, True, False]


def test_a_fault_in_the_check_does_not_end_the_watch(course, capsys, monkeypatch):
    failing, whole = [True], session.grade

    def grade(exercise, **how):
        return 1 / 0 if failing.pop() else whole(exercise, **how)

    monkeypatch.setattr(session, "grade", grade)
    (square,) = find_exercises("exercises.square")

    def changes():
        failing.append(False)
        square.file.write_text(wrong(course))
        yield

    (verdict,) = session.watch([square], changes())
    assert verdict.verdict == "wrong"
    out = capsys.readouterr().out
    assert out.startswith("Exercise 1, square: cannot run (check failed)\n")
    assert "ZeroDivisionError: division by zero" in out
    assert "in grade\n" in out  # the traceback


def test_watch_ends_after_the_last(course):
    solve(course, *(exercise.stem for exercise in every_exercise()[-2:]))
    verdicts = watch(find_exercises(f"exercises.{every_exercise()[-2].name}"), iter([]))
    assert [verdict.as_declared for verdict in verdicts] == [True, True]


def test_watch_as_typed_from_the_first_save_to_ctrl_c(tmp_path):
    for name in ("check.py", "lab", "functions", "exercises"):
        copy = shutil.copytree if (HOME / name).is_dir() else shutil.copy
        copy(HOME / name, tmp_path / name)
    with subprocess.Popen(
        [sys.executable, "check.py", "exercises", "--watch"],
        cwd=tmp_path,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as learner:
        give_up = threading.Timer(60, learner.kill)
        give_up.start()
        try:
            seen = []

            def until(words):
                for line in learner.stdout:
                    seen.append(line)
                    if words in line:
                        return
                pytest.fail(f"never said {words!r}: {''.join(seen)} {learner.stderr.read()}")

            until("-- waiting for")
            (tmp_path / "exercises/e01_square.py").write_text(wrong(tmp_path / "exercises"))
            until("Exercise 1, square: wrong")
            until("-- waiting for")
            solve(tmp_path / "exercises", "e01_square")
            until("Exercise 1, square: solved")
            until("Exercise 2, product: not started")
            until("-- waiting for")
            learner.send_signal(signal.SIGINT)
            assert learner.wait() == 130
            assert "Traceback" not in learner.stderr.read()
        finally:
            give_up.cancel()
            learner.kill()


def graded(path):
    """Exit code and verdict of `check.py --json PATH`."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = check.main(["--json", str(path)])
    (verdict,) = json.loads(out.getvalue())
    return code, verdict, err.getvalue()


def test_json_for_files_that_lie_elsewhere(course, tmp_path):
    alice, bob, carol, dave = (tmp_path / name for name in ("alice", "bob", "carol", "dave"))
    for folder in (alice, bob, carol, dave):
        folder.mkdir()
    shutil.copy(course / "solutions/e01_square.py", alice)
    (bob / "bob_e01_square.py").write_text("print('hello')\n" + wrong(course))
    shutil.copy(course / "e01_square.py", carol)
    (dave / "e01_square.py").write_text("class Square(\n")

    code, verdict, _ = graded(alice / "e01_square.py")
    assert (code, verdict["verdict"], verdict["as_declared"]) == (0, "exact", True)
    code, verdict, printed = graded(bob / "bob_e01_square.py")
    assert (code, verdict["verdict"], verdict["as_declared"]) == (1, "wrong", False)
    assert verdict["findings"][0]["kind"] == "same slope everywhere"
    assert printed == "hello\n"
    code, verdict, _ = graded(carol / "e01_square.py")
    assert (code, verdict["verdict"]) == (1, "not started")
    code, verdict, _ = graded(dave / "e01_square.py")
    assert (code, verdict["verdict"]) == (1, "cannot run")
    assert "never closed" in verdict["findings"][0]["text"]
    with pytest.raises(UserError, match="no such file"):
        check.main(["--json", str(tmp_path / "eve/e01_square.py")])


def test_json_of_the_course_is_a_list_of_verdicts(course, capsys):
    solve(course, "e01_square")
    assert check.main(["exercises", "--json"]) == 1
    verdicts = json.loads(capsys.readouterr().out)
    assert [verdict["verdict"] for verdict in verdicts] == ["exact"] + ["not started"] * (COUNT - 1)

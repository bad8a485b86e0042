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
import time
from pathlib import Path

import pytest

import check
from lab.course import exercise as exercise_module
from lab.course import terminal
from lab.course.exercise import every_exercise, find_exercises
from lab.course.session import watch
from lab.errors import UserError

HOME = Path(__file__).parents[3]
COUNT = len(every_exercise())
SCALE, SQUARE, PRODUCT, RELU = (f"e{n:02}_{name}" for n, name in enumerate(
    ("scale", "square", "product", "relu"), 1))  # fmt: skip


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


def answer(course, body, stem=SQUARE):
    file = course / f"{stem}.py"
    shipped = HOME / "exercises" / file.name
    file.write_text(shipped.read_text().replace("raise NotImplementedError", body))


WRONG = "return 2 * grad_output"


def test_the_list_of_a_beginner(course, capsys):
    assert check.main(["exercises"]) == 1
    out = capsys.readouterr().out
    assert out.count("not started") == COUNT
    assert f"[{'.' * COUNT}] 0 of {COUNT} solved" in out
    assert "exercises/README.md" in out
    assert out.endswith(
        f"Next:      exercises/{SCALE}.py\nCheck it:  python check.py exercises.scale\n"
    )


def test_the_list_counts_by_chapter_and_names_what_is_next(course, capsys):
    solve(course, SCALE, PRODUCT)
    answer(course, WRONG)
    assert check.main(["exercises"]) == 1
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert rows[0][-3:] == ["2", "of", "6"]
    assert rows[1] == ["1", "scale", "solved"]
    assert rows[2][:3] == ["2", "square", "wrong"]
    assert ["Next:", f"exercises/{SQUARE}.py"] in rows
    assert [f"[##{'.' * (COUNT - 2)}]", *f"2 of {COUNT} solved".split()] in rows


def test_checking_changes_no_file(course, capsys):
    before = {path: path.read_bytes() for path in course.rglob("*.py")}
    check.main(["exercises"])
    check.main(["exercises.square"])
    assert before == {path: path.read_bytes() for path in course.rglob("*.py")}


def test_a_solved_one_names_the_solution_the_training_and_the_next(course, capsys):
    solve(course, RELU)
    assert check.main(["exercises.relu"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Exercise 4, relu: solved"
    assert [line.split() for line in lines[-3:]] == [
        ["Compare:", f"exercises/solutions/{RELU}.py"],
        ["Train", "it:", "python", "train.py", "function=exercise_relu"],
        ["Next:", "exercises/e05_sigmoid.py"],
    ]


def test_what_an_answer_prints_is_shown_apart(course, capsys):
    answer(course, "print(grad_output.shape)\n        return 2 * x * grad_output")
    assert check.main(["exercises.square"]) == 0
    assert "Your code printed:" in capsys.readouterr().out
    assert check.main(["exercises.square", "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)[0]["as_declared"]
    assert "torch.Size" in err


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("raise NotImplementedError", "backward (line 26) still raises"),
        (
            "raise NotImplementedError\n        return 2 * x * grad_output",
            "never reaches the code below line 26: remove",
        ),
    ],
)
def test_where_something_is_still_to_be_written(course, capsys, body, words):
    answer(course, body)
    line = next(
        number
        for number, text in enumerate((course / f"{SQUARE}.py").read_text().splitlines(), 1)
        if "raise" in text
    )
    assert check.main(["exercises.square"]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert said.startswith("Exercise 2, square: not started")
    assert words.replace("26", str(line)) in said


def test_hints_have_two_levels(course, capsys):
    idea, first_line = find_exercises("exercises.relu")[0].hints
    assert check.main(["exercises.relu", "--hint"]) == 0
    once = " ".join(capsys.readouterr().out.split())
    assert idea in once and first_line not in once
    assert check.main(["exercises.relu", "--hint", "--hint"]) == 0
    assert first_line in " ".join(capsys.readouterr().out.split())


def test_the_hint_of_the_course_is_for_the_first_that_is_not_solved(course, capsys):
    solve(course, SCALE)
    assert check.main(["exercises", "--hint"]) == 0
    assert capsys.readouterr().out.startswith("Hint for square: ")


@pytest.mark.parametrize("options", [["--hint"], ["MyReLU", "--watch"]])
def test_hint_and_watch_are_for_exercises(options):
    with pytest.raises(UserError, match="are for an exercise"):
        check.main(options)


# ---- The watch ----------------------------------------------------------------------------------


class Seen:
    """What the watch has printed since it was last asked, and keys that wait for some words."""

    def __init__(self, capsys):
        self.capsys, self.new, self.all = capsys, "", ""

    def until(self, words):
        """Tick until the words have been printed."""
        give_up = time.monotonic() + 60
        while words not in self.new:
            assert time.monotonic() < give_up, f"never said {words!r}: {self.all}"
            yield ""
            printed = self.capsys.readouterr().out
            self.new += printed
            self.all += printed
        self.new = self.new.partition(words)[2]


@pytest.fixture
def seen(capsys):
    return Seen(capsys)


def test_watch_checks_at_each_save_and_goes_on(course, seen):
    file = course / f"{SCALE}.py"

    def editor():
        yield from seen.until("waiting for")
        file.write_text(file.read_text())  # a save without a change
        answer(course, "return grad_output, None", SCALE)
        yield from seen.until("waiting for")
        file.rename(course / "moved.py")  # an editor is replacing the file
        yield ""
        solve(course, SCALE)
        yield from seen.until("square: not started")
        yield from seen.until("waiting for")
        solve(course, SQUARE)
        yield from seen.until("product: not started")

    verdicts = watch(find_exercises("exercises"), editor())
    titles = [line for line in seen.all.splitlines() if line.startswith("Exercise ")]
    assert [title.partition(" (")[0] for title in titles] == [
        "Exercise 1, scale: not started",
        "Exercise 1, scale: wrong",
        "Exercise 1, scale: solved",
        "Exercise 2, square: not started",
        "Exercise 2, square: solved",
        "Exercise 3, product: not started",
    ]
    assert [verdict.as_declared for verdict in verdicts] == [True, True, False]


def test_a_save_ends_an_endless_loop(course, seen):
    answer(course, "while True: pass")

    def editor():
        yield ""
        solve(course, SQUARE)
        yield from seen.until("square: solved")

    (verdict, *_) = watch(find_exercises("exercises.square"), editor(), seconds=300)
    assert verdict.as_declared


def test_an_endless_loop_is_stopped_at_the_limit(course, capsys):
    answer(course, "while True: pass")
    assert check.main(["exercises.square", "--timeout", "0.5"]) == 1
    assert "in backward, line" in " ".join(capsys.readouterr().out.split())


def test_saving_another_exercise_makes_it_the_current_one(course, seen):
    def editor():
        yield from seen.until("waiting for")
        answer(course, "return grad_output", RELU)
        yield from seen.until("Exercise 4, relu: wrong")

    watch(find_exercises("exercises"), editor())


def test_watch_ends_after_the_last(course, seen):
    for exercise in every_exercise()[3:]:
        exercise.file.unlink()
    solve(course, SQUARE, PRODUCT)

    def editor():
        yield from seen.until("waiting for")
        solve(course, SCALE)
        yield from seen.until("solved every exercise")
        yield from seen.until("never said")

    verdicts = watch(find_exercises("exercises"), editor())
    assert [verdict.as_declared for verdict in verdicts] == [True] * 3


def test_keys_on_a_screen(course, seen, monkeypatch):
    monkeypatch.setattr("lab.course.session.is_terminal", lambda: True)
    idea, _ = find_exercises("exercises.scale")[0].hints

    def learner():
        yield from seen.until("q quit")
        assert "Welcome" in seen.all
        yield "n"
        yield from seen.until("Exercise 1, scale: not started")
        yield from seen.until("q quit")
        yield "h"
        yield from seen.until(idea.split()[-1])
        yield from seen.until("q quit")
        yield "h"
        yield from seen.until("First line")
        yield from seen.until("q quit")
        yield "n"
        yield from seen.until("Exercise 2, square: not started")
        yield from seen.until("q quit")
        yield "l"
        yield from seen.until("[ ] custom_op")
        yield from seen.until("q quit")
        solve(course, SQUARE)
        yield from seen.until("Exercise 2, square: solved")
        yield from seen.until(f"1 of {COUNT} solved")
        yield from seen.until(f"exercises/{PRODUCT}.py")
        yield "q"
        raise AssertionError("q did not end it")

    watch(find_exercises("exercises"), learner())


def test_colour_only_where_it_is_welcome(monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert terminal.painted("solved", "green") == "\033[32msolved\033[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert terminal.painted("solved", "green") == "solved"


@pytest.mark.slow
def test_watch_as_typed_from_the_first_save_to_ctrl_c(tmp_path):
    for name in ("check.py", "lab", "functions", "exercises", "conf"):
        copy = shutil.copytree if (HOME / name).is_dir() else shutil.copy
        copy(HOME / name, tmp_path / name)
    with subprocess.Popen(
        [sys.executable, "check.py", "exercises", "--watch"],
        cwd=tmp_path,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdin=subprocess.DEVNULL,
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
            answer(tmp_path / "exercises", "return grad_output, None", SCALE)
            until("Exercise 1, scale: wrong")
            until("-- waiting for")
            solve(tmp_path / "exercises", SCALE)
            until("Exercise 1, scale: solved")
            until("Exercise 2, square: not started")
            until("-- waiting for")
            learner.send_signal(signal.SIGINT)
            assert learner.wait() == 130
            assert "Traceback" not in learner.stderr.read()
        finally:
            give_up.cancel()
            learner.kill()


# ---- JSON ---------------------------------------------------------------------------------------


def graded(path):
    """Exit code and verdict of `check.py --json PATH`."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = check.main(["--json", str(path)])
    (verdict,) = json.loads(out.getvalue())
    return code, verdict


def test_json_for_files_that_lie_elsewhere(course, tmp_path):
    alice, bob, carol, dave = (tmp_path / name for name in ("alice", "bob", "carol", "dave"))
    for folder in (alice, bob, carol, dave):
        folder.mkdir()
    shutil.copy(course / f"solutions/{SQUARE}.py", alice)
    shutil.copy(course / f"{SQUARE}.py", carol / "e1_square (1).py")
    answer(course, WRONG)
    shutil.copy(course / f"{SQUARE}.py", bob / f"bob_{SQUARE}.py")
    (dave / f"{SQUARE}.py").write_text("class Square(\n")

    code, verdict = graded(alice / f"{SQUARE}.py")
    assert (code, verdict["verdict"], verdict["as_declared"]) == (0, "exact", True)
    assert (verdict["exercise"], Path(verdict["file"])) == ("square", alice / f"{SQUARE}.py")
    code, verdict = graded(bob / f"bob_{SQUARE}.py")
    assert (code, verdict["verdict"], verdict["as_declared"]) == (1, "wrong", False)
    assert verdict["findings"][0]["kind"] == "same slope everywhere"
    code, verdict = graded(carol / "e1_square (1).py")
    assert (code, verdict["verdict"]) == (1, "not started")
    code, verdict = graded(dave / f"{SQUARE}.py")
    assert (code, verdict["verdict"]) == (1, "cannot run")
    assert "never closed" in verdict["findings"][0]["text"]
    with pytest.raises(UserError, match="does not exist"):
        check.main(["--json", str(tmp_path / f"eve/{SQUARE}.py")])


def test_json_of_the_course_is_a_list_of_verdicts(course, capsys):
    solve(course, SCALE)
    assert check.main(["exercises", "--json"]) == 1
    verdicts = json.loads(capsys.readouterr().out)
    assert [verdict["verdict"] for verdict in verdicts] == ["exact"] + ["not started"] * (COUNT - 1)

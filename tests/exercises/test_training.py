"""What was written in an exercise trains a network; what was not is told in one line."""

import importlib
import json
import sys

import pytest
import torch
from conftest import command

import exercises
from lab.course.exercise import every_exercise
from lab.recording.reading import read_run

TRAINS = {exercise.name: exercise.stem for exercise in every_exercise() if exercise.trains}


@pytest.fixture
def solved(monkeypatch):
    """Every exercise as if its solution had been typed into it."""
    for stem in TRAINS.values():
        solution = importlib.import_module(f"exercises.solutions.{stem}")
        monkeypatch.setitem(sys.modules, f"exercises.{stem}", solution)
        monkeypatch.setattr(exercises, stem, solution, raising=False)


def test_these_train():
    names = ["relu", "sigmoid", "linear", "straight_through", "in_place", "second_derivative"]
    assert sorted(TRAINS) == sorted(names)


@pytest.mark.parametrize("name", TRAINS)
def test_a_solved_one_learns(name, solved, run_in):
    summary = run_in(f"function=exercise_{name}", "steps=20").summary
    assert summary["status"] == "finished"
    assert summary["final_loss"] < summary["first_loss"]


@pytest.mark.parametrize(("name", "other"), [("relu", "relu"), ("linear", "linearfunction")])
def test_a_right_answer_gives_the_curve_of_the_shipped_one(name, other, solved, run_in):
    runs = [
        run_in(f"function={function}", "steps=20", "dtype=float64", folder=function)
        for function in (f"exercise_{name}", other)
    ]
    mine, theirs = (torch.as_tensor(read_run(run.folder).losses) for run in runs)
    torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=0)


@pytest.mark.parametrize(("name", "method"), [("relu", "backward"), ("in_place", "forward")])
def test_one_that_is_not_begun_is_told_in_one_line(name, method, tmp_path):
    ran = command("train.py", f"function=exercise_{name}", cwd=tmp_path)
    assert ran.returncode == 1
    (line,) = ran.stderr.splitlines()
    assert line.startswith("error: ")
    assert f"exercises/{TRAINS[name]}.py, line " in line
    assert line.endswith(f": {method} is not written yet")
    for summary in tmp_path.glob("outputs/*/summary.json"):
        assert json.loads(summary.read_text())["error"] in line

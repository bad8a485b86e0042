"""A solved exercise trains a network; an unfinished one is reported in one line."""

import importlib
import sys

import pytest
import torch

import exercises
from lab.comparing.why import why
from lab.course.exercise import every_exercise
from lab.recording.reading import read_run
from tests.typed import typed

TRAINS = {exercise: exercise.trains_as for exercise in every_exercise() if exercise.trains_as}


@pytest.fixture
def solved(monkeypatch):
    """Every exercise as if its solution had been typed into it."""
    for exercise in TRAINS:
        solution = importlib.import_module(f"exercises.solutions.{exercise.stem}")
        monkeypatch.setitem(sys.modules, f"exercises.{exercise.stem}", solution)
        monkeypatch.setattr(exercises, exercise.stem, solution, raising=False)


def test_these_train():
    activations = ["relu", "sigmoid", "straight_through", "in_place", "second_derivative"]
    functions = {f"function=exercise_{name}" for name in (*activations, "linear")}
    assert set(TRAINS.values()) == functions | {"model=exercise_network"}


@pytest.mark.parametrize("choice", TRAINS.values())
def test_a_solved_exercise_learns(choice, solved, run_in):
    summary = run_in(choice, "steps=20").summary
    assert summary.status == "finished"
    assert summary.final_loss < summary.first_loss


@pytest.mark.parametrize(("name", "other"), [("relu", "relu"), ("linear", "linearfunction")])
def test_a_right_answer_gives_the_curve_of_the_shipped_one(name, other, solved, run_in):
    runs = [
        run_in(f"function={function}", "steps=20", "dtype=float64", folder=function)
        for function in (f"exercise_{name}", other)
    ]
    mine, theirs = (torch.as_tensor(read_run(run.folder).losses) for run in runs)
    torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_network_gives_the_losses_of_builtin_bit_for_bit(dtype, solved, run_in):
    # Past step 115, where a hidden value is exactly 0 in float32.
    choices = ("model=exercise_network", "function=builtin")
    runs = [run_in(choice, "steps=150", f"dtype={dtype}", folder=choice) for choice in choices]
    mine, theirs = (list(read_run(run.folder).losses) for run in runs)
    assert mine == theirs


def test_why_finds_no_difference_between_the_network_and_builtin(solved, run_in):
    choices = ("model=exercise_network", "model=two_layer_net")
    runs = [run_in(choice, "function=builtin", "steps=3", folder=choice) for choice in choices]
    text = why(*(read_run(run.folder) for run in runs))
    assert "\nNever: " in text
    assert "bit for bit, in all 3" in text


def test_the_network_may_be_of_another_size_and_start(solved, run_in):
    sizes = ("model.hidden=7", "data.samples=5", "data.features=6", "data.targets=3")
    runs = [
        run_in(choice, "model.init=he", "steps=3", *sizes, folder=choice)
        for choice in ("model=exercise_network", "function=builtin")
    ]
    mine, theirs = (list(read_run(run.folder).losses) for run in runs)
    assert mine == theirs


@pytest.mark.parametrize(
    ("choice", "file", "method"),
    [
        ("function=exercise_in_place", "e25_in_place", "forward"),
        ("model=exercise_network", "e18_network", "backward"),
    ],
)
def test_an_unfinished_exercise_is_reported_in_one_line_at_the_end(choice, file, method, tmp_path):
    with typed(choice, cwd=tmp_path) as ran:
        assert ran.wait() == 1
        line = ran.err.splitlines()[-1]
    assert line.startswith("error: ")
    assert f"exercises/{file}.py, line " in line and method in line

"""Which exercise a target, a number or a file means, and which files are refused."""

from pathlib import Path

import pytest

from lab.course.exercise import every_exercise, find_exercises
from lab.errors import UserError

RELU = "class {}(torch.autograd.Function):\n    def forward(ctx, {}): ..."


@pytest.mark.parametrize(
    "target",
    ["exercises.relu", "exercises.e04_relu", "exercises.relu.ReLU", "exercises.4", "exercises.04"],
)
def test_names_of_one_exercise(target):
    (exercise,) = find_exercises(target)
    assert exercise.stem == "e04_relu"


@pytest.mark.parametrize(
    "name",
    [
        "e04_relu.py",
        "e03_relu.py",  # the number of another edition
        "e3_relu.py",
        "E4-ReLU.py",
        "alice_e04_relu.py",
        "Alice B-e04_relu (1).py",
        "e04_relu - Copy.py",
        "relu.py",
        "relu (2).py",
        "alice_relu.py",
    ],
)
def test_names_of_an_answer(name, tmp_path):
    file = tmp_path / name
    file.write_text(RELU.format("ReLU", "x"))
    (exercise,) = find_exercises(str(file))
    assert (exercise.name, exercise.file) == ("relu", file)


def test_a_name_of_several_words(tmp_path):
    file = tmp_path / "bob_e4_row sum.py"
    file.write_text("")
    assert [exercise.name for exercise in find_exercises(str(file))] == ["row_sum"]


def test_an_answer_that_names_no_exercise_is_refused():
    with pytest.raises(UserError, match=r"e04_rleu\.py is not an exercise\. Did you mean relu\?$"):
        find_exercises("elsewhere/e04_rleu.py")


@pytest.mark.parametrize("own", [("MyReLU", "x"), ("ReLU", "x, slope")])
def test_a_function_of_ones_own_is_no_answer(own, tmp_path):
    file = tmp_path / "relu.py"
    file.write_text(RELU.format(*own))
    assert find_exercises(str(file)) == []


def test_names_of_all_and_of_none():
    assert find_exercises("exercises") == find_exercises("exercises/") == every_exercise()
    for target in (
        "",
        "MyReLU",
        "my_module.Swish",
        "swish.py",
        "exercises.solutions.e04_relu.ReLU",
    ):
        assert find_exercises(target) == []
    with pytest.raises(UserError, match=r"is not an exercise\. Did you mean relu\?$"):
        find_exercises("exercises.rleu")
    with pytest.raises(UserError, match="is not an exercise"):
        find_exercises("exercises.99")


def test_every_solution_is_complete():
    for exercise in every_exercise():
        idea, first_line = exercise.hints
        assert idea and first_line
        assert exercise.defines in Path(exercise.file).read_text()
        assert exercise.chapter

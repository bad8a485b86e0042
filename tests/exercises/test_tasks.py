"""The files of the course: does each say what a learner needs, and do task and solution agree?"""

import ast
import re

import pytest
from answers import file_of

from exercises import CHAPTERS
from lab import HOME
from lab.course.exercise import every_exercise

COURSE = {exercise.name: exercise for exercise in every_exercise()}
NUMBER_OF_EXERCISES = 29


def parsed(file):
    return ast.parse(file.read_text())


def methods(tree):
    """The source of the first function of each name; comments and layout don't matter."""
    functions = [f for f in ast.walk(tree) if isinstance(f, ast.FunctionDef)]
    return {f.name: ast.unparse(f) for f in reversed(functions)}


def test_they_are_numbered_without_a_gap():
    assert [e.number for e in COURSE.values()] == list(range(1, NUMBER_OF_EXERCISES + 1))


def test_each_chapter_starts_with_an_exercise_in_order():
    places = [list(COURSE).index(first) for first in CHAPTERS.values()]
    assert places[0] == 0 and places == sorted(set(places))


@pytest.mark.parametrize("name", COURSE)
def test_a_task_says_what_is_given_what_is_asked_for_and_how_to_check(name):
    exercise = COURSE[name]
    task = ast.get_docstring(parsed(exercise.file))
    assert task.startswith(f"Exercise {exercise.number}, {name}: ")
    for words in ("you return ", "float64", f"Check it:   python check.py exercises.{name}\n"):
        assert words in task
    group = "model" if name == "network" else "function"
    trains = (HOME / f"conf/{group}/exercise_{name}.yaml").exists()
    assert (f"Train it:   python train.py {group}=exercise_{name}" in task) == trains


@pytest.mark.parametrize("name", COURSE)
def test_a_task_names_the_numbers_of_other_exercises_only_as_they_are(name):
    """Each mention of another exercise by number is of the one that it describes."""
    described = {
        4: "relu",
        9: "add_bias",
        11: "matmul",
        12: "linear",
        15: "logsumexp",
        16: "softmax",
        19: "center_rows",
        20: "layer_norm",
        27: "second_derivative",
        28: "transforms",
    } | {5: "sigmoid", 7: "row_sum", 18: "network"}
    for folder in (HOME / "exercises", HOME / "exercises/solutions"):
        numbers = {
            int(n) for n in re.findall(r"\bexercise (\d+)", file_of(name, folder).read_text())
        }
        assert numbers <= set(described)
        assert all(COURSE[described[n]].number == n for n in numbers)


@pytest.mark.parametrize("name", COURSE)
def test_the_solution_derives_hints_and_recognises_four_wrong_answers(name):
    file = file_of(name, HOME / "exercises/solutions")
    tree = parsed(file)
    assert "\nDerivation. " in ast.get_docstring(tree)
    idea, first_line = COURSE[name].hints
    assert idea.endswith((".", "?")) and first_line.endswith(".") and "`" in first_line
    public = [s for s in tree.body if not getattr(s, "name", "_").startswith("_")]
    if isinstance(public[0], ast.ClassDef):
        wrong = public[1:]
    else:
        wrong = [s for s in public if s.name.startswith(f"{name}_")]
    sentences = {ast.get_docstring(s) for s in wrong}
    assert len(wrong) == len(sentences) >= 4
    assert all(sentence.endswith(".") for sentence in sentences)


@pytest.mark.parametrize("name", COURSE)
def test_what_the_task_gives_is_what_the_solution_has(name):
    task = methods(parsed(file_of(name)))
    solution = methods(parsed(file_of(name, HOME / "exercises/solutions")))
    unfinished = {key for key, text in task.items() if "raise NotImplementedError" in text}
    assert unfinished
    if name != "second_derivative":  # there the task's forward is the trap
        given = {
            key for key in task if key not in unfinished and key not in ("custom_op", "smooth_abs")
        }
        assert all(task[key] == solution[key] for key in given)

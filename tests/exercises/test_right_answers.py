"""The solutions and other right answers are right, and are asked for nothing more."""

from dataclasses import replace

import pytest
from answers import RIGHT, file_of, typed

from lab import HOME
from lab.course.answers import judge
from lab.course.exercise import every_exercise
from lab.course.grading import grade
from lab.course.session import report

COURSE = {exercise.name: exercise for exercise in every_exercise()}
SEEDS = range(2)  # `python benchmarks/exercises.py` tries eight


def judged(exercise, seed=0):
    verdict, _ = judge(exercise, secret=0, seed=seed)
    return verdict


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", COURSE)
def test_the_solution_is_right(name, seed):
    exercise = replace(COURSE[name], file=file_of(name, HOME / "exercises/solutions"))
    verdict = judged(exercise, seed)
    assert verdict.as_declared, report(exercise, verdict)
    assert not verdict.findings
    if verdict.largest_error is not None and name != "straight_through":
        assert verdict.largest_error < 1e-5
        assert verdict.second_derivative == "right"


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("name", "bodies"), RIGHT)
def test_another_right_answer_is_right(name, bodies, seed, tmp_path):
    exercise = replace(COURSE[name], file=typed(name, bodies, tmp_path))
    verdict = judged(exercise, seed)
    assert verdict.as_declared, report(exercise, verdict)


def test_every_exercise_has_another_right_answer():
    assert {name for name, _ in RIGHT} == set(COURSE)


@pytest.mark.parametrize("name", COURSE)
def test_as_shipped_it_is_not_started(name):
    assert grade(COURSE[name]).verdict == "not started"


NUMPY = """
back = np.argsort(ctx.order.numpy(), axis=1)
return torch.from_numpy(np.take_along_axis(grad_output.numpy(), back, axis=1))
"""


@pytest.mark.parametrize("refuses", [True, False])
def test_a_backward_in_numpy_must_refuse_a_second_derivative(refuses, tmp_path):
    exercise = replace(COURSE["numpy_sort"], file=typed("numpy_sort", (NUMPY,), tmp_path))
    if refuses:
        decorated = "    @torch.autograd.function.once_differentiable\n    def backward"
        source = exercise.file.read_text()
        exercise.file.write_text(source.replace("    def backward", decorated))
    assert judged(exercise).as_declared == refuses


def test_where_no_second_derivative_is_asked_for_it_does_not_count(tmp_path):
    bodies = ("return grad_output * 2 * x.detach()",)
    exercise = replace(COURSE["square"], file=typed("square", bodies, tmp_path))
    assert judged(exercise).as_declared


def test_vmap_may_be_left_to_pytorch(tmp_path):
    (*bodies, _) = next(bodies for name, bodies in RIGHT if name == "transforms")
    file = typed("transforms", tuple(bodies), tmp_path)
    source, _, _ = file.read_text().partition("    @staticmethod\n    def vmap")
    file.write_text(
        source.replace(
            "(torch.autograd.Function):",
            "(torch.autograd.Function):\n    generate_vmap_rule = True\n",
        )
    )
    assert judged(replace(COURSE["transforms"], file=file)).as_declared

"""Each exercise with right and wrong answers typed into its file: what is the learner told?"""

import re
import textwrap

import pytest

from lab.course.exercise import Exercise, every_exercise, find_exercises
from lab.course.grading import grade
from lab.course.session import report

COURSE = {exercise.name: exercise for exercise in every_exercise()}
PLACE = re.compile(r" *raise NotImplementedError .*\n")


def answered(name, folder, *bodies) -> Exercise:
    """The exercise as shipped, each body in place of a `raise NotImplementedError`."""
    exercise = COURSE[name]
    source = exercise.file.read_text()
    for body in bodies:
        body = textwrap.indent(textwrap.dedent(body).strip("\n"), 8 * " ") + "\n"
        source = PLACE.sub(lambda _, body=body: body, source, count=1)
    (folder / f"student_{exercise.stem}.py").write_text(source)
    (found,) = find_exercises(str(folder / f"student_{exercise.stem}.py"))
    return found


@pytest.mark.parametrize("name", COURSE)
def test_as_shipped_it_is_not_begun(name):
    verdict = grade(COURSE[name])
    assert (verdict.verdict, verdict.as_declared) == ("not started", False)
    text = report(COURSE[name], verdict)
    assert text.startswith(f"Exercise {COURSE[name].number}, {name}: not started\n")
    assert COURSE[name].file.name in text


@pytest.mark.parametrize("name", COURSE)
def test_the_solution_is_right(name):
    folder = COURSE[name].file.parent / "solutions"
    (solution,) = find_exercises(str(folder / COURSE[name].file.name))
    verdict = grade(solution)
    assert verdict.as_declared, report(solution, verdict)
    declared = "surrogate" if name == "straight_through" else "exact"
    assert (verdict.verdict, verdict.second_derivative) == (declared, "right")
    assert declared == "surrogate" or verdict.largest_error < 1e-6


@pytest.mark.parametrize("name", [name for name in COURSE if name != "in_place"])
def test_the_forward_of_the_solution_is_that_of_the_exercise(name, tmp_path):
    zero = "return tuple(torch.zeros_like(a) for a in ctx.saved_tensors) or None"
    verdict = grade(answered(name, tmp_path, zero))
    assert verdict.verdict == "wrong"
    assert "another forward" not in verdict.kinds  # that would be told before anything else


@pytest.mark.parametrize("name", COURSE)
def test_the_files_say_what_a_learner_needs(name):
    exercise = COURSE[name]
    source = exercise.file.read_text()
    for words in (
        "grad_output   ",
        "to return     ",
        f"Check it:   python check.py exercises.{name}\n",
    ):
        assert words in source
    assert source.startswith(f'"""Exercise {exercise.number}, {name}: ')
    assert ("Train it:" in source) == exercise.trains
    assert (
        "\n\nDerivation. " in (exercise.file.parent / "solutions" / exercise.file.name).read_text()
    )
    assert exercise.hint.endswith((".", "?"))


def test_they_are_numbered_without_a_gap():
    assert [exercise.number for exercise in COURSE.values()] == list(range(1, len(COURSE) + 1))


# ---- Wrong answers ------------------------------------------------------------------------------

# Name of the exercise, what is typed, and words of the sentence that must come of it.
WRONG = [
    ("square", "return 2 * grad_output", "flat at 0 and steep far out"),
    ("square", "return grad_output * x", "0.5 times the right one: a constant factor is missing"),
    ("square", "return 2 * x", "does not depend on grad_output"),
    ("square", "return -2 * x * grad_output", "the sign is the wrong way round"),
    ("square", "return x * x * grad_output", "multiplies by the value x^2"),
    ("square", "2 * x * grad_output", "does backward return None"),
    ("square", "return grad_output.mul_(2 * x)", "backward edits grad_output"),
    ("square", "return 2 * X * grad_output", "NameError in backward: name 'X' is not defined"),
    ("square", "return 2 * x * grad_output, None, x", "returns 3 gradients, expected 1"),
    ("square", "return (2 * x * grad_output).sum()", "A gradient has its input's shape"),
    (
        "square",
        "return 2",
        "backward returns 2 for x: a gradient is a tensor of its input's shape",
    ),
    ("square", "return 'a'", "backward returns 'a' for x: a gradient is a tensor"),
    (
        "square",
        "return [2 * x * grad_output]",
        "a value of type list for x: a gradient is a tensor",
    ),
    (
        "square",
        "return (2 * x * grad_output).numpy()",
        "a value of type ndarray for x: a gradient is a tensor",
    ),
    (
        "square",
        "return ((2 * x * grad_output,),)",
        "a value of type tuple for x: a gradient is a tensor",
    ),
    ("square", "return ()", "returns 0 gradients, expected 1"),
    ("square", "exit(3)", "It ends the program in backward."),
    ("product", "return [grad_output * y, grad_output * x]", "commas between them, no brackets"),
    ("product", "return grad_output * y, 1.0", "backward returns 1.0 for y"),
    ("product", "return grad_output * x, grad_output * y", "in the order of forward's inputs"),
    ("product", "return grad_output * y", "returns 1 gradient, expected 2"),
    ("product", "return y, x", "does not depend on grad_output"),
    ("product", "return grad_output * x * y, grad_output * x * y", "slope in its own direction"),
    ("relu", "return grad_output", "No mask: forward is flat there"),
    ("relu", "return grad_output * (x < 0)", "The mask is the wrong way round"),
    ("relu", "return grad_output.clamp(min=0)", "The mask is made from grad_output"),
    ("relu", "return (x > 0).to(x)", "does not depend on grad_output"),
    ("relu", "return grad_output * x.clamp(min=0)", "multiplies by the value of y"),
    ("relu", "grad_output[x < 0] = 0\nreturn grad_output", "Work on a copy: grad_output.clone()"),
    ("sigmoid", "return grad_output * y", "it dies out at both ends, and y only at one"),
    ("sigmoid", "return grad_output * (1 - y)", "it dies out at both ends, and 1 - y only at one"),
    ("sigmoid", "s = torch.sigmoid(y)\nreturn grad_output * s * (1 - s)", "the sigmoid already"),
    ("sigmoid", "return grad_output * y * (y - 1)", "the sign is the wrong way round"),
    ("row_sum", "return grad_output", "shape (3,) for x of shape (3, 3)"),
    ("row_sum", "return torch.ones(ctx.shape)", "does not depend on grad_output"),
    ("row_sum", "return grad_output + torch.zeros(ctx.shape)", "given to a column"),
    (
        "row_sum",
        "return grad_output[:, None].expand(ctx.shape) / ctx.shape[1]",
        "a mean over 3 taken where a sum is right",
    ),
    ("add_bias", "return grad_output, grad_output", "Sum it in backward"),
    ("add_bias", "return grad_output, grad_output.mean(0)", "a mean over 3 taken where a sum"),
    ("add_bias", "return grad_output, grad_output.sum(1)", "runs over the wrong dimension"),
    ("add_bias", "return grad_output, grad_output[0]", "Only one row of grad_output is counted"),
    ("add_bias", "return grad_output", "returns 1 gradient, expected 2"),
    ("add_bias", "return grad_output, grad_output.sum()", "shape () for b of shape (3,)"),
    ("matmul", "return grad_output @ y, x @ grad_output", "is to be transposed"),
    ("matmul", "return y.t() @ grad_output, grad_output @ x.t()", "in the wrong order"),
    ("matmul", "return grad_output @ y.t(), grad_output.t() @ x", "the transpose of the right one"),
    ("matmul", "return x.t() @ grad_output, grad_output @ y.t()", "It is the gradient for y"),
    ("matmul", "return grad_output * y, grad_output * x", "These are elementwise products"),
    (
        "linear",
        "return grad_output @ weight, grad_output.t() @ x, grad_output.sum(0)",
        "expected 2: one for each input of forward (x, weight)",
    ),
    (
        "linear",
        """
        db = grad_output.sum(0) if len(ctx.needs_input_grad) == 3 else None
        return grad_output @ weight, grad_output.t() @ x, db
        """,
        "which nobody uses. Return None there",
    ),
    (
        "linear",
        "return grad_output @ weight, grad_output.t() @ x, None",
        "its gradient stays None",
    ),
    (
        "linear",
        "return grad_output @ weight, grad_output.t() @ x, grad_output.mean(0)",
        "a mean over 3 taken where a sum is right",
    ),
    (
        "linear",
        "return grad_output @ weight, x.t() @ grad_output, grad_output.sum(0)",
        "shape (4, 5) for weight of shape (5, 4): transposed",
    ),
    ("linear", "return grad_output @ weight, grad_output.t() @ x", "2 gradients, expected 3"),
    (
        "linear",
        """
        db = grad_output if len(ctx.needs_input_grad) == 3 else None
        return grad_output @ weight, grad_output.t() @ x, db
        """,
        "Sum it in backward",
    ),
    (
        "linear",
        """
        needs_x, needs_weight, needs_bias = ctx.needs_input_grad
        return grad_output @ weight, grad_output.t() @ x, grad_output.sum(0)
        """,
        "not enough values to unpack (expected 3, got 2)",
    ),
    ("softmax", "return grad_output * y * (1 - y)", "the diagonal of the Jacobian alone"),
    ("softmax", "return grad_output * y", "the slope of the numerator alone"),
    ("softmax", "return y * (grad_output - (grad_output * y).sum())", "share of the others"),
    ("softmax", "return y * (grad_output - (grad_output * y).sum(1))", "with keepdim=True"),
    ("softmax", "return y * (grad_output - (grad_output * y).sum(0))", "so it goes over dim 1"),
    ("softmax", "return y * (grad_output - grad_output.sum(1, True))", "a factor of its own"),
    (
        "logsumexp",
        "g = grad_output[:, None]\nreturn g * x.exp() / x.exp().sum(1, True)",
        "inf / inf",
    ),
    ("logsumexp", "g = grad_output[:, None]\nreturn g * x.exp() / y.exp()[:, None]", "inf / inf"),
    ("logsumexp", "return grad_output[:, None].expand_as(x)", "the large ones get most of it"),
    ("logsumexp", "return grad_output[:, None] * x.exp()", "The logarithm around it has a slope"),
    ("logsumexp", "return grad_output * (x - y[:, None]).exp()", "given to a column"),
    ("logsumexp", "return (x - y[:, None]).exp()", "does not depend on grad_output"),
    ("row_max", "return grad_output[:, None] * (x == y[:, None])", "they are to share it"),
    (
        "row_max",
        """
        first = x.argmax(1, keepdim=True)
        return torch.zeros_like(x).scatter(1, first, grad_output[:, None])
        """,
        "one of them gets the whole gradient and the others nothing",
    ),
    ("row_max", "return grad_output[:, None].expand_as(x)", "No mask: forward is flat there"),
    ("row_max", "return grad_output * (x == y[:, None])", "given to a column"),
    ("row_max", "return grad_output", "A gradient has its input's shape"),
    ("layer_norm", "return grad_output / std", "Mean and std are taken for constants"),
    ("layer_norm", "return (grad_output - grad_output.mean(1, True)) / std", "std is taken for"),
    (
        "layer_norm",
        "return (grad_output - y * (grad_output * y).mean(1, True)) / std",
        "the mean is taken for a constant",
    ),
    (
        "layer_norm",
        """
        g = grad_output
        return (g - g.sum(1, True) - y * (g * y).sum(1, True)) / std
        """,
        "sums where means belong",
    ),
    (
        "layer_norm",
        """
        g = grad_output
        return (g - g.mean(0, True) - y * (g * y).mean(0, True)) / std
        """,
        "so dim 1",
    ),
    (
        "layer_norm",
        "g = grad_output\nreturn g - g.mean(1, True) - y * (g * y).mean(1, True)",
        "Derive the formula of backward again",
    ),
    ("straight_through", "return torch.zeros_like(grad_output)", "It is zero everywhere"),
    ("straight_through", "return grad_output.clamp(-1, 1)", "This clamps grad_output"),
    ("straight_through", "return 2 * grad_output", "2 times the right one"),
    ("straight_through", "return grad_output.sign()", "linear in grad_output"),
    ("numpy_sort", "return grad_output", "must go back to where the elements of x came from"),
    ("numpy_sort", "return grad_output.gather(1, ctx.order)", "They must go the way back"),
    ("numpy_sort", "return grad_output.sort(1).values", "sorts grad_output by its own size"),
    ("numpy_sort", "return grad_output[ctx.order]", "IndexError in backward"),
    (
        "second_derivative",
        "return grad_output * (ctx.s + x * ctx.s * (1 - ctx.s))",
        "The second derivative is silently wrong",
    ),
    (
        "second_derivative",
        "s = torch.sigmoid(x.detach())\nreturn grad_output * (s + x * s * (1 - s))",
        "The second derivative is silently wrong",
    ),
    ("second_derivative", "return grad_output * ctx.s", "as if s stood still"),
    ("second_derivative", "return grad_output * x * ctx.s * (1 - ctx.s)", "x times the slope of s"),
    ("second_derivative", "return grad_output * ctx.s * (1 - ctx.s)", "the slope of s alone"),
]

IN_PLACE = """
ctx.mark_dirty(x)
x.mul_(torch.where(x > 0, 1.0, 0.1))
ctx.save_for_backward(x)
return x
"""
IN_A_NEW_TENSOR = """
y = x * torch.where(x > 0, 1.0, 0.1)
ctx.save_for_backward(y)
return y
"""
BY_SIGN = "(y,) = ctx.saved_tensors\nreturn grad_output * torch.where(y > 0, 1.0, 0.1)"
WRONG_IN_PLACE = [
    (
        IN_PLACE.replace("ctx.mark_dirty(x)\n", ""),
        BY_SIGN,
        "other numbers. If it is meant to work in place, say so: ctx.mark_dirty(x)",
    ),
    (IN_PLACE.replace("mul_", "mul"), BY_SIGN, "forward no longer computes the formula"),
    (IN_A_NEW_TENSOR, BY_SIGN, "asks you to write them into x"),
    ("ctx.mark_dirty(x)" + IN_A_NEW_TENSOR, BY_SIGN, "must all be outputs of the Function"),
    (IN_PLACE, "return grad_output", "moves only a tenth as fast as x"),
    (IN_PLACE, BY_SIGN.replace("0.1", "0.0"), "the backward of a plain ReLU"),
    (IN_PLACE, BY_SIGN.replace("y > 0", "y < 0"), "The two slopes are exchanged"),
]


@pytest.mark.parametrize(("name", "answer", "words"), WRONG)
def test_a_wrong_answer_is_told_apart(name, answer, words, tmp_path):
    exercise = answered(name, tmp_path, answer)
    verdict = grade(exercise)
    assert not verdict.as_declared
    assert verdict.verdict in ("wrong", "cannot run")
    assert words in " ".join(report(exercise, verdict).split())


@pytest.mark.parametrize(("forward", "backward", "words"), WRONG_IN_PLACE)
def test_a_wrong_in_place_operation_is_told_apart(forward, backward, words, tmp_path):
    exercise = answered("in_place", tmp_path, forward, backward)
    verdict = grade(exercise)
    assert not verdict.as_declared
    assert verdict.verdict in ("wrong", "cannot run")
    assert words in " ".join(report(exercise, verdict).split())


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("softmax", "return y * (grad_output - (grad_output * y).sum())"),
        ("softmax", "return y * (grad_output - (grad_output * y).sum(0))"),
        ("numpy_sort", "return grad_output.gather(1, ctx.order)"),
    ],
)
def test_no_guess_follows_the_sentence_on_a_typical_wrong_answer(name, answer, tmp_path):
    _, numbers = grade(answered(name, tmp_path, answer)).findings
    assert "backward says" in numbers.text
    assert re.search(r"Wrong are \d+ of its \d+ elements\.$", numbers.text)


def test_every_exercise_has_three_wrong_answers_here():
    told = {name: {words for other, _, words in WRONG if other == name} for name in COURSE}
    told["in_place"] = {words for *_, words in WRONG_IN_PLACE}
    assert min(map(len, told.values())) >= 3


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("relu", "return grad_output * (x >= 0)"),
        ("relu", "grad = grad_output.clone()\ngrad[x < 0] = 0\nreturn grad"),
        ("row_sum", "return grad_output[:, None] * torch.ones(ctx.shape).to(grad_output)"),
        (
            "softmax",
            """
            J = torch.diag_embed(y) - y[:, :, None] * y[:, None, :]
            return (grad_output[:, None, :] @ J)[:, 0]
            """,
        ),
        ("logsumexp", "return grad_output[:, None] * torch.softmax(x, 1)"),
        ("numpy_sort", "return grad_output.gather(1, ctx.order.argsort(1))"),
        (
            "linear",
            """
            dx = dw = db = None
            if ctx.needs_input_grad[0]:
                dx = grad_output @ weight
            if ctx.needs_input_grad[1]:
                dw = grad_output.t() @ x
            if len(ctx.needs_input_grad) == 3 and ctx.needs_input_grad[2]:
                db = grad_output.sum(0)
            return dx, dw, db
            """,
        ),
    ],
)
def test_another_right_answer_is_right(name, answer, tmp_path):
    exercise = answered(name, tmp_path, answer)
    verdict = grade(exercise)
    assert verdict.as_declared, report(exercise, verdict)


def test_once_differentiable_is_right_where_no_second_derivative_is_asked_for(tmp_path):
    def refusing(name, body):
        exercise = answered(name, tmp_path, body)
        source = exercise.file.read_text().replace(
            "    @staticmethod\n    def backward",
            "    @staticmethod\n    @torch.autograd.function.once_differentiable\n    def backward",
        )
        exercise.file.write_text(source)
        return exercise

    numpy = """
        back = np.argsort(ctx.order.numpy(), axis=1)
        return torch.from_numpy(np.take_along_axis(grad_output.numpy(), back, axis=1))
    """
    assert grade(refusing("numpy_sort", numpy)).as_declared
    silu = "return grad_output * (ctx.s + x * ctx.s * (1 - ctx.s))"
    exercise = refusing("second_derivative", silu)
    assert "asks for the second too, and it is refused" in grade(exercise).findings[0].text


# ---- What a learner, or a student, may do to the file -------------------------------------------


def edited(folder, old, new):
    exercise = answered("square", folder, "return 2 * grad_output")
    source = exercise.file.read_text()
    assert old in source
    exercise.file.write_text(source.replace(old, new))
    return exercise


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("return x**2", "return 2 * x", "forward no longer computes the formula"),
        ("return x**2", "return x**2, x", "takes 2 positional arguments but 3 were given"),
        ("return x**2", "return x.float() ** 2", "computes in float32"),
        ("return x**2", "x**2", "forward returns no tensor"),
        ("class Square(", "class Cube(", "no torch.autograd.Function named Square"),
        ("    @staticmethod\n    def backward", "    def backward", "backward is not static"),
        (
            "    @staticmethod\n    def forward",
            "    mistake = 'wrong value'\n    @staticmethod\n    def forward",
            "flat at 0 and steep far out",
        ),
        (
            "    @staticmethod\n    def forward",
            "    sample_inputs = staticmethod(lambda: [(torch.ones(1),)])\n"
            "    surrogate = staticmethod(lambda x: 2 * x)\n"
            "    @staticmethod\n    def forward",
            "flat at 0 and steep far out",
        ),
        (
            "import torch\n",
            "import torch\nraise SystemExit(0)\n",
            "It ends the program when the file is run.",
        ),
        ("import torch\n", "import nowhere\n", "ModuleNotFoundError when the file is run"),
        ("return 2 * grad_output", "return 2 * (grad_output", "'(' was never closed"),
    ],
)
def test_no_edit_of_the_file_passes_the_check_or_breaks_it(old, new, words, tmp_path):
    exercise = edited(tmp_path, old, new)
    verdict = grade(exercise)
    assert not verdict.as_declared
    text = report(exercise, verdict)
    assert words in " ".join(text.split())
    assert "/lab/" not in text


def test_a_crash_shows_the_learners_line_alone(tmp_path):
    exercise = answered("square", tmp_path, "return grad_output @ x.t() @ x.t()")
    text = report(exercise, grade(exercise))
    assert f'{exercise.file.name}", line ' in text
    assert "return grad_output @ x.t() @ x.t()" in text
    assert "/lab/" not in text
    assert "gradcheck" not in text


def test_what_pytorch_has_not_implemented_is_no_empty_backward(tmp_path):
    exercise = answered("matmul", tmp_path, "return (x > 0) @ (y > 0), None")
    verdict = grade(exercise)
    assert verdict.verdict == "cannot run"
    assert "NotImplementedError in backward" in verdict.findings[0].text


def test_a_reworked_file_is_read_anew(tmp_path):
    exercise = answered("square", tmp_path, "return 3 * grad_output")
    assert not grade(exercise).as_declared
    source = exercise.file.read_text()
    exercise.file.write_text(source.replace("3 * grad_output", "2*x*grad_output"))
    assert grade(exercise).as_declared

"""Answers as 434 newcomers' tries showed them: none wrong is accepted, none right refused, and no
sentence is untrue. One test for each kind."""

import tomllib
from dataclasses import replace

import pytest
from answers import typed

from lab import HOME
from lab.course.answers import judge
from lab.course.exercise import every_exercise
from lab.course.session import report

COURSE = {exercise.name: exercise for exercise in every_exercise()}
SQUARE = "return 2 * x * grad_output"
IN_PLACE = (
    "ctx.mark_dirty(x)\nx.mul_(torch.where(x > 0, 1.0, 0.1))\nctx.save_for_backward(x)\nreturn x"
)
BY_SIGN = (
    "(y,) = ctx.saved_tensors\nreturn grad_output * torch.where(y > 0, 1.0, 0.1).to(grad_output)"
)
INNER = """
with torch.enable_grad():
    inner = x.detach().requires_grad_()
    y = {}
return torch.autograd.grad(y, inner, grad_output)[0]
"""


def judged(folder, name, *bodies, changes=()):
    """The verdict on an answer, and what the learner reads, in one line."""
    exercise = replace(COURSE[name], file=typed(name, bodies, folder))
    source = exercise.file.read_text()
    for old, new in changes:
        assert old in source
        source = source.replace(old, new)
    exercise.file.write_text(source)
    verdict, _ = judge(exercise, secret=0)
    return verdict, " ".join(report(exercise, verdict).split())


# ---- Wrong, and accepted before -----------------------------------------------------------------

# Exercise, what is typed, the kind of the first finding.
WRONG = {
    "0 / 0 at the kink": ("relu", "return grad_output * x.clamp(min=0) / x", "not finite"),
    "nan at the kink": (
        "relu",
        "return torch.where(x == 0, float('nan'), grad_output * (x > 0))",
        "not finite",
    ),
    "inf at the kink": (
        "relu",
        "return torch.where(x == 0, float('inf'), 1.0) * grad_output * (x >= 0)",
        "not finite",
    ),
    "no slope of either side": ("relu", "return grad_output * ((x > 0) + 5 * (x == 0))", "kink"),
    "divided by an input that is 0": (
        "product",
        "z = x * y\nreturn grad_output * z / x, grad_output * z / y",
        "divided by the input",
    ),
    "0 / 0 inside a formula": (
        "second_derivative",
        "s = torch.nn.functional.silu(x) / x\nreturn grad_output * (s + x * s * (1 - s))",
        "not finite",
    ),
    "nan in a constant row": (
        "layer_norm",
        """
        std = x.var(dim=1, keepdim=True, correction=0).sqrt()
        y = (x - x.mean(dim=1, keepdim=True)) / std
        g = grad_output
        return (g - g.mean(1, True) - y * (g * y).mean(1, True)) / std
        """,
        "eps forgotten",
    ),
    "clipped far out": ("square", "return (grad_output * 2 * x).clamp(-100, 100)", "not linear"),
    "NumPy that refuses by accident": (
        "numpy_sort",
        """
        grad = np.zeros(ctx.order.shape)
        np.put_along_axis(grad, ctx.order.numpy(), grad_output.numpy(), 1)
        return torch.from_numpy(grad).to(grad_output)
        """,
        "second derivative",
    ),
    "NumPy in float32": (
        "numpy_sort",
        """
        grad = np.zeros(ctx.order.shape, dtype=np.float32)
        np.put_along_axis(grad, ctx.order.numpy(), grad_output.numpy(), 1)
        return torch.from_numpy(grad)
        """,
        "second derivative",
    ),
    "no mask": ("relu", "return grad_output", "no mask"),
    "a mask of what is nearly the largest": (
        "row_max",
        """
        near = torch.isclose(x, y[:, None], atol=0.2)
        return grad_output[:, None] * near / near.sum(1, keepdim=True)
        """,
        "wrong value",
    ),
    "a bias averaged, where only needed gradients are computed": (
        "linear",
        """
        gx = gw = gb = None
        if ctx.needs_input_grad[0]:
            gx = grad_output @ weight
        if ctx.needs_input_grad[1]:
            gw = grad_output.t() @ x
        if ctx.needs_input_grad[2]:
            gb = grad_output.mean(0)
        return gx, gw, gb
        """,
        "bias averaged",
    ),
    "a gradient without a graph": ("second_derivative", INNER.format("inner.sigmoid() * inner"),
                                   "second derivative"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_answer_is_refused(case, tmp_path):
    name, body, kind = WRONG[case]
    verdict, _ = judged(tmp_path, name, body)
    assert (verdict.verdict, verdict.kinds[0]) == ("wrong", kind)


def test_no_advice_to_declare_what_is_not_the_answers_to_declare(tmp_path):
    for name, body in {"relu": "return grad_output", "sigmoid": "return None"}.items():
        _, said = judged(tmp_path, name, body)
        assert "declare" not in said


def test_a_fake_that_returns_its_input(tmp_path):
    fake = COURSE["custom_op"].solution.read_text().replace("torch.empty_like(x)", "x")
    file = tmp_path / COURSE["custom_op"].file.name
    file.write_text(fake.replace('f"solutions::smooth_abs_{secrets.token_hex(8)}"', '"alias::f"'))
    verdict, _ = judge(replace(COURSE["custom_op"], file=file), secret=0)
    assert verdict.kinds == ["wrong fake"]


@pytest.mark.parametrize(
    "marked", ["ctx.mark_dirty()", "ctx.mark_dirty", "if False: ctx.mark_dirty(x)"]
)
def test_mark_dirty_must_really_be_done(marked, tmp_path):
    forward = IN_PLACE.replace("ctx.mark_dirty(x)", marked)
    verdict, said = judged(tmp_path, "in_place", forward, BY_SIGN)
    assert verdict.verdict == "wrong"
    assert "ctx.mark_dirty(x)" in said


def test_a_forward_that_was_changed_to_fit_the_backward(tmp_path):
    changes = [("return x.clamp(min=0)", "return x * 1")]
    verdict, said = judged(tmp_path, "relu", "return grad_output", changes=changes)
    assert verdict.kinds == ["another forward"]
    assert "element [0, 0] of the result is -2, expected 0" in said


@pytest.mark.parametrize(
    "above",
    [
        "mistake = 'no mask'",
        "sample_inputs = staticmethod(lambda: [(torch.ones(1),)])",
        "surrogate = staticmethod(lambda x: x)",
    ],
)
def test_nobody_sets_their_own_test(above, tmp_path):
    in_the_class = (
        "    @staticmethod\n    def forward",
        f"    {above}\n\n    @staticmethod\n    def forward",
    )
    base = f"class Base(torch.autograd.Function):\n    {above}\n\n\nclass ReLU(Base):"
    in_a_base = ("class ReLU(torch.autograd.Function):", base)
    for change in (in_the_class, in_a_base):
        verdict, _ = judged(tmp_path, "relu", "return grad_output", changes=[change])
        assert verdict.kinds[0] == "no mask"
        assert not verdict.as_declared


# ---- Right, and refused before ------------------------------------------------------------------

LOOP = """
grad = torch.{}
for i in range(grad.shape[0]):
    for j in range(grad.shape[1]):
        grad[i, j] = {}
return grad
"""
FLOAT32 = {
    "a loop into zeros": ("row_sum", LOOP.format("zeros(ctx.shape)", "grad_output[i]")),
    "a slice of zeros": (
        "row_sum",
        "grad = torch.zeros(ctx.shape)\ngrad[:] = grad_output[:, None]\nreturn grad",
    ),
    "empty": ("row_sum", LOOP.format("empty(ctx.shape)", "grad_output[i]")),
    "two loops": (
        "matmul",
        """
        grad_x, grad_y = torch.zeros(x.shape), torch.zeros(y.shape)
        for i in range(x.shape[0]):
            for j in range(y.shape[1]):
                grad_x[i] += grad_output[i, j] * y[:, j]
                grad_y[:, j] += grad_output[i, j] * x[i]
        return grad_x, grad_y
        """,
    ),
    "shared ties": (
        "row_max",
        LOOP.format("zeros(x.shape)", "grad_output[i] * (x[i, j] == y[i]) / (x[i] == y[i]).sum()"),
    ),
    "float()": ("square", "return (grad_output * 2 * x).float()"),
    "a mask and float()": (
        "relu",
        "grad = torch.zeros(x.shape)\ngrad[x > 0] = grad_output[x > 0].float()\nreturn grad",
    ),
    "a mask, which raises in float64": (
        "relu",
        "grad = torch.zeros(x.shape)\ngrad[x > 0] = grad_output[x > 0]\nreturn grad",
    ),
    "scatter, which raises in float64": (
        "numpy_sort",
        "return torch.zeros(ctx.order.shape).scatter(1, ctx.order, grad_output)",
    ),
    "a loop that raises in float64": (
        "numpy_sort",
        """
        grad = torch.zeros(ctx.order.shape)
        for i in range(len(grad)):
            grad[i, ctx.order[i]] = grad_output[i]
        return grad
        """,
    ),
}


@pytest.mark.parametrize("case", FLOAT32)
def test_what_is_right_in_float32_is_solved_with_a_remark(case, tmp_path):
    verdict, said = judged(tmp_path, *FLOAT32[case])
    assert verdict.as_declared
    assert "right in float32" in said
    assert "second derivative" not in said


def test_what_is_wrong_in_float32_too_stays_wrong(tmp_path):
    body = LOOP.format("zeros(ctx.shape)", "2 * grad_output[i]")
    verdict, _ = judged(tmp_path, "row_sum", body)
    assert verdict.verdict == "wrong"


SECOND = {
    "detach": "return (grad_output * 2 * x).detach()",
    "NumPy": "return torch.from_numpy((grad_output * 2 * x).detach().numpy())",
    "a list": "return torch.tensor((grad_output * 2 * x).tolist(), dtype=x.dtype)",
    "autograd without create_graph": INNER.format("inner**2"),
}


@pytest.mark.parametrize("body", SECOND.values(), ids=SECOND)
def test_a_wrong_second_derivative_is_a_remark_where_it_is_not_asked_for(body, tmp_path):
    verdict, said = judged(tmp_path, "square", body)
    assert verdict.as_declared
    assert "does not ask for a second derivative" in said


def test_a_saved_intermediate_is_right_to_first_order(tmp_path):
    changes = [("save_for_backward(x)", "save_for_backward(2 * x)")]
    assert judged(tmp_path, "square", "return x * grad_output", changes=changes)[0].as_declared


def test_numpy_without_detach_is_right_for_two_inputs_too(tmp_path):
    body = "return tuple(torch.from_numpy(grad_output.numpy() * a.numpy()) for a in (y, x))"
    assert judged(tmp_path, "product", body)[0].as_declared


# ---- Sentences that were untrue, or of no help --------------------------------------------------

CLIPPED = "return (grad_output * 2 * x)"
# Exercise, what is typed, words that the learner reads, words that would be untrue.
SAID = {
    "clipped": ("square", f"{CLIPPED}.clamp(-1, 1)", "not linear", "does not depend"),
    "clipped far out": ("square", f"{CLIPPED}.clamp(-100, 100)", "not linear", "mask"),
    "an offset": ("square", "return grad_output * 2 * x + 1e-3", "something is added", "factor"),
    "a small offset": ("square", "return grad_output * 2 * x + 5e-5", "added", "not multiplied"),
    "a difference": (
        "square",
        "h = 0.01\nreturn grad_output * ((x + h)**2 - x**2) / h",
        "numerical gradient",
        "factor",
    ),
    "overflow": (
        "logsumexp",
        "return grad_output[:, None] * (x.exp() / y.exp()[:, None]).nan_to_num()",
        "overflow",
        "zero everywhere",
    ),
    "a gradient for a bias that is left out": (
        "linear",
        "return grad_output @ weight, grad_output.t() @ x, grad_output.sum(0)",
        "bias",
        "expected 2",
    ),
    "a mask written into x": (
        "relu",
        "x[x <= 0] = 0\nx[x > 0] = 1\nreturn grad_output * x",
        "modifies x in place",
        "value of y",
    ),
    "a leak": (
        "relu",
        "return torch.where(x > 0, grad_output, 0.01 * grad_output)",
        "leaky",
        "mask is missing",
    ),
    "autograd inside": (
        "second_derivative",
        INNER.format("inner.sigmoid() * inner"),
        "second derivative",
        "Forward computed ctx.s",
    ),
    "no return": ("square", "grad = grad_output * 2 * x", "`return`", "zero everywhere"),
    "pass": ("square", "pass", "`return`", "zero everywhere"),
    "*= on x": ("square", "x *= 2\nreturn grad_output * x", "`*=`", "underscore"),
    "*= on grad_output": ("square", "grad_output *= 2\nreturn grad_output", "`*=`", "underscore"),
    "a comparison along the columns": (
        "row_max",
        "return grad_output[:, None] * (x == y)",
        "columns",
        "zero everywhere",
    ),
    "y along the columns": (
        "logsumexp",
        "return grad_output[:, None] * (x - y).exp()",
        "columns",
        "Derive",
    ),
    "the Jacobian": (
        "softmax",
        "return torch.diag_embed(y) - y[:, :, None] * y[:, None, :]",
        "shape (2, 4, 4)",
        "grad_output",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SAID)
def test_what_is_said_is_true_and_of_help(case, tmp_path):
    name, body, words, untrue = SAID[case]
    verdict, said = judged(tmp_path, name, body)
    assert not verdict.as_declared
    assert words in said
    assert untrue not in said


# What is changed in the file of `square`, and words that the learner reads.
CHANGED = {
    "no comma": ("(x,) = ctx", "x = ctx", "saved_tensors is a tuple"),
    "nothing saved": ("ctx.save_for_backward(x)", "pass", "saved 0 tensors"),
    "no ctx": ("backward(ctx, grad_output: Tensor)", "backward(grad_output)", "ctx"),
    "a Module": ("torch.autograd.Function", "torch.nn.Module", "Square is a Module"),
    "another name": ("class Square", "class Cube", "no torch.autograd.Function named Square"),
    "no return in forward": ("return x**2", "x**2", "`return` missing"),
    "another formula": ("return x**2", "return x**3", "of the result is -3.375, expected 2.25"),
    "float32": ("return x**2", "return x.float() ** 2", "torch.float32"),
    "a syntax error": ("Function):", "Function", "never closed"),
}


@pytest.mark.parametrize("case", CHANGED)
def test_what_is_said_of_a_changed_file(case, tmp_path):
    old, new, words = CHANGED[case]
    verdict, said = judged(tmp_path, "square", SQUARE, changes=[(old, new)])
    assert not verdict.as_declared
    assert words in said


def test_decorators_in_the_wrong_order_are_named_as_that(tmp_path):
    once = "    @torch.autograd.function.once_differentiable\n    @staticmethod\n    def backward"
    _, said = judged(
        tmp_path, "square", SQUARE, changes=[("    @staticmethod\n    def backward", once)]
    )
    assert "wrong order" in said
    assert "not static" not in said


def test_a_second_output_is_named_as_that(tmp_path):
    changes = [
        ("return x * ctx.s", "ctx.save_for_backward(x, ctx.s)\n        return x * ctx.s, ctx.s"),
        ("(x,) = ctx", "x, s = ctx"),
        ("grad_output: Tensor)", "grad_output, grad_s)"),
    ]
    body = "return grad_output * (s + x * s * (1 - s)) + grad_s * s * (1 - s)"
    _, said = judged(tmp_path, "second_derivative", body, changes=changes)
    assert "returns 2 values, expected 1" in said


def test_every_message_is_said_somewhere():
    folder = HOME / "lab/course"
    words = tomllib.loads((folder / "words.toml").read_text("utf-8"))
    code = (folder / "answers.py").read_text("utf-8")
    assert [key for key in words if f'"{key}"' not in code] == []

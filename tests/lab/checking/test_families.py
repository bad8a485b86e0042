"""Functions of every kind that PyTorch takes, and the mistakes that people make in them.

Each stands for a family. The tests assert the verdict, the kind of the finding, and a fact of the
text: a name, a number, what to write.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch.autograd.function import once_differentiable

from lab.checking import check
from lab.checking.check import check_function
from lab.checking.targets import find_functions

CHECKING = Path(check.__file__).parent
Function = torch.autograd.Function


def function(forward, backward, **declared):
    """A Function made of its two methods."""
    methods = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("Learner", (Function,), methods | declared)


def saving(formula):
    """A forward of two inputs x and y that saves both."""

    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return formula(x, y)

    return forward


def one(formula):
    """A forward of one input x that saves it."""

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return formula(x)

    return forward


def x_of(ctx):
    return ctx.saved_tensors[0]


def samples(*cases):
    return staticmethod(lambda: list(cases))


def text_of(verdict):
    return " ".join([*(finding.text for finding in verdict.findings), *verdict.notes])


# ---- Right Functions of every kind --------------------------------------------------------------


@dataclass
class Doubler:
    factor: float = 2.0


def doubled(ctx, x):
    return x * Doubler().factor


class WithClassMethods(Function):
    @classmethod
    def forward(cls, ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @classmethod
    def backward(cls, ctx, grad):
        return grad * x_of(ctx).cos()


class WithoutDecorators(Function):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    def backward(ctx, grad):
        return grad * x_of(ctx).cos()


def drop(ctx, x):
    mask = (torch.rand_like(x) > 0.4) / 0.6
    ctx.save_for_backward(mask)
    return x * mask


def lookup(ctx, index, table):
    ctx.save_for_backward(index)
    ctx.shape = table.shape
    return table[index]


def lookup_backward(ctx, grad):
    return None, grad.new_zeros(ctx.shape).index_add(0, x_of(ctx), grad)


def sparse_backward(ctx, grad):
    return None, torch.sparse_coo_tensor(x_of(ctx)[None], grad, ctx.shape)


def only_float32(ctx, x):
    if x.dtype != torch.float32:
        raise TypeError("expected float32")
    ctx.save_for_backward(x)
    return x.sin()


def with_a_count(ctx, x):
    ctx.save_for_backward(x)
    return x.sin(), x.numel(), None


def with_a_float_mask(ctx, x):
    over = (x > 0.2).to(x.dtype)
    ctx.mark_non_differentiable(over)
    ctx.save_for_backward(over)
    return x * over, over


def frees(ctx, grad):
    slope = ctx.slope
    del ctx.slope
    return grad * slope


def keeps_slope(ctx, x):
    ctx.slope = x.cos()
    return x.sin()


def cosine(ctx, grad, *others):
    return grad * x_of(ctx).cos()


def scaled(ctx, x, alpha):
    ctx.alpha = alpha
    return x * alpha


RIGHT = {
    "class methods": WithClassMethods,
    "missing decorators": WithoutDecorators,
    "a dataclass": function(doubled, lambda ctx, grad: 2 * grad),
    "randomness in forward": function(drop, lambda ctx, grad: grad * x_of(ctx)),
    "an index": function(lookup, lookup_backward),
    "a sparse gradient": function(
        lookup, sparse_backward, sample_inputs=samples((torch.tensor([1, 3, 1]), torch.randn(4, 2)))
    ),
    "float32 alone": function(only_float32, cosine),
    "float32 inside": function(one(lambda x: x.float().sin().to(x.dtype)), cosine),
    "outputs that are no tensors": function(with_a_count, cosine),
    "an output that is not differentiable": function(
        with_a_float_mask, lambda ctx, grad, _: grad * x_of(ctx)
    ),
    "buffers freed in backward": function(keeps_slope, once_differentiable(frees)),
    "a number without annotation": function(
        scaled, lambda ctx, grad: (grad * ctx.alpha, None)
    ),
    "complex inputs": function(
        saving(lambda x, y: x * y),
        lambda ctx, grad: (grad * ctx.saved_tensors[1].conj(), grad * ctx.saved_tensors[0].conj()),
        sample_inputs=samples((torch.randn(3, dtype=torch.cfloat),) * 2),
    ),
    "a list beside the tensor": function(
        lambda ctx, x, sizes: x.reshape(sizes),
        lambda ctx, grad: (grad.reshape(6), None),
        sample_inputs=samples((torch.randn(6), [2, 3])),
    ),
    "no gradient, declared": function(
        saving(lambda x, start: (x - start).sin()),
        lambda ctx, grad: (grad * (x_of(ctx) - ctx.saved_tensors[1]).cos(), None),
        no_gradient=("y",),
        sample_inputs=samples((torch.randn(3), torch.randn(3))),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_right_functions_are_exact(name):
    verdict = check_function(RIGHT[name])
    assert verdict.verdict == "exact", verdict.report()
    assert verdict.as_declared


@pytest.mark.parametrize(
    ("name", "fact"),
    [
        ("missing decorators", "forward has no @staticmethod"),
        ("float32 alone", "takes only float32"),
        ("float32 inside", "computes in float32"),
        ("buffers freed in backward", "runs only once"),
    ],
)
def test_what_is_odd_and_not_wrong_is_a_note(name, fact):
    assert fact in text_of(check_function(RIGHT[name]))


def test_a_custom_operator_is_checked_like_any_callable():
    @torch.library.custom_op("tests::sine", mutates_args=())
    def sine(x: torch.Tensor) -> torch.Tensor:
        return x.sin()

    sine.register_autograd(
        lambda ctx, grad: grad * x_of(ctx).cos(),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
    )
    assert check_function(sine).verdict == "exact"


def test_private_and_nested_names_are_found(tmp_path):
    source = """
import torch

class _Cube(torch.autograd.Function):
    pass

class Layer(torch.nn.Module):
    class Inner(torch.autograd.Function):
        pass
"""
    (tmp_path / "names.py").write_text(source)
    found = find_functions(str(tmp_path / "names.py"))
    assert [function.__name__ for function in found] == ["_Cube", "Inner"]


# ---- Arguments that get no gradient -------------------------------------------------------------


def test_a_mask_of_0_and_1_without_a_gradient_is_a_note():
    learner = function(
        saving(lambda x, keep: x * keep),
        lambda ctx, grad: (grad * ctx.saved_tensors[1], None),
        sample_inputs=samples((torch.randn(2, 2), torch.tensor([[1.0, 0.0], [0.0, 1.0]]))),
    )
    verdict = check_function(learner)
    assert verdict.words == "exact for x"
    assert 'no_gradient = ("y",)' in verdict.notes[0]


def test_none_for_an_input_that_matters_is_wrong():
    learner = function(
        saving(lambda x, y: x * y),
        lambda ctx, grad: (grad * ctx.saved_tensors[1], None),
        sample_inputs=samples((torch.randn(3), torch.randn(3))),
    )
    verdict = check_function(learner)
    assert verdict.kinds == ["no gradient"]
    assert "None for y" in text_of(verdict)


def test_a_module_among_the_arguments_gets_no_gradient():
    def forward(ctx, x, layer):
        ctx.layer = layer
        return layer(x)

    learner = function(
        forward,
        lambda ctx, grad: (grad @ ctx.layer.weight, None),
        sample_inputs=samples((torch.randn(2, 3), torch.nn.Linear(3, 4))),
    )
    verdict = check_function(learner)
    assert verdict.words == "exact for x"
    assert "layer.weight" in verdict.notes[0]


# ---- Mistakes, each of its family ---------------------------------------------------------------


def linear(ctx, x, weight, bias=None):
    ctx.save_for_backward(x, weight)
    ctx.has_bias = bias is not None
    y = x @ weight.T
    return y if bias is None else y + bias


def linear_wrong_bias(ctx, grad):
    x, weight = ctx.saved_tensors
    return grad @ weight, grad.T @ x, grad.sum(1) if ctx.has_bias else None


def clamped(ctx, x, low: float, high: float):
    return x.clamp(low, high)


def leaky(ctx, x, slope=0.2):
    ctx.save_for_backward(x)
    return torch.where(x > 0, x, slope * x)


def leaky_from_output(ctx, x, slope):
    y = torch.where(x > 0, x, slope * x)
    ctx.slope = slope
    ctx.save_for_backward(y)
    return y


def sorted_rows(ctx, x):
    values, order = x.sort(-1)
    ctx.save_for_backward(order)
    return values


def edits(ctx, x):
    return x.abs_().sqrt()


def edits_and_saves(ctx, x):
    x.abs_()
    ctx.save_for_backward(x)
    return x * x


def overwrites(ctx, grad):
    table = grad.new_zeros(ctx.shape)
    table[x_of(ctx)] = grad
    return None, table


def relu_times(ctx, x, y):
    ctx.save_for_backward(x, y)
    return x.clamp(min=0) * y


def relu_times_wrong_alone(ctx, grad):
    x, y = ctx.saved_tensors
    return grad * y * (x > 0), grad * x.clamp(min=0) * (1 if ctx.needs_input_grad[0] else 3)


def row_max(ctx, x):
    y = x.amax(1)
    ctx.save_for_backward(x, y)
    return y


def row_max_each_tie(ctx, grad):
    x, y = ctx.saved_tensors
    return grad[:, None] * (x == y[:, None])


def two_outputs(ctx, x):
    ctx.save_for_backward(x)
    return x.sin(), x.cos()


def keeps_its_output(ctx, x):
    ctx.y = x.exp()
    return ctx.y


class WithFloatState(Function):
    @staticmethod
    def forward(ctx, x, slope):
        WithFloatState.slope = slope
        return x * slope

    @staticmethod
    def backward(ctx, grad):
        return grad * WithFloatState.slope, None

    sample_inputs = samples((torch.randn(3), 0.5))


class WrongJvp(Function):
    @staticmethod
    def forward(x):
        return x.sin()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    backward = staticmethod(cosine)

    @staticmethod
    def jvp(ctx, tangent):
        return x_of(ctx).cos()


ROW = torch.tensor([-2.0, -0.5, 0.3, 1.2, -1.1, 2.0])
RELU = one(lambda x: x.clamp(min=0))
WRONG = {
    "float32 gradient": (
        function(one(torch.square), lambda ctx, g: (2 * x_of(ctx) * g).float()),
        "dtype", "float32"),
    "bias over the wrong dimension": (
        function(linear, linear_wrong_bias), "shape", "for bias"),
    "zero times grad_output": (
        function(clamped, lambda ctx, g: (0 * g, None, None)), "all zero", "low 0.3, high 1.4"),
    "keyword argument": (
        function(leaky, lambda ctx, g: torch.where(x_of(ctx) > 0, g, 0.2 * g)),
        "number of gradients", "(x, slope)"),
    "mask from the output": (
        function(leaky_from_output,
                 lambda ctx, g: (torch.where(x_of(ctx) > 0, g, ctx.slope * g), None),
                 sample_inputs=samples((ROW, 0.3), (ROW, -2.0))),
        "mask from the output", "slope -2.0"),
    "mask from grad_output": (
        function(RELU, lambda ctx, g: g.clamp(min=0)), "not linear", "not from grad_output"),
    "gather for scatter": (
        function(sorted_rows, lambda ctx, g: g.gather(-1, x_of(ctx))), "wrong value", "of undone"),
    "forward edits its input": (
        function(edits, lambda ctx, g: g), "edits input", "mark_dirty(x)"),
    "forward edits what it saves": (
        function(edits_and_saves, lambda ctx, g: 2 * x_of(ctx) * g), "edits input", "forward"),
    "repeated index": (
        function(lookup, overwrites,
                 sample_inputs=samples((torch.tensor([2, 0, 2]), torch.randn(4, 2)))),
        "repeated index", "index [2, 0, 2]"),
    "a kink hides nothing": (
        function(relu_times, relu_times_wrong_alone,
                 sample_inputs=samples((torch.tensor([-1.0, 0.0, 2.0]), torch.randn(3)))),
        "needs_input_grad", "where only y needs"),
    "no factor": (
        function(one(torch.tanh),
                 lambda ctx, g: g * (1 - x_of(ctx).tanh() ** 2) * (1 + 0.01 * x_of(ctx).cos())),
        "wrong value", "numerical gradient"),
    "two thirds": (
        function(one(torch.square), lambda ctx, g: 4 / 3 * x_of(ctx) * g),
        "constant factor", "2/3 times"),
    "the same gradient twice": (
        function(saving(lambda x, y: x * y), lambda ctx, g: (g * ctx.saved_tensors[1],) * 2,
                 sample_inputs=samples((torch.randn(4), torch.randn(4)))),
        "wrong value", "equal to the correct gradient for x"),
    "flat forward": (
        function(one(torch.round), lambda ctx, g: g), "flat forward", "surrogate"),
    "gradient reversal": (
        function(one(lambda x: x.clone()), lambda ctx, g: -g), "constant factor", "surrogate"),
    "scalar loss": (
        function(saving(lambda x, y: (x - y).square().sum()),
                 lambda ctx, g: (2 * (x_of(ctx) - ctx.saved_tensors[1]),
                                 2 * (ctx.saved_tensors[1] - x_of(ctx))),
                 sample_inputs=samples((torch.randn(4), torch.randn(4)))),
        "ignores grad_output", "does not depend on grad_output"),
    "nan at zero": (
        function(one(torch.abs), lambda ctx, g: g * x_of(ctx) / x_of(ctx).abs()),
        "not finite", "all of x = 0"),
    "nan far from zero": (
        function(one(torch.sigmoid),
                 lambda ctx, g: g * (-x_of(ctx)).exp() / (1 + (-x_of(ctx)).exp()) ** 2),
        "not finite", "in float32"),
    "no slope of the kink": (
        function(RELU, lambda ctx, g: g * ((x_of(ctx) > 0) + 4.0 * (x_of(ctx) == 0))),
        "kink", "gives 4"),
    "ties": (function(row_max, row_max_each_tie), "ties", "add up to 7"),
    "clipped late": (
        function(one(torch.square), lambda ctx, g: (2 * x_of(ctx) * g).clamp(-1e4, 1e4)),
        "not linear", "do not clip"),
    "conj": (
        function(one(torch.square), lambda ctx, g: 2 * x_of(ctx) * g,
                 sample_inputs=samples((torch.randn(3, dtype=torch.cdouble),))),
        "no conj", "conjugate"),
    "jvp": (WrongJvp, "jvp", "multiply it by the tangent"),
    "state on the class": (WithFloatState, "shared state", "Keep it on ctx"),
    "memory": (
        function(keeps_its_output, lambda ctx, g: g * ctx.y), "memory", "save_for_backward"),
    "outputs that overwrite each other": (
        function(two_outputs, lambda ctx, g, h: -h * x_of(ctx).sin() if h.any()
                 else g * x_of(ctx).cos()),
        "wrong value", "several outputs"),
    "constant": (
        function(lambda ctx, x: torch.ones_like(x), lambda ctx, g: 0 * g,
                 sample_inputs=samples((torch.randn(3),))),
        "constant forward", "nothing was checked"),
    "a gradient for a number": (
        function(scaled, lambda ctx, g: (g * ctx.alpha, g),
                 sample_inputs=samples((torch.ones(2), 2.0))),
        "gradient for a number", "alpha"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_functions_are_found_for_their_reason(name):
    learner, kind, fact = WRONG[name]
    verdict = check_function(learner)
    assert (verdict.verdict, verdict.kinds[:1]) == ("wrong", [kind]), verdict.report()
    assert fact in text_of(verdict)


def test_without_a_cause_three_elements_are_shown():
    learner = function(one(torch.tanh), lambda ctx, g: g * (1 - x_of(ctx) ** 2))
    (finding,) = check_function(learner).findings
    assert len(finding.table.splitlines()) == 4
    assert finding.table.split()[:3] == ["input", "grad_output", "your"]


def test_complex_inputs_that_nobody_declared_are_a_note():
    learner = function(
        saving(lambda x, y: x * y),
        lambda ctx, g: (g * ctx.saved_tensors[1], g * ctx.saved_tensors[0]),
        sample_inputs=samples((torch.randn(3), torch.randn(3))),
    )
    assert check_function(learner).notes == []
    verdict = check_function(function(one(torch.square), lambda ctx, g: 2 * x_of(ctx) * g))
    assert verdict.verdict == "exact"
    assert "conj is missing" in text_of(verdict)


# ---- Slips that PyTorch answers with a riddle ---------------------------------------------------


def missing_comma(ctx, grad):
    x = ctx.saved_tensors
    return grad * 2 * x


def nothing_saved(ctx, grad):
    (x,) = ctx.saved_tensors
    return grad * 2 * x


def no_enable_grad(ctx, grad):
    x = x_of(ctx).detach().requires_grad_()
    return torch.autograd.grad(x.square(), x, grad)[0]


def not_materialized(ctx, x):
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(x)
    return x.sin(), x.cos()


class LayerWithBackward(torch.nn.Module):
    def backward(self, grad):
        return grad


SQUARE = one(torch.square)
SLIPS = {
    "no comma": (function(SQUARE, missing_comma), "(x,) ="),
    "nothing saved": (function(lambda ctx, x: x * x, nothing_saved), "saved 0 tensors"),
    "nothing recorded": (function(SQUARE, no_enable_grad), "torch.enable_grad()"),
    "None for an unused output": (
        function(not_materialized, lambda ctx, g, h: g * x_of(ctx).cos() - h * x_of(ctx).sin()),
        "Test for None"),
    "a list": (function(SQUARE, lambda ctx, g: [2 * x_of(ctx) * g]), "returns a list"),
    "a tuple of tensors": (
        function(lambda ctx, parts: sum(part.sum() for part in parts), lambda ctx, g: None,
                 sample_inputs=samples(((torch.randn(3), torch.randn(2)),))),
        "forward(ctx, *parts)"),
    "no return in backward": (function(SQUARE, lambda ctx, g: None), "`return` of backward"),
    "no return in forward": (
        function(lambda ctx, x: None, lambda ctx, g: g, sample_inputs=samples((torch.ones(2),))),
        "forward returns None"),
    "arguments of backward": (function(SQUARE, lambda grad: grad), "ctx being the first"),
    "a Module": (LayerWithBackward, "never calls the backward of a Module"),
    "another dtype": (
        function(SQUARE, lambda ctx, g: torch.zeros(5, 7).scatter(0, torch.zeros(5, 7).long(), g)),
        "float64"),
}  # fmt: skip


@pytest.mark.parametrize("name", SLIPS)
def test_slips_get_their_sentence(name):
    target, fact = SLIPS[name]
    verdict = check_function(target)
    assert not verdict.right
    assert fact in text_of(verdict)


def test_decorators_in_the_wrong_order_are_a_note():
    class Learner(Function):
        forward = staticmethod(SQUARE)
        backward = once_differentiable(staticmethod(lambda ctx, g: 2 * x_of(ctx) * g))

    assert "@staticmethod belongs above" in text_of(check_function(Learner))


def test_what_was_tried_is_said_with_samples_to_paste():
    learner = function(lambda ctx, x, graph: graph.nodes() * x, lambda ctx, g: (g, None))
    verdict = check_function(learner)
    assert (verdict.verdict, verdict.kinds) == ("cannot run", ["no inputs found"])
    assert "x a float tensor, graph a float tensor" in text_of(verdict)
    assert "return [(torch.randn(5, 7), torch.randn(5, 7),)]  # x, graph" in text_of(verdict)


# ---- Deliberate things, and the notebook --------------------------------------------------------


def test_a_rule_of_no_function_is_checked_for_shape_and_linearity_alone():
    declared = {"surrogate": True}
    assert check_function(function(one(torch.round), lambda ctx, g: g, **declared)).as_declared
    wrong = check_function(function(one(torch.round), lambda ctx, g: g**2, **declared))
    assert wrong.kinds == ["not linear"]


def test_sample_inputs_may_be_given_to_the_check():
    given = [(torch.randn(4),)]
    verdict = check_function(
        function(SQUARE, lambda ctx, g: 2 * x_of(ctx) * g), sample_inputs=given
    )
    assert verdict.inputs == ["x (4,)"]


def test_a_notebook_shows_the_report():
    verdict = check_function(function(SQUARE, lambda ctx, g: g))
    assert repr(verdict) == verdict.report()
    assert verdict._repr_markdown_() == f"```text\n{verdict.report()}\n```"


@pytest.mark.slow  # torch.compile takes seconds
def test_compile_says_whether_the_backward_is_kept():
    from functions import SignSTE, Template

    assert "keeps this backward" in text_of(check_function(Template, compiled=True))
    assert "does not use this backward" in text_of(check_function(SignSTE, compiled=True))


# ---- What it is tried on, without declared samples -----------------------------------------------


def kinds_and_inputs(forward, backward, **declared):
    verdict = check_function(function(forward, backward, **declared))
    return verdict.verdict, verdict.kinds, " | ".join(verdict.inputs)


def pooled(ctx, x, reduction="mean"):
    ctx.size, ctx.reduction = x.shape, reduction
    if reduction == "sum":
        return x.sum()
    return x.mean()


def pooled_backward(ctx, g):
    return g.expand(ctx.size) / ctx.size.numel(), None


def test_a_string_is_tried_with_the_words_that_forward_compares():
    verdict, kinds, inputs = kinds_and_inputs(pooled, pooled_backward)
    assert (verdict, kinds) == ("wrong", ["constant factor"]) or kinds == ["wrong value"]
    assert "reduction sum" in inputs


def product(ctx, a, b, transpose=False):
    ctx.save_for_backward(a, b)
    ctx.transpose = transpose
    return a @ (b.t() if transpose else b)


def product_backward(ctx, g):
    a, b = ctx.saved_tensors
    if ctx.transpose:
        return g @ b, a.t() @ g, None  # the second lacks a transpose
    return g @ b.t(), a.t() @ g, None


def test_a_flag_that_asks_for_other_shapes_is_tried_too():
    verdict, kinds, inputs = kinds_and_inputs(product, product_backward)
    assert (verdict, kinds[:1]) == ("wrong", ["transposed"])
    assert inputs.endswith("transpose True")


def trilinear(ctx, x, weight, y):
    ctx.save_for_backward(x, weight, y)
    return torch.einsum("bi,oij,bj->bo", x, weight, y)


def trilinear_backward(ctx, g):
    x, weight, y = ctx.saved_tensors
    return (
        torch.einsum("bo,oij,bj->bi", g, weight, y),
        torch.einsum("bo,bi,bj->oij", g, x, y),
        torch.einsum("bo,oij,bi->bj", g, weight, x),
    )


def test_the_equation_of_einsum_says_the_shapes():
    verdict, _, inputs = kinds_and_inputs(trilinear, trilinear_backward)
    assert verdict == "exact"
    assert "weight (2, 7, 3)" in inputs or "weight (4, 7, 3)" in inputs


def cholesky(ctx, a, b):
    x = torch.cholesky_solve(b[:, None], torch.linalg.cholesky((a + a.mT) / 2))[:, 0]
    ctx.save_for_backward(x)
    return b @ x


def cholesky_backward(ctx, g):
    x = x_of(ctx)
    return -g * torch.outer(x, x), 2 * g * x


def test_a_matrix_that_must_be_definite_is_found():
    verdict, _, inputs = kinds_and_inputs(cholesky, once_differentiable(cholesky_backward))
    assert verdict == "exact"
    assert "a (5, 5), b (5,)" in inputs


def test_what_is_guessed_is_called_a_guess():
    wrong = function(saving(lambda x, y: x * y), lambda ctx, g: (g * ctx.saved_tensors[1], g))
    assert "guesses" in " ".join(check_function(wrong).notes)
    declared = check_function(wrong, sample_inputs=[(torch.rand(3), torch.rand(3))])
    assert "guesses" not in " ".join(declared.notes)


# ---- What is no fault, and what is one elsewhere -------------------------------------------------


def atan2_backward(ctx, g):
    y, x = ctx.saved_tensors
    square = x * x + y * y
    return g * x / square, -g * y / square


def test_nan_where_forward_is_not_continuous_is_no_fault():
    assert check_function(function(saving(torch.atan2), atan2_backward)).verdict == "exact"


def test_nan_where_forward_is_continuous_is_one():
    hypot = function(
        saving(torch.hypot),
        lambda ctx, g: tuple(
            g * arg / ctx.saved_tensors[0].hypot(ctx.saved_tensors[1]) for arg in ctx.saved_tensors
        ),
    )
    assert check_function(hypot).kinds == ["not finite"]


def sinc_backward(ctx, g):
    x = x_of(ctx)
    slope = (torch.cos(x) * x - torch.sin(x)) / x**2
    return g * torch.where(x.abs() < 1e-4, torch.ones_like(x), slope)  # at 0 the slope is 0


def test_a_wrong_value_at_zero_alone_is_found():
    sinc = function(one(lambda x: torch.where(x == 0, 1.0, x.sin() / x)), sinc_backward)
    verdict = check_function(sinc)
    assert verdict.kinds == ["wrong value"]
    assert "= 0 backward gives 1" in verdict.findings[0].text


def test_a_gradient_shared_out_between_two_triangles_is_right_for_symmetric_matrices():
    def eigenvalues_backward(ctx, g):
        vectors = torch.linalg.eigh(x_of(ctx))[1]
        return vectors @ torch.diag(g) @ vectors.mT

    root = torch.randn(4, 4, generator=torch.Generator().manual_seed(0))
    learner = function(
        one(lambda x: torch.linalg.eigh(x)[0]),
        once_differentiable(eigenvalues_backward),
        sample_inputs=samples((root + root.mT,)),
    )
    verdict = check_function(learner)
    assert verdict.verdict == "exact"
    assert "keep the matrix symmetric" in text_of(verdict)


def test_finite_differences_call_forward_as_backward_is_called():
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin() if ctx.needs_input_grad[0] else x.detach() * 0

    assert check_function(function(forward, lambda ctx, g: g * x_of(ctx).cos())).verdict == "exact"


def test_rounding_of_a_small_step_is_no_fault():
    shift = 1e5
    forward = one(lambda x: (x + shift).square() - 2 * shift * x)
    assert check_function(function(forward, lambda ctx, g: 2 * g * x_of(ctx))).verdict == "exact"


def last_one_wins(ctx, g):
    (x,) = ctx.saved_tensors
    grad = torch.zeros_like(x)
    for start in range(x.shape[-1] - 2):
        piece = torch.zeros_like(x)
        piece[..., start : start + 3] = g[..., start, None]
        grad = torch.where(piece != 0, piece, grad)
    return grad


def test_a_backward_that_is_right_for_one_element_at_a_time_only():
    windows = function(one(lambda x: x.unfold(-1, 3, 1).sum(-1)), last_one_wins)
    assert check_function(windows).kinds == ["not linear"]


# ---- A rule that is meant to be no derivative ----------------------------------------------------


@pytest.mark.parametrize(
    ("forward", "backward", "kind", "fact"),
    [
        (one(lambda x: (x > 0).float()), lambda ctx, g: g / (1 + x_of(ctx).abs()) ** 2,
         "flat forward", "surrogate"),
        (lambda ctx, x, alpha: x.view_as(x), lambda ctx, g: (-g, None),
         "constant factor", "returns x unchanged"),
        (lambda ctx, x: x.view_as(x), lambda ctx, g: g.clamp(-0.01, 0.01),
         "not linear", "returns x unchanged"),
        (one(lambda x: x.sign() * x.abs().mean()), lambda ctx, g: g,
         "wrong value", "calls sign"),
    ],
    ids=["float32 spike", "reversed", "clipped", "scaled sign"],
)  # fmt: skip
def test_a_rule_that_is_meant_is_told_how_to_say_so(forward, backward, kind, fact):
    verdict = check_function(function(forward, backward))
    assert verdict.kinds[0] == kind, verdict.report()
    assert fact in text_of(verdict)
    assert kind == "not linear" or "surrogate" in text_of(verdict)


def test_a_dtype_hides_no_wrong_value():
    def backward(ctx, g):
        grad = torch.zeros(x_of(ctx).shape)
        grad[x_of(ctx) < 0] = g[x_of(ctx) < 0].float()
        return grad

    verdict = check_function(function(one(lambda x: x.clamp(min=0)), backward))
    assert verdict.kinds[-1] == "dtype" and len(verdict.kinds) == 2


def test_a_second_derivative_that_is_not_finite_gets_no_cause():
    def root_backward(ctx, g):
        x = x_of(ctx)
        return g * 3 * torch.sqrt(x * (x > 0))  # its derivative is inf * 0 where x is negative

    learner = function(one(lambda x: 2 * x.clamp(min=0) ** 1.5), root_backward)
    verdict = check_function(learner)
    assert verdict.kinds == ["second derivative"]
    assert "not finite" in verdict.findings[0].text and "kept" not in verdict.findings[0].text


# ---- What strangers' Functions showed ------------------------------------------------------------


class Cholesky(torch.autograd.Function):
    """Shares the gradient out between the two triangles of a symmetric matrix."""

    @staticmethod
    def forward(ctx, a):
        lower = torch.linalg.cholesky(a)
        ctx.save_for_backward(a)
        return lower

    @staticmethod
    def backward(ctx, grad_output):
        (a,) = ctx.saved_tensors
        with torch.enable_grad():
            a = a if a.requires_grad else a.detach().requires_grad_()
            lower = torch.linalg.cholesky(a)
        (grad,) = torch.autograd.grad(lower, a, grad_output, create_graph=torch.is_grad_enabled())
        return (grad + grad.mT) / 2


def test_a_special_symmetric_matrix_beside_a_general_one():
    special, general = torch.eye(3) * 2 + 0.3, torch.tensor([[2.0, 0.5], [0.5, 1.0]])
    verdict = check_function(Cholesky, sample_inputs=[(special,), (general,)])
    assert verdict.right, verdict.report()
    assert check_function(Cholesky).right


def test_a_real_formula_that_computes_with_complex_numbers_is_not_tried_on_them():
    def forward(ctx, signal):
        ctx.save_for_backward(signal)
        return torch.fft.rfft(signal).abs() ** 2

    def backward(ctx, g):
        spectrum = torch.fft.rfft(x_of(ctx))
        full = torch.zeros(x_of(ctx).shape, dtype=spectrum.dtype)
        full[..., : spectrum.shape[-1]] = 2 * g * spectrum.conj()
        return torch.fft.fft(full).real

    assert check_function(function(forward, backward)).kinds in ([], ["second derivative"])


def test_a_summand_is_not_returned_unchanged():
    residual = function(lambda ctx, x, w: x + w.tanh(), lambda ctx, g: (2 * g, g))
    assert "unchanged" not in text_of(check_function(residual))


def test_the_size_in_a_sentence_is_that_of_the_element_shown():
    mean = function(one(lambda x: (x**2).mean()), lambda ctx, g: g * 2 * x_of(ctx))
    samples = [(torch.randn(2, 3),), (torch.randn(5, 4),)]
    assert "20 times" in text_of(check_function(mean, sample_inputs=samples))


def test_a_mean_over_one_dimension():
    batch_mean = function(one(lambda x: (x**2).sum() / len(x)), lambda ctx, g: g * 2 * x_of(ctx))
    samples = [(torch.randn(4, 3),), (torch.randn(5, 3),)]
    said = text_of(check_function(batch_mean, sample_inputs=samples))
    assert "the size of dimension 0 of" in said


def test_no_step_is_blamed_for_a_gradient_that_is_not_flat():
    def forward(ctx, x, table):
        ctx.index = (x.abs() * 3).floor().long() % 5
        return table[ctx.index] * 2

    rows = function(forward, lambda ctx, g: (None, torch.zeros(5).index_add(0, ctx.index, g)))
    rows.no_gradient = ("x",)
    samples = [(torch.tensor([0.1, 0.5, 1.2]), torch.randn(5))]
    said = text_of(check_function(rows, sample_inputs=samples))
    assert "floor" not in said and "surrogate" not in said


def test_a_declared_surrogate_is_not_declared_again():
    rounded = function(one(torch.round), lambda ctx, g: g)
    rounded.surrogate = staticmethod(lambda x: x.clamp(-1, 1))
    samples = [(torch.tensor([-2.2, -0.4, 0.3, 1.7]),)]
    said = text_of(check_function(rounded, sample_inputs=samples))
    assert "The surrogate is flat there" in said and "declare" not in said


def test_a_sparse_argument_beside_a_wrong_gradient():
    def forward(ctx, matrix, x):
        ctx.matrix = matrix
        return torch.sparse.mm(matrix, x)

    product = function(forward, lambda ctx, g: (None, 3 * torch.sparse.mm(ctx.matrix.t(), g)))
    samples = [(torch.eye(3).to_sparse(), torch.randn(3, 2))]
    assert check_function(product, sample_inputs=samples).kinds == ["constant factor"]
    product = function(forward, lambda ctx, g: (None, torch.sparse.mm(ctx.matrix.t(), g)))
    assert "float32" not in text_of(check_function(product, sample_inputs=samples))


def test_a_suggestion_of_samples_holds_the_defaults():
    picky = function(lambda ctx, x, options, p=2.0: x * options["slope"], lambda ctx, g: g)
    assert "2.0," in text_of(check_function(picky))


def test_a_guess_on_which_backward_raises_is_noted():
    def forward(ctx, x, power=2):
        ctx.save_for_backward(x)
        ctx.power = power
        return x**power

    square_only = function(forward, lambda ctx, g: (g * {2: 2 * x_of(ctx)}[ctx.power], None))
    verdict = check_function(square_only)
    assert verdict.right
    assert "power 3, but: KeyError in backward" in " ".join(verdict.notes)


def test_a_second_function_in_backward_is_named():
    class WrongTwice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, g):
            ctx.save_for_backward(x, g)
            return 2 * x * g

        @staticmethod
        def backward(ctx, grad):
            x, g = ctx.saved_tensors
            return grad * g, grad * 2 * x

    outer = function(one(torch.square), lambda ctx, g: WrongTwice.apply(x_of(ctx), g))
    assert "applies WrongTwice" in text_of(check_function(outer))


def test_a_target_that_was_tried_as_a_number_is_not_vouched_for():
    pinball = function(lambda ctx, x, target: x * target, lambda ctx, g: (g * 0.3, None))
    assert check_function(pinball).words != "exact"


class ForwardMode(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x.exp()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return grad_output * y

    @staticmethod
    def jvp(ctx, tangent):
        (y,) = ctx.saved_tensors
        return tangent * y


def test_a_jvp_without_what_it_needs():
    assert "save_for_forward" in text_of(check_function(ForwardMode))


def test_a_fault_in_setup_context_is_named_so(monkeypatch):
    monkeypatch.setattr(
        ForwardMode, "setup_context", staticmethod(lambda ctx, inputs, output: setup_context())
    )
    verdict = check_function(ForwardMode, sample_inputs=[(torch.ones(2),)])
    assert "ZeroDivisionError in setup_context" in text_of(verdict)


def setup_context():
    return 1 / 0


def test_every_message_is_said_somewhere():
    words = tomllib.loads((CHECKING / "words.toml").read_text("utf-8"))
    code = "".join(file.read_text("utf-8") for file in CHECKING.glob("*.py"))
    assert [key for key in words if f'"{key}"' not in code] == []

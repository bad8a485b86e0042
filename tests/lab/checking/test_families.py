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
        function(sorted_rows, lambda ctx, g: g.gather(-1, x_of(ctx))), "wrong value", "gathers"),
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
        "not finite", "x[0, 0] = 0"),
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


def test_every_message_is_said_somewhere():
    words = tomllib.loads((CHECKING / "words.toml").read_text("utf-8"))
    code = "".join(file.read_text("utf-8") for file in CHECKING.glob("*.py"))
    assert [key for key in words if f'"{key}"' not in code] == []

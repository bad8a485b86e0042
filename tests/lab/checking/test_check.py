"""Each check is shown a Function that violates it, and must say so in the right words."""

import random

import pytest
import torch
from torch.autograd.function import once_differentiable

from functions import BlackBox, LinearFunction, MyReLU, NumpySoftplus, SignSTE, SumSqrt, mistakes
from lab.checking import probes
from lab.checking.check import check_function

Function = torch.autograd.Function


def saved(formula):
    """A forward of one input that saves it."""

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return formula(x)

    return forward


def both_saved(formula):
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return formula(x, y)

    return forward


def function(forward, backward, **declared):
    """A Function as a learner writes it, from its two methods."""
    methods = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("Learner", (Function,), methods | declared)


def x_of(ctx):
    return ctx.saved_tensors[0]


def square(backward, **declared):
    return function(saved(lambda x: x**2), backward, **declared)


def right_square(ctx, grad):
    return grad * 2 * x_of(ctx)


# ---- The verdict --------------------------------------------------------------------------------

RIGHT = {
    "square": square(right_square),
    "log, defined for positive numbers alone": function(
        saved(torch.log), lambda ctx, grad: grad / x_of(ctx)
    ),
    "arcosh, defined over 1 alone": function(
        saved(torch.acosh), lambda ctx, grad: grad / (x_of(ctx) ** 2 - 1).sqrt()
    ),
    "product": function(
        both_saved(lambda x, y: x * y),
        lambda ctx, grad: (grad * ctx.saved_tensors[1], grad * ctx.saved_tensors[0]),
    ),
    "matrix product": function(
        both_saved(lambda x, y: x @ y),
        lambda ctx, grad: (grad @ ctx.saved_tensors[1].t(), ctx.saved_tensors[0].t() @ grad),
    ),
    "vjp in place of backward": type(
        "Learner",
        (Function,),
        {
            "forward": staticmethod(saved(lambda x: x**2)),
            "vjp": staticmethod(right_square),
        },
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_functions_without_declarations_are_exact(name):
    verdict = check_function(RIGHT[name])
    assert verdict.verdict == "exact", verdict.report()
    assert verdict.as_declared
    assert verdict.largest_error < 1e-6
    assert verdict.second_derivative == "right"


def test_sum_keeps_its_shape_on_ctx():
    def forward(ctx, x):
        ctx.shape = x.shape
        return x.sum()

    verdict = check_function(function(forward, lambda ctx, grad: grad.expand(ctx.shape)))
    assert verdict.verdict == "exact", verdict.report()


def test_several_outputs_one_of_them_of_whole_numbers():
    def forward(ctx, x):
        values, indices = x.max(-1)
        ctx.save_for_backward(indices)
        ctx.shape = x.shape
        ctx.mark_non_differentiable(indices)
        return values, indices

    def backward(ctx, grad, _):
        return grad.new_zeros(ctx.shape).scatter(-1, x_of(ctx)[..., None], grad[..., None])

    verdict = check_function(function(forward, backward))
    assert verdict.verdict == "exact", verdict.report()


def test_a_declared_in_place_operation_is_right():
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    verdict = check_function(function(forward, lambda ctx, grad: 2 * grad))
    assert verdict.verdict == "exact", verdict.report()


def test_numbers_beside_tensors_keep_their_default_or_get_one():
    def forward(ctx, x, slope: float, twice=2):
        ctx.factor = slope * twice
        return x * ctx.factor

    verdict = check_function(function(forward, lambda ctx, grad: (grad * ctx.factor, None, None)))
    assert verdict.verdict == "exact", verdict.report()
    assert verdict.inputs[0] == "x (5, 7), slope 0.3"
    assert "x (5, 7), slope 0.3, twice 3" in verdict.inputs


def test_float32_samples_are_checked_in_float64():
    seen = []

    def forward(ctx, x):
        seen.append(x.dtype)
        ctx.save_for_backward(x)
        return x**2

    samples = staticmethod(lambda: [(torch.randn(3),)])
    verdict = check_function(function(forward, right_square, sample_inputs=samples))
    assert verdict.verdict == "exact"
    assert seen.count(torch.float64) > 10 * seen.count(torch.float32)


def test_bias_is_tried_and_left_out():
    learner = function(LinearFunction.forward, LinearFunction.backward)
    verdict = check_function(learner)
    assert verdict.verdict == "exact", verdict.report()
    assert any("bias (6,)" in line for line in verdict.inputs)
    assert any("bias" not in line for line in verdict.inputs)


# ---- Wrong gradients and their hints ------------------------------------------------------------

RELU = saved(lambda x: x.clamp(min=0))
PRODUCT = both_saved(lambda x, y: x * y)
WRONG = {
    "sign": (square(lambda ctx, g: -2 * x_of(ctx) * g), "constant factor", "-1 times"),
    "half": (square(lambda ctx, g: x_of(ctx) * g), "constant factor", "0.5 times"),
    "twice": (square(lambda ctx, g: 4 * x_of(ctx) * g), "constant factor", "2 times"),
    "zeros": (square(lambda ctx, g: torch.zeros_like(g)), "all zero", "zero everywhere"),
    "None": (square(lambda ctx, g: None), "no gradient", "None for x"),
    "nan": (square(lambda ctx, g: g * torch.nan), "not finite", "nan"),
    "formula": (square(lambda ctx, g: 3 * x_of(ctx) ** 2 * g), "wrong value", "numerical gradient"),
    "no grad_output": (
        square(lambda ctx, g: 2 * x_of(ctx)),
        "ignores grad_output",
        "does not depend on grad_output",
    ),
    "no mask": (function(RELU, lambda ctx, g: g), "no mask", "Forward is flat there"),
    "zeros of a Jacobian that is not diagonal": (
        function(saved(lambda x: x.cumsum(1)), lambda ctx, g: g.sum(1, True).expand_as(g)),
        "wrong value",
        "30 of 35",
    ),
    "clipped": (
        square(lambda ctx, g: 2 * x_of(ctx) * g.clamp(-1, 1)),
        "not linear",
        "not linear in grad_output",
    ),
    "swapped": (
        function(PRODUCT, lambda ctx, g: (g * ctx.saved_tensors[0], g * ctx.saved_tensors[1])),
        "swapped",
        "this is the gradient for y",
    ),
    "too few": (
        function(PRODUCT, lambda ctx, g: g * ctx.saved_tensors[1]),
        "number of gradients",
        "returns 1 gradient, expected 2: one for each input of forward (x, y)",
    ),
    "too many": (
        square(lambda ctx, g: (2 * x_of(ctx) * g, g)),
        "number of gradients",
        "returns 2 gradients, expected 1",
    ),
    "transposed, not square": (
        function(
            both_saved(lambda x, y: x @ y),
            lambda ctx, g: (g @ ctx.saved_tensors[1].t(), g.t() @ ctx.saved_tensors[0]),
        ),
        "transposed",
        "shape (6, 7) for y of shape (7, 6)",
    ),
    "shape": (square(lambda ctx, g: g.sum(0)), "shape", "A gradient has its input's shape"),
    "one combination": (
        function(
            PRODUCT,
            lambda ctx, g: (
                (g * ctx.saved_tensors[1], g * ctx.saved_tensors[0])
                if all(ctx.needs_input_grad)
                else (g, g)
            ),
        ),
        "needs_input_grad",
        "where only x needs a gradient",
    ),
    "view of the input": (
        square(lambda ctx, g: (2 * x_of(ctx).view(-1) * g.reshape(-1)).reshape(g.shape)),
        "not contiguous",
        "where x is not contiguous",
    ),
    "view of grad_output": (
        function(saved(lambda x: 2 * x), lambda ctx, g: 2 * g.view(-1).view(g.shape)),
        "not contiguous",
        "where grad_output is not contiguous",
    ),
    "float32 inside": (
        function(saved(lambda x: x.float() * 2), lambda ctx, g: 2 * g),
        "dtype",
        "returns float32 for float64",
    ),
    "numbers outside the domain": (
        function(
            saved(torch.log),
            lambda ctx, g: g / x_of(ctx),
            sample_inputs=staticmethod(lambda: [(torch.tensor([-1.0]),)]),
        ),
        "not finite",
        "outside its domain",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_backwards_are_told_apart(name):
    learner, kind, words = WRONG[name]
    verdict = check_function(learner)
    assert verdict.verdict == "wrong"
    assert not verdict.as_declared
    assert verdict.kinds == [kind] * len(verdict.kinds)
    assert words in verdict.findings[0].text


def test_the_worst_element_is_named_with_both_numbers():
    samples = staticmethod(lambda: [(torch.tensor([[1.0, 5.0], [2.0, 3.0]]),)])
    learner = square(lambda ctx, g: -2 * x_of(ctx) * g, sample_inputs=samples)
    (finding,) = check_function(learner).findings
    assert "at x[0, 1] = 5 backward gives -10, but the numerical gradient is 10." in finding.text
    assert "4 of 4 elements" in finding.text


def test_no_report_is_a_page_of_numbers():
    big = staticmethod(lambda: [(torch.randn(20, 20),)])
    verdict = check_function(square(lambda ctx, g: x_of(ctx) * g, sample_inputs=big))
    report = verdict.report()
    assert len(report.splitlines()) < 15
    assert max(map(len, report.splitlines())) <= 80
    assert "tensor(" not in report


def test_a_forgotten_mean_is_guessed():
    learner = function(saved(lambda x: (x**2).mean()), lambda ctx, grad: grad * 2 * x_of(ctx))
    assert "1/35 of a mean" in check_function(learner).findings[0].text


def test_guessed_shapes_that_were_never_meant_are_not_held_against_it():
    learner = function(lambda ctx, x, b: x + b, lambda ctx, grad: (grad, grad.sum(0)))
    verdict = check_function(learner)
    assert verdict.verdict == "exact"
    assert {line.partition(", b")[2] for line in verdict.inputs} == {" (7,)"}


# ---- What gradcheck lets through ----------------------------------------------------------------


def edits_input(ctx, x):
    x.mul_(2)
    return x.clone()


def edits_saved(ctx, grad):
    x = x_of(ctx)
    factor = 2 * x.clone()
    x.zero_()
    return factor * grad


def edits_output(ctx, grad):
    (output,) = ctx.saved_tensors
    slope = output.clone()
    output.zero_()
    return grad * slope


def saves_output(ctx, x):
    output = x.exp()
    ctx.save_for_backward(output)
    return output


def edits_grad_output(ctx, grad):
    return grad.mul_(2)


@pytest.mark.parametrize(
    ("learner", "kind", "words"),
    [
        (function(edits_input, lambda ctx, g: 2 * g), "edits input", "forward modifies x"),
        (square(edits_saved), "edits input", "backward modifies x"),
        (function(saves_output, edits_output), "edits input", "backward modifies the output"),
        (
            function(saved(lambda x: 2 * x), edits_grad_output),
            "edits grad_output",
            "grad_output.clone()",
        ),
    ],
)
def test_edits_of_tensors_that_were_handed_over(learner, kind, words):
    verdict = check_function(learner)
    assert verdict.verdict == "wrong"
    assert kind in verdict.kinds
    assert words in verdict.findings[0].text


def test_gradcheck_alone_passes_an_edited_grad_output():
    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    learner = function(saved(lambda x: 2 * x), edits_grad_output)
    assert torch.autograd.gradcheck(learner.apply, (x,), check_undefined_grad=False)


def python_random(ctx, x):
    return x * random.random()


kept = {}


def keeps_globally(ctx, x):
    kept["x"] = x
    return x**2


def counts_calls(ctx, grad):
    ctx.calls = getattr(ctx, "calls", 0) + 1
    return grad * 2 * x_of(ctx) * ctx.calls


@pytest.mark.parametrize(
    ("learner", "kind"),
    [
        (function(python_random, lambda ctx, g: g), "not deterministic"),
        (square(lambda ctx, g: g * 2 * x_of(ctx) * torch.rand_like(g)), "not deterministic"),
        (square(counts_calls), "not deterministic"),
        (function(keeps_globally, lambda ctx, g: g * 2 * kept["x"]), "shared state"),
    ],
)
def test_what_is_not_a_function_of_its_inputs(learner, kind):
    assert check_function(learner).kinds == [kind]


def test_second_derivative_wrong_refused_or_raising():
    def through_numpy(ctx, grad):
        return grad * torch.from_numpy(2 * x_of(ctx).detach().numpy())

    wrong = check_function(square(through_numpy))
    assert (wrong.verdict, wrong.kinds) == ("wrong", ["second derivative"])
    assert "a second backward gives 0, but the numerical gradient of the first" in (
        wrong.findings[0].text
    )
    refused = check_function(square(once_differentiable(through_numpy)))
    assert (refused.verdict, refused.second_derivative) == ("exact", "refused")

    def raising(ctx, grad):
        return torch.from_numpy(2 * x_of(ctx).detach().numpy() * grad.numpy())

    assert check_function(square(raising)).second_derivative == "raises"


def test_forward_called_by_hand_bypasses_backward():
    class Context:
        def save_for_backward(self, *tensors):
            pass

    wrong = square(lambda ctx, g: g)
    verdict = check_function(lambda x: wrong.forward(Context(), x))
    assert verdict.kinds == ["bypassed"]
    assert ".forward(...)" in verdict.findings[0].text
    assert check_function(wrong.apply).kinds == ["wrong value"]
    assert check_function(square(right_square).apply).verdict == "exact"


def test_a_gradient_that_only_broadcasting_rescued_is_told():
    learner = function(lambda ctx, x, bias: x + bias, lambda ctx, g: (g, g))
    verdict = check_function(learner)
    assert verdict.verdict == "exact"
    assert "shape (5, 7) for bias of shape (7,)" in verdict.notes[0]


def test_another_dtype_than_the_input_is_told():
    learner = function(saved(lambda x: x.double() * 2), lambda ctx, g: 2 * g)
    assert "Given float32, forward returns float64" in (check_function(learner).notes[0])


# ---- Surrogates, kinks, mistakes ----------------------------------------------------------------


def test_a_surrogate_is_told_as_one_and_how_far_it_is():
    verdict = check_function(SignSTE)
    assert (verdict.verdict, verdict.declared, verdict.as_declared) == (
        "surrogate",
        "surrogate",
        True,
    )
    assert verdict.largest_error == pytest.approx(1)
    assert "backward gives 1, but the numerical gradient is 0" in verdict.notes[0]


def test_a_surrogate_must_be_the_derivative_that_it_declares():
    class Broken(SignSTE):
        @staticmethod
        def backward(ctx, grad_output):
            return 2 * SignSTE.backward(ctx, grad_output)

    verdict = check_function(Broken)
    assert (verdict.verdict, verdict.as_declared) == ("wrong", False)
    assert "the derivative of its surrogate is 1" in verdict.findings[0].text


def test_a_straight_through_estimate_that_is_not_declared_is_wrong():
    assert check_function(function(saved(torch.round), lambda ctx, g: g)).verdict == "wrong"


@pytest.mark.parametrize(("mask", "chose"), [(torch.gt, 0.0), (torch.ge, 1.0)])
def test_the_kink_of_an_undeclared_relu_is_found(mask, chose):
    verdict = check_function(function(RELU, lambda ctx, g: g * mask(x_of(ctx), 0)))
    assert (verdict.verdict, verdict.words, verdict.as_declared) == ("exact", "exact, kink", True)
    (kink,) = verdict.kinks
    assert (kink.value, kink.backward, kink.relu) == (0, chose, 0)
    assert (kink.left, kink.right) == (0, pytest.approx(1))


def test_a_kink_among_the_samples_is_never_called_wrong():
    samples = staticmethod(lambda: [(torch.tensor([0.0, 1.0, -1.0]),)])
    verdict = check_function(function(RELU, MyReLU.backward, sample_inputs=samples))
    assert (verdict.verdict, verdict.as_declared, verdict.findings) == ("kink", True, [])


def test_a_kink_does_not_hide_a_wrong_gradient_beside_it():
    samples = staticmethod(lambda: [(torch.tensor([0.0, 1.0, -1.0]),)])
    verdict = check_function(function(RELU, lambda ctx, g: g, sample_inputs=samples))
    assert verdict.kinds == ["no mask"]
    assert verdict.kinks


def test_the_kink_of_max_says_nothing_of_relu():
    learner = function(
        saved(torch.abs),
        lambda ctx, g: g * x_of(ctx).sign(),
        kink_inputs=staticmethod(lambda: [(torch.zeros(2),)]),
    )
    (kink,) = check_function(learner).kinks
    assert (kink.left, kink.right, kink.backward, kink.relu) == (-1, 1, 0, None)
    assert "torch.relu" not in str(kink)


def test_a_jump_is_told_as_one():
    verdict = check_function(function(saved(torch.sign), lambda ctx, g: torch.zeros_like(g)))
    assert verdict.verdict == "exact"
    assert "At all of x = 0 forward jumps" in str(verdict.kinks[0])


def test_a_declared_mistake_must_be_that_mistake():
    right_after_all = square(right_square, mistake="no mask")
    other = square(lambda ctx, g: -2 * x_of(ctx) * g, mistake="no mask")
    for learner in (right_after_all, other):
        assert not check_function(learner).as_declared
    assert check_function(mistakes.ReLUNoMask).as_declared


# ---- Functions that can't run as written --------------------------------------------------------


class NotStatic(Function):
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, grad):
        return 2 * grad


class NoBackward(Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x


def calls_an_instance(x):
    return NotStatic()(x)


@pytest.mark.filterwarnings("ignore:.*should not be instantiated")
@pytest.mark.parametrize(
    ("target", "kind", "words"),
    [
        (calls_an_instance, "not static", "never MyFunction()(x)"),
        (NoBackward, "no backward", "There is no backward"),
        (type("Empty", (Function,), {}), "no forward", "There is no forward"),
        (torch.nn.ReLU, "no Function", "Check the Function that it calls"),
        (torch.nn.ReLU(), "no Function", "ReLU is a Module"),
        (3, "no Function", "an object of type int is no"),
        (int, "no Function", "not a torch.autograd.Function"),
        (torch.relu, "no Function", "relu is not a torch.autograd.Function"),
        (function(lambda x: x, lambda ctx, grad: grad), "declaration", "forward takes no input"),
        (square(right_square, surrogate="tanh"), "declaration", "surrogate"),
        (square(right_square, sample_inputs=staticmethod(lambda: 3)), "declaration", "a list of"),
        (
            square(right_square, sample_inputs=staticmethod(lambda: [(torch.ones(99, 99),)])),
            "declaration",
            "9801 floating-point numbers",
        ),
        (
            function(saved(lambda x: x.long()), right_square),
            "no inputs found",
            "def sample_inputs():",
        ),
    ],
)
def test_what_cannot_run_gets_the_reason(target, kind, words):
    verdict = check_function(target)
    assert (verdict.verdict, verdict.as_declared) == ("cannot run", False)
    assert verdict.kinds == [kind]
    assert words in verdict.findings[0].text


def test_an_instance_is_told_with_both_causes():
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        verdict = check_function(NotStatic())
    assert "@staticmethod" in verdict.findings[0].text
    assert "NotStatic.apply(x), never NotStatic()(x)" in verdict.findings[0].text


def test_not_written_yet_is_told_from_wrong():
    def forward(ctx, x):
        raise NotImplementedError

    def backward(ctx, grad):
        raise NotImplementedError

    for learner in (function(forward, backward), square(backward)):
        verdict = check_function(learner)
        assert (verdict.verdict, verdict.kinds) == ("cannot run", ["not written"])


def test_a_crash_shows_the_users_line_and_none_of_ours():
    def backward(ctx, grad):
        return grad * no_such_name  # noqa: F821

    verdict = check_function(square(backward))
    assert (verdict.verdict, verdict.kinds) == ("cannot run", ["crash"])
    assert "NameError" in verdict.findings[0].text
    first = verdict.users_lines.splitlines()[1]
    assert "test_check.py" in first
    assert "lab/" not in verdict.users_lines.replace("tests/lab/", "")


def test_a_fault_of_the_check_itself_is_not_blamed_on_the_function(monkeypatch):
    monkeypatch.setattr(probes, "random_grads", None)
    with pytest.raises(TypeError):
        check_function(MyReLU)


# ---- torch.func, and the rest -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        (MyReLU, "setup_context"),
        (NumpySoftplus, "no rule for vmap"),
        (SumSqrt, "no rule for vmap"),
        (BlackBox, ""),
    ],
)
def test_vmap(target, reason):
    verdict = check_function(target)
    assert verdict.vmap == (reason == "")
    assert reason in verdict.vmap_reason


def test_a_wrong_rule_for_vmap_is_wrong():
    class WrongRule(BlackBox):
        generate_vmap_rule = False

        @staticmethod
        def vmap(info, in_dims, function, input):
            return WrongRule.apply(function, input).flip(in_dims[1]), in_dims[1]

    assert check_function(WrongRule).kinds == ["vmap"]


def test_the_random_state_is_left_alone_and_the_seed_decides():
    learner = square(lambda ctx, g: -2 * x_of(ctx) * g)
    torch.manual_seed(5)
    before = torch.get_rng_state()
    texts = [check_function(learner, seed=seed).findings[0].text for seed in (0, 0, 1)]
    assert torch.equal(before, torch.get_rng_state())
    assert texts[0] == texts[1] != texts[2]


def test_atol_is_what_decides():
    nearly = square(lambda ctx, g: (2 * x_of(ctx) + 0.01) * g)
    assert check_function(nearly).verdict == "wrong"
    assert check_function(nearly, atol=0.1).verdict == "exact"

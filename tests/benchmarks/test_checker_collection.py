"""The collection behind the score of check.py: right Functions are right, and mistakes wrong."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from functools import partial

import pytest
import torch
from torch.autograd import forward_ad

from benchmarks.checker import double, is_float, leaves_of, load, refuses_a_second_derivative
from benchmarks.checker_collection import kind_of, right_functions
from benchmarks.checker_collection.causes import KINDS, judge

FUNCTIONS = {function.name: function for function in right_functions()}


def test_collection_is_as_large_as_promised():
    mistakes = [mistake for function in FUNCTIONS.values() for mistake in function.mistakes]
    assert len(FUNCTIONS) >= 40
    assert len(mistakes) >= 250
    assert len({kind_of(mistake) for mistake in mistakes}) >= 40
    assert {kind_of(mistake) for mistake in mistakes} == set(KINDS)


def test_cause_is_judged_by_all_findings():
    assert judge("no mask", [("no mask", "")]) == "named true"
    assert judge("no mask", [("wrong value", "")]) == "not named"
    assert judge("no mask", [("no mask", ""), ("transposed", "")]) == "named false"
    assert judge("no mask", [("a kind of tomorrow", "")]) == "unknown"


@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
def test_right_function_is_right_and_each_mistake_is_not(name, tmp_path):
    function = FUNCTIONS[name]
    right = load(name, function.source, tmp_path)
    if name not in ("SparseLookup", "LearnedStep"):  # a sparse gradient, and no derivative
        assert_passes_gradcheck(right)
    behaves = behaviour(right)
    harmless = [
        mistake
        for mistake, source in function.mistakes.items()
        if not is_noticed(load(name, renamed(source, mistake), tmp_path), behaves, mistake)
    ]
    assert harmless == []


def test_sparse_lookup_has_the_gradient_of_lookup(tmp_path):
    table = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    index = torch.tensor([0, 2, 2])
    gradients = []
    for name in ("SparseLookup", "Lookup"):
        rows = load(name, FUNCTIONS[name].source, tmp_path).apply(index, table)
        gradients += torch.autograd.grad(rows.exp().sum(), table)
    assert gradients[0].is_sparse
    assert torch.equal(gradients[0].to_dense(), gradients[1])


def renamed(source: str, mistake: str) -> str:
    """PyTorch has one custom operator of a name in a process."""
    return source.replace("checker_collection::", f"{mistake.replace(' ', '_')}::")


def assert_passes_gradcheck(target) -> None:
    tolerance = {}
    for args in samples(target, ["sample_inputs"]):
        leaves = leaves_of(target, args)
        if getattr(target, "__name__", "") == "Float32Only":
            leaves = [arg.detach().float().requires_grad_() for arg in leaves]
            tolerance = {"eps": 1e-2, "atol": 1e-2, "rtol": 1e-2}
        function = partial(with_the_values_of_its_surrogate, target)
        assert torch.autograd.gradcheck(function, leaves, **tolerance)
        if not tolerance and not refuses_a_second_derivative(target):
            assert torch.autograd.gradgradcheck(function, leaves)


def with_the_values_of_its_surrogate(target, *args):
    torch.manual_seed(0)  # a mask that forward draws must stay the same
    copies = [arg.clone() if isinstance(arg, torch.Tensor) else arg for arg in args]
    output = applied(target)(*copies)
    if isinstance(output, tuple):
        return tuple(each for each in output if isinstance(each, torch.Tensor))
    if not callable(getattr(target, "surrogate", None)):
        return output
    return target.surrogate(*args).detach() + (output - output.detach())


def applied(target):
    return getattr(target, "apply", target)


def samples(target, names=("sample_inputs", "kink_inputs")) -> list[tuple]:
    torch.manual_seed(0)
    declared = [args for name in names for args in getattr(target, name, list)()]
    return [tuple(double(arg) for arg in args) for args in declared]


def behaviour(target) -> list:
    """All that a caller can notice: values, errors, edits, and what another call changes."""
    seen = attempted(lambda: interleaved(target))
    for args in samples(target):
        for case in (args, scaled(args, 1000.0), scaled(args, 0.0)):
            seen += first_order(target, case)
        in_single = [arg.float() if is_float(arg) and not arg.is_complex() else arg for arg in args]
        seen += first_order(target, in_single)
        for look in (on_leaves, second_order, each_input_alone, forward_mode, batched):
            seen += attempted(lambda look=look, args=args: look(target, args))
    return seen


def scaled(args, factor: float) -> list:
    return [arg * factor if is_float(arg) else arg for arg in args]


def attempted(look) -> list:
    try:
        return look()
    except Exception as error:
        return [type(error).__name__, str(error).partition("\n")[0]]


def is_noticed(wrong, behaves: list, mistake: str) -> bool:
    """Whether a caller can tell the wrong one from the right one, which behaves so."""
    if kind_of(mistake) != "endless loop":
        return differ(behaves, behaviour(wrong))
    with pytest.raises(TimeoutError), time_limit(0.2):  # the right one has come to its end
        applied(wrong)(*samples(wrong)[0])
    return True


@contextmanager
def time_limit(seconds: float):
    def stop(*_):
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def first_order(target, args) -> list:
    def look() -> list:
        torch.manual_seed(1)
        leaves = leaves_of(target, args)
        handed = [arg.clone() if is_float(arg) else arg for arg in leaves]
        every = applied(target)(*handed)
        every = every if isinstance(every, tuple) else (every,)
        outputs = [output for output in every if is_float(output) and output.requires_grad]
        seen = [*every, *[arg.detach() for arg in handed if is_float(arg)]]
        grads = [torch.randn_like(output) for output in outputs]
        inputs = [arg for arg in leaves if is_float(arg) and arg.requires_grad]
        for handed_grads in (grads, [grad.mT if grad.dim() > 1 else grad for grad in grads]):
            pairs = zip(handed_grads, outputs, strict=True)
            given = [grad.clone().reshape(out.shape) for grad, out in pairs]
            seen += torch.autograd.grad(
                outputs, inputs, given, retain_graph=True, allow_unused=True
            )
            seen += given
        others = [arg * 0.5 if is_float(arg) or type(arg) is float else arg for arg in leaves]
        applied(target)(*others)
        turned = [torch.ones((), dtype=out.dtype).expand(out.shape) for out in outputs]
        seen += torch.autograd.grad(outputs, inputs, turned, retain_graph=True, allow_unused=True)
        for output, grad in zip(outputs, grads, strict=True):
            seen += torch.autograd.grad(output, inputs, grad, retain_graph=True, allow_unused=True)
            not_contiguous = torch.stack([grad, grad], -1)[..., 0]
            seen += torch.autograd.grad(
                output, inputs, not_contiguous, retain_graph=True, allow_unused=True
            )
        return seen

    return attempted(look)


def interleaved(target) -> list:
    """The gradients of each sample, after forward has seen all of them."""
    calls = [leaves_of(target, args) for args in samples(target)]
    totals = []
    for leaves in calls:
        copies = [arg.clone() if is_float(arg) else arg for arg in leaves]
        output = applied(target)(*copies)
        totals.append((output[0] if isinstance(output, tuple) else output).real.sum())
    seen: list = []
    for leaves, total in zip(calls, totals, strict=True):
        inputs = [arg for arg in leaves if is_float(arg) and arg.requires_grad]
        seen += torch.autograd.grad(total, inputs, allow_unused=True)
    return seen


def on_leaves(target, args) -> list:
    """What PyTorch says of a leaf that is changed in place; it must have been told."""
    output = applied(target)(*leaves_of(target, args))
    return list(output) if isinstance(output, tuple) else [output]


def second_order(target, args) -> list:
    leaves = leaves_of(target, args)
    output = applied(target)(*[arg.clone() if is_float(arg) else arg for arg in leaves])
    output = output[0] if isinstance(output, tuple) else output
    inputs = [arg for arg in leaves if is_float(arg) and arg.requires_grad]
    torch.manual_seed(2)
    grad = torch.randn_like(output).requires_grad_()
    firsts = torch.autograd.grad(output, inputs, grad, create_graph=True, allow_unused=True)
    total = sum(first.real.sin().sum() for first in firsts if first is not None)
    return list(torch.autograd.grad(total, [*inputs, grad], allow_unused=True))


def each_input_alone(target, args) -> list:
    seen: list = []
    for position in range(len(args)):
        if is_float(args[position]):
            given = [
                arg.detach().requires_grad_(i == position) if is_float(arg) else arg
                for i, arg in enumerate(args)
            ]
            copies = [arg.clone() if is_float(arg) else arg for arg in given]

            def look(given=given, copies=copies, position=position) -> list:
                output = applied(target)(*copies)
                output = output[0] if isinstance(output, tuple) else output
                grad = torch.ones_like(output)
                return list(torch.autograd.grad(output, given[position], grad, allow_unused=True))

            seen += attempted(look)
    return seen


def forward_mode(target, args) -> list:
    torch.manual_seed(3)
    with forward_ad.dual_level():
        duals = [forward_ad.make_dual(a, torch.randn_like(a)) if is_float(a) else a for a in args]
        output = applied(target)(*duals)
        return [forward_ad.unpack_dual(output).tangent]


def batched(target, args) -> list:
    stacked = [torch.stack([arg, arg + 1, arg - 1]) for arg in args]
    return [torch.func.vmap(applied(target))(*stacked)]


def differ(one: list, other: list) -> bool:
    return len(one) != len(other) or not all(map(alike, one, other))


def alike(one, other) -> bool:
    if not (isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor)):
        return type(one) is type(other) and one == other
    if (one.shape, one.dtype, one.requires_grad) != (other.shape, other.dtype, other.requires_grad):
        return False
    dense, other_dense = (tensor.detach().to_dense() for tensor in (one, other))
    rounding = 1e-5 if one.dtype == torch.float32 else 1e-9
    return torch.allclose(dense, other_dense, rtol=rounding, atol=1e-3 * rounding, equal_nan=True)

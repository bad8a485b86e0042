"""The questions that are put to a Function, each a function of its own.

Each takes a case, one Function with one tuple of arguments, and returns what it found. None of them
relies on another: a fault that one finds hides none from the others.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch.autograd import forward_ad, gradcheck

from lab.checking.causes import slope_of_each, wrong_gradient
from lab.checking.numbers import (
    Comparison,
    all_close,
    as_real,
    backward_jacobians,
    close_to_rounding,
    compare,
    element_text,
    equal_with_nan,
    gradients,
    is_returned,
    random_grads,
    slopes_of,
    with_graph,
    worst_element,
)
from lab.checking.samples import (
    Case,
    can_need_grad,
    copied,
    flipped,
    has_setup_context,
    in_complex,
    is_function_class,
    moved_far,
    not_contiguous,
)
from lab.checking.users_code import Crash, users_code
from lab.checking.verdict import JUMP, Finding, Kink, finding, say
from lab.graph import function_of, nodes_between

# ---- State and grad_output ----------------------------------------------------------------------


def is_repeatable(case: Case) -> list[Finding]:
    """Do the same inputs give the same numbers, also after calls on other inputs?"""
    leaves = case.leaves()
    with users_code("called a second time", "second call"):
        outputs, again = case.outputs(*leaves), case.outputs(*leaves)
    if not all(map(equal_with_nan, outputs, again)):
        return [finding("not deterministic", "forward not deterministic")]
    grads = random_grads(outputs)
    # Copies: backward may return the .grad of a tensor of its own, and add to it the next time.
    first = [gradient.clone() for gradient in gradients(case, outputs, leaves, grads)]
    try:
        second = gradients(case, outputs, leaves, grads)
    except Exception:  # it frees what forward saved, which is allowed; see `frees_its_buffers`
        second = gradients(case, case.outputs(*leaves), leaves, grads)
    if not all(map(equal_with_nan, first, second)):
        return [finding("not deterministic", "backward not deterministic")]
    with users_code("called on other inputs before backward", "shared state"):
        outputs = case.outputs(*leaves)
        for other in _other_calls(case):
            with contextlib.suppress(Exception):  # such inputs may not fit
                other.outputs(*other.leaves())
        third = gradients(case, outputs, leaves, grads)
    return [] if all(map(equal_with_nan, first, third)) else [finding("shared state")]


def _other_calls(case: Case) -> list[Case]:
    """Other values and other numbers beside the tensors; and other shapes."""
    numbers = [i for i, arg in enumerate(case.args) if isinstance(arg, float)]
    cases = flipped(case), case.changed(lambda arg: arg[:1] if arg.dim() else arg)
    return [each.changed(lambda number: 0.6 * number + 0.1, numbers) for each in cases]


def frees_its_buffers(case: Case) -> list[Finding]:
    """A note where backward can run only once for each forward."""
    leaves = case.leaves()
    outputs = case.outputs(*leaves)
    grads = random_grads(outputs)
    gradients(case, outputs, leaves, grads)
    try:
        gradients(case, outputs, leaves, grads)
    except Exception as error:  # whatever a missing buffer leads to
        return [finding("frees its buffers", error=type(error).__name__)]
    return []


def is_linear(case: Case) -> list[Finding]:
    """Is backward linear in grad_output? That is what makes the sum over several paths right."""
    leaves = case.leaves()

    def backward(grads: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        with users_code("for several grad_outputs"):
            return gradients(case, case.outputs(*leaves), leaves, grads)

    close = partial(all_close, case)
    one, other = (random_grads(case.outputs(*leaves), seed) for seed in (1, 2))
    once, more = backward(one), backward(other)
    if not all(gradient.isfinite().all() for gradient in (*once, *more)):
        return []  # the comparison of values tells
    both = backward([a + 3 * b for a, b in zip(one, other, strict=True)])
    same = all(a.equal(b) and a.equal(c) for a, b, c in zip(once, more, both, strict=True))
    if same and any(gradient.any() for gradient in once):
        return [finding("ignores grad_output")]
    if len(one) > 1 and not close(once, _one_output_a_time(case, one)):
        return [finding("wrong value", "several outputs")]
    large = [gradient / 1e6 for gradient in backward([1e6 * a for a in one])]
    summed = [a + 3 * b for a, b in zip(once, more, strict=True)]
    apart = map(backward, zip(*map(_first_last_and_rest, one), strict=True))
    joined = [torch.stack(parts).sum(0) for parts in zip(*apart, strict=True)]
    if close(both, summed) and close(large, once) and close(joined, once):
        return []
    advice = "multiply"
    if any(gradient.any() for gradient in backward([torch.zeros_like(a) for a in one])):
        advice = "added"
    elif len(one) == 1 and not one[0].is_complex() and {a.shape for a in once} == {one[0].shape}:
        slopes = backward([torch.ones_like(a) for a in one])
        masked = [s * one[0].clamp(min=0) for s in slopes]
        if close(once, masked) and not close(masked, [s * one[0] for s in slopes]):
            advice = "mask from grad_output"
    words = say(advice)
    if names := [case.names[i] for i in case.floats if is_returned(case, i)]:
        words = say("identity not linear", name=names[0])
    return [finding("not linear", advice=words)]


def _first_last_and_rest(tensor: torch.Tensor) -> list[torch.Tensor]:
    """Three parts that add up to the tensor: its first element, its last, and all the others."""
    number = torch.arange(tensor.numel(), device=tensor.device).reshape(tensor.shape)
    last = tensor.numel() - 1
    rest = (number > 0) & (number < last)
    return [tensor * mask for mask in (number == 0, (number == last) & (number > 0), rest)]


def _one_output_a_time(case: Case, grads: list[torch.Tensor]) -> list[torch.Tensor]:
    """The sum over the outputs of backward for each alone, where the others are not used."""
    leaves = case.leaves()
    with users_code("for one output at a time"):
        alone = [
            gradients(case, [case.outputs(*leaves)[k]], leaves, [grad])
            for k, grad in enumerate(grads)
        ]
    return [torch.stack(each).sum(0) for each in zip(*alone, strict=True)]


def needs_every_input(case: Case) -> list[Finding]:
    """Is each gradient the same where the other inputs need none?"""
    floats, leaves = case.floats, case.leaves()
    outputs = case.outputs(*leaves)
    grads = random_grads(outputs)
    whole = dict(zip(floats, gradients(case, outputs, leaves, grads), strict=True))
    # Of very many inputs only each alone.
    counts = range(len(floats) - 1, 0, -1) if len(floats) <= 5 else (1,)
    for needed in itertools.chain(*(itertools.combinations(floats, n) for n in counts)):
        names = " and ".join(case.names[i] for i in needed)
        where = f"where only {names} {'needs' if len(needed) == 1 else 'need'} a gradient"
        with users_code(where, "needs_input_grad"):
            leaves = case.leaves(needed)
            some = gradients(case, case.outputs(*leaves), leaves, grads)
        for i, gradient in zip(needed, some, strict=True):
            if not close_to_rounding(case, gradient, whole[i]):
                got, right = as_real(gradient), as_real(whole[i])
                k = int((got - right).abs().argmax())
                element = element_text(case, i, k)
                values: dict[str, Any] = {"got": got[k], "right": right[k], "element": element}
                return [finding("needs_input_grad", name=case.names[i], where=where, **values)]
    return []


def takes_any_layout(case: Case) -> list[Finding]:
    """Are the numbers the same for tensors that are not contiguous in memory?"""
    if case.draws:
        return []  # another layout gets the random numbers in another order
    leaves = case.leaves()
    outputs = case.outputs(*leaves)
    ones = [torch.ones_like(output) for output in outputs]
    plain = gradients(case, outputs, leaves, ones)

    for i in case.floats:
        moved = case.changed(not_contiguous, [i]).leaves()
        with users_code(f"where {case.names[i]} is not contiguous", "not contiguous"):
            others = case.outputs(*moved)
            answers = gradients(case, others, moved, ones)
        if not (all_close(case, others, outputs) and all_close(case, answers, plain)):
            return [finding("not contiguous", "layout of input", name=case.names[i])]
    expanded = [one.new_ones(()).expand_as(one) for one in ones]  # from y.sum().backward()
    for grads in (expanded, [not_contiguous(one) for one in ones]):
        with users_code("where grad_output is not contiguous", "not contiguous"):
            answers = gradients(case, case.outputs(*leaves), leaves, grads, copy=False)
        if not all_close(case, answers, plain):
            return [finding("not contiguous", "layout of grad_output")]
    return []


def lets_go_of_memory(case: Case) -> list[Finding]:
    """Is the graph freed with its output? An output that is kept on ctx keeps itself alive."""
    nodes = [node_of(case, output) for output in case.outputs(*case.leaves())]
    watched = [weakref.ref(node) for node in nodes if node is not None]
    nodes.clear()
    return [finding("memory")] if any(node() is not None for node in watched) else []


# ---- Elsewhere than on the samples --------------------------------------------------------------


def far_from_zero(case: Case, elementwise: bool) -> list[Finding]:
    """Is backward finite for inputs 10, 100 and 1000 times as large, in float32 too?

    An elementwise Function must also be right there; another may assume that its inputs are, say,
    probabilities.
    """
    real = [i for i in case.floats if not case.args[i].is_complex()]
    scaled = [case.changed(partial(torch.mul, other=n), real) for n in (10, 100, 1000)]
    for far in itertools.chain(*((large, large.in_float32()) for large in scaled)):
        must_be_right = elementwise and far.is_precise
        try:
            with users_code("far from zero"):
                leaves = far.leaves()
                outputs = far.outputs(*leaves)
                answers = gradients(far, outputs, leaves, [torch.ones_like(y) for y in outputs])
                if all(answer.isfinite().all() for answer in answers) and not must_be_right:
                    continue
                compared = compare(far)
        except Crash:
            continue  # the author never promised to take such inputs
        where = f"far from zero, in {'float64' if far.is_precise else 'float32'}"
        for i, comparison in compared.items():
            if comparison.not_finite.any():
                return [_not_finite(comparison, where)]
            if must_be_right and comparison.wrong.any():
                return [wrong_gradient(i, [compared], f" {where}")]
    return []


def _not_finite(comparison: Comparison, where: str) -> Finding:
    name = comparison.case.names[comparison.position]
    values = _at(comparison, *worst_element(comparison, comparison.not_finite))
    return finding("not finite", name=name, where=where, **values)


def _at(comparison: Comparison, row: int, column: int) -> dict[str, Any]:
    """Which element it is, or that all of them are the same, and the numbers there."""
    case, position = comparison.case, comparison.position
    arg, element = case.args[position], element_text(case, position, column)
    if arg.numel() > 1 and not arg.is_complex() and arg.unique().numel() == 1:
        element = f"all of {case.names[position]}{element[element.index(' = ') :]}"
    return {
        "element": element,
        "got": comparison.backward[row, column].item(),
        "left": comparison.slopes.left[row, column].item() + 0.0,  # -0.0 + 0.0 is 0.0
        "right": comparison.slopes.right[row, column].item() + 0.0,
    }


def at_special_points(
    case: Case, points: list[tuple], declared: bool, elementwise: bool
) -> tuple[list[Finding], list[Kink]]:
    """What backward answers at declared kinks, or at zero and at ties."""
    kinks: list[Kink] = []
    for point in [replace(case, args=args) for args in points] or _zeros_and_ties(case):
        try:
            with users_code("at a kink", "kink"):
                compared = compare(point)
        except Crash:
            if declared:
                raise
            continue  # the point was only a guess
        for comparison in compared.values():
            if comparison.not_finite.any():
                return [_not_finite(comparison, "where forward is finite")], kinks
            if elementwise and comparison.wrong.any() and _is_among(case, point):
                where = " at a point that the samples leave out"
                return [wrong_gradient(comparison.position, [compared], where)], kinks
            if declared or len(case.floats) == 1:
                kinks += kinks_among(comparison)
        if found := ties(compared) or [f for c in compared.values() for f in outside_slopes(c)]:
            return found[:1], kinks
    return [], kinks


def _is_among(case: Case, point: Case) -> bool:
    """Whether each number lies between those of the samples, which may all be positive."""
    pairs = [(as_real(point.args[i]), as_real(case.args[i])) for i in case.floats]
    return all(((new >= old.min()) & (new <= old.max())).all() for new, old in pairs)


def _zeros_and_ties(case: Case) -> list[Case]:
    """Zeros; for each input one of its numbers everywhere; and two inputs that are the same."""

    def one_number(tensor: torch.Tensor) -> torch.Tensor:
        return torch.full_like(tensor, tensor.flatten()[tensor.numel() // 2].item())

    # Arguments that are all positive or all negative are hardly meant to be 0 together.
    signed = [i for i in case.floats if as_real(case.args[i]).sign().unique().numel() > 1]
    zero = [*([i] for i in case.floats), *([signed] if len(signed) > 1 else [])]
    points = [case.changed(torch.zeros_like, some) for some in zero if some]
    points += [case.changed(one_number, [i]) for i in case.floats]
    for i, j in itertools.combinations(case.floats, 2):
        if case.args[i].shape == case.args[j].shape:
            points.append(case.changed(case.args[i].expand_as, [j]))
    return points


def ties(compared: dict[int, Comparison]) -> list[Finding]:
    """Do the gradients of elements that are equal add up to the slope of moving them together?"""
    case = next(iter(compared.values())).case
    moved = [
        i
        for i, c in compared.items()
        if not case.args[i].is_complex() and (c.slopes.kink | c.outside).any()
    ]
    if not moved:
        return []

    def value(shift: float) -> torch.Tensor:
        args = case.changed(lambda arg: arg + shift, moved).args
        return torch.cat([as_real(output) for output in case.truth(*args)])

    total = torch.stack([compared[i].backward.sum(1) for i in moved]).sum(0)
    left = (value(0.0) - value(-case.eps)) / case.eps
    right = (value(case.eps) - value(0.0)) / case.eps
    smooth = left.isfinite() & ((left - right).abs() < 1e-3 * (1 + left.abs()))
    # Only for outputs that are one of the equal elements: eigenvalues, say, have no such sum.
    chosen = torch.cat([as_real(case.args[i]) for i in moved])
    smooth &= (value(0.0)[:, None] - chosen[chosen != 0]).abs().lt(1e-9).any(1)
    wrong = smooth & ((total - left).abs() > 1e-2 * (1 + left.abs()))
    if not wrong.any():
        return []
    row = int(wrong.int().argmax())
    names = " and ".join(case.names[i] for i in moved)
    text, hint = say("ties", names=names, slope=left[row], total=total[row]), say("share a tie")
    return [Finding("ties", f"{text} {hint}", hint)]


def outside_slopes(comparison: Comparison) -> list[Finding]:
    """At a kink, backward may choose any value between the two one-sided slopes, and no other.

    That is so where one output depends on one input. In a sum of several kinks, each may choose.
    """
    if not comparison.outside.any() or slope_of_each(comparison) is None:
        return []
    values = _at(comparison, *_first(comparison.outside))
    return [finding("kink", name=values["element"].rpartition(" = ")[0], **values)]


def _first(marked: torch.Tensor) -> tuple[int, int]:
    return divmod(int(marked.flatten().int().argmax()), marked.shape[1])


def kinks_among(comparison: Comparison) -> list[Kink]:
    """The first kink or jump of forward; the others say the same."""
    slopes = comparison.slopes
    jumps = slopes.steep & (slopes.left.abs().maximum(slopes.right.abs()) > JUMP)
    marked = (slopes.kink | jumps) & slopes.finite
    if not marked.any():
        return []
    row, column = _first(marked)
    values = _at(comparison, row, column)
    where, _, value = values["element"].rpartition(" = ")
    relu = _relu_chooses(comparison) if row == column else None
    left, right, backward = values["left"], values["right"], values["got"]
    return [Kink(where, complex(value).real, left, right, backward, relu)]


def _relu_chooses(comparison: Comparison) -> float | None:
    """What torch.relu answers at 0, if forward is a ReLU there."""
    case, position = comparison.case, comparison.position
    for shift in (-1, 1):
        args = case.changed(partial(torch.add, other=shift), [position]).args
        try:
            with users_code("beside a kink"):
                outputs = case.outputs(*args)
        except Crash:
            return None
        if args[position].is_complex() or not equal_with_nan(outputs[0], args[position].relu()):
            return None
    zero = torch.zeros((), requires_grad=True)
    return torch.autograd.grad(zero.relu(), zero)[0].item()


def is_constant(case: Case) -> bool:
    """Whether forward returns the same for quite other inputs."""
    outputs = case.outputs(*case.args)
    try:
        return all(map(equal_with_nan, outputs, case.outputs(*moved_far(case).args)))
    except Exception:  # such inputs were never promised
        return False


def rounds_to_float32(case: Case) -> bool:
    """Whether results stay the same for a change of an input too small for float32.

    They must follow a larger change: a staircase stays the same under both.
    """

    def moved(size: float, arg: torch.Tensor) -> torch.Tensor:
        wave = torch.arange(1, arg.numel() + 1, dtype=torch.float64, device=arg.device).sin()
        return arg * (1 + size * (2 + wave)).reshape(arg.shape)

    with contextlib.suppress(Exception):  # which other questions tell
        here = _joined(case, *case.args)
        for i in case.floats:
            small, large = (
                here != _joined(case, *case.changed(partial(moved, size), [i]).args)
                for size in (1e-10, 2e-6)
            )
            if large.double().mean() >= 0.2 and (small & large).sum() <= 0.2 * large.sum():
                return True
    return False


def on_complex_inputs(case: Case) -> list[Finding]:
    """A note where forward takes complex inputs, too, and backward lacks conj there."""
    if any(case.args[i].is_complex() for i in case.floats):
        return []
    try:
        with users_code("on complex inputs"):
            compared = compare(in_complex(case))
            wrong = [i for i, comparison in compared.items() if comparison.wrong.any()]
            kinds = {wrong_gradient(i, [compared]).kind for i in wrong}
    except Crash:  # it takes none
        return []
    return [finding("no conj for complex inputs")] if kinds == {"no conj"} else []


# ---- Beyond the first derivative ----------------------------------------------------------------


def second_derivative(case: Case) -> tuple[str, list[Finding]]:
    """Is the derivative of backward right: right, refused, raises, no graph, or wrong?

    >>> from functions import Template
    >>> second_derivative(Case(Template, (torch.ones(2, dtype=torch.float64),)))
    ('right', [])
    """
    leaves = case.leaves()
    try:
        outputs = case.outputs(*leaves)
        grads = [torch.ones_like(output).requires_grad_() for output in outputs]
        inputs = [leaves[i] for i in case.floats]
        first = torch.autograd.grad(outputs, inputs, grads, create_graph=True, allow_unused=True)
        known = [with_graph(grad).sum() for grad in first if grad is not None]
        recorded = bool(known) and torch.stack(known).requires_grad
        if recorded:
            torch.stack(known).sum().backward()  # autograd.grad passes by a once_differentiable
        twice = _backward_as_case(case)
        if recorded and _passes_gradcheck(twice):
            return "right", []
        compared = compare(twice)
    except Exception as error:  # refusing is allowed, and a Function may refuse as it likes
        return "refused" if "once_differentiable" in str(error) else "raises", []
    for i, comparison in compared.items():
        # Without any graph, a backward whose numbers do not depend on the inputs loses nothing.
        if comparison.wrong.any() and (recorded or i < len(case.args)):
            broken = comparison.not_finite
            row, column = worst_element(comparison, broken if broken.any() else comparison.wrong)
            values = _at(comparison, row, column) | {"right": comparison.numerical[row, column]}
            if broken.any():
                return "wrong", [finding("second derivative", "second not finite", **values)]
            key = "second derivative" if recorded else "second not recorded"
            return "wrong", [
                finding("second derivative", key, why=_why_second(case, first), **values)
            ]
    return "right" if recorded else "no graph", []


def _passes_gradcheck(case: Case) -> bool:
    """Whether it is right along random directions, which takes far less time than all elements."""
    how: dict[str, Any] = {"eps": case.eps, "atol": 1e-8, "rtol": 1e-6, "fast_mode": True}
    how |= {"raise_exception": False, "check_undefined_grad": False}
    return gradcheck(partial(_joined, case), case.leaves(), **how)


def _joined(case: Case, *args: Any) -> torch.Tensor:
    """All numbers of all outputs, with their graph."""
    return torch.cat([with_graph(output) for output in case.outputs(*args)])


def backward_in_float32(case: Case) -> list[Finding]:
    """A note where forward is precise and backward rounds inside."""
    precise = case.is_precise and _backward_as_case(case).is_precise
    return [] if precise or not case.is_precise else [finding("float32 inside", who="backward")]


def _backward_as_case(case: Case) -> Case:
    """Backward as a callable of the inputs and of grad_output, to be checked like a forward."""
    grads = random_grads(case.outputs(*case.leaves()))
    count = len(case.args)

    def first(*given: Any) -> tuple:
        args = list(given)
        for i in (*case.floats, *range(count, len(args))):
            args[i] = args[i] if args[i].requires_grad else args[i].detach().requires_grad_()
        return torch.autograd.grad(
            case.outputs(*args[:count]),
            [args[i] for i in case.floats],
            args[count:],
            create_graph=True,
            allow_unused=True,
            materialize_grads=True,
        )

    names = [*case.names[:count], *(f"grad_output{k or ''}" for k in range(len(grads)))]
    kind = inspect.Parameter.POSITIONAL_ONLY
    parameters = [inspect.Parameter(name.replace(" ", "_"), kind) for name in names]
    first.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    twice = replace(case, target=first, args=(*case.args, *grads), watched=None)
    return twice.coarse() if rounds_to_float32(twice) else twice


def _why_second(case: Case, first: Sequence) -> str:
    """The cause, where the graph shows it: a kept tensor that follows a change of the inputs.

    Args:
        first: the gradients, with their graph.
    """
    _, moved = _kept_by_forward(case, case.changed(lambda arg: arg * 1.0001).leaves())
    leaves = case.leaves()
    outputs, kept = _kept_by_forward(case, leaves)
    grads = random_grads(outputs)
    for name in kept:
        if name in moved and not equal_with_nan(kept[name], moved[name]):
            before = gradients(case, outputs, leaves, grads)
            kept[name].data.mul_(1.5)  # which autograd does not notice
            after = gradients(case, outputs, leaves, grads)
            if not all(map(equal_with_nan, before, after)):
                return say("kept for the second", name=name)
    forwards = {function_of(node) for y in outputs for node in nodes_between(y.grad_fn)}
    inside = [node for grad in first if grad is not None for node in nodes_between(grad.grad_fn)]
    for function in map(function_of, inside):
        if function is not None and function not in forwards:
            return say("another backward", name=function.__name__)
    return say("unseen by autograd")


def _kept_by_forward(
    case: Case, leaves: Sequence
) -> tuple[list[torch.Tensor], dict[str, torch.Tensor]]:
    """The outputs, and the tensors on ctx, saved or attributes, that are no inputs or outputs."""
    copies = [copied(leaf) for leaf in leaves]
    returned = case.apply(*copies)
    outputs = [returned[i] for i in case.watched or ()]
    node = node_of(case, outputs[0])
    known = {t.data_ptr() for t in (*copies, *returned) if can_need_grad(t)}
    kept = {f"ctx.{name}": value for name, value in getattr(node, "__dict__", {}).items()}
    for number, saved in enumerate(getattr(node, "saved_tensors", ())):
        kept[f"saved tensor {number}"] = saved
    kept = {k: v for k, v in kept.items() if can_need_grad(v) and v.data_ptr() not in known}
    return outputs, kept


def forward_mode(case: Case) -> list[Finding]:
    """Is `jvp` the derivative along the tangent, where a Function defines one?"""
    if not is_function_class(case.target) or case.target.jvp is torch.autograd.Function.jvp:
        return []
    tangents = random_grads([case.args[i] for i in case.floats], 3)
    with users_code("in jvp", "jvp"), forward_ad.dual_level():
        args = [copied(arg) for arg in case.args]
        for i, tangent in zip(case.floats, tangents, strict=True):
            args[i] = forward_ad.make_dual(args[i], tangent.clone())
        returned = case.apply(*args)
        duals = [forward_ad.unpack_dual(returned[i]) for i in case.watched or ()]
        parts = [torch.zeros_like(d.primal) if d.tangent is None else d.tangent for d in duals]
        given = torch.cat([as_real(part) for part in parts])
    slopes = [slopes_of(case, i) for i in case.floats]
    smooth = torch.stack([s.smooth.all(1) for s in slopes]).all(0)

    def along(directions: Sequence[torch.Tensor]) -> torch.Tensor:
        pairs = zip(slopes, directions, strict=True)
        return torch.stack([s.central @ as_real(d) for s, d in pairs]).sum(0)

    wanted = along(tangents)
    wrong = smooth & ((given - wanted).abs() > case.atol * 10 + case.rtol * wanted.abs())
    if not wrong.any():
        return []
    row = int(wrong.int().argmax())
    of_ones = along([torch.ones_like(tangent) for tangent in tangents])
    advice = say("tangent") if torch.allclose(given[smooth], of_ones[smooth], 1e-5) else ""
    return [finding("jvp", got=given[row], row=row, right=wanted[row], advice=advice)]


def under_torch_func(case: Case) -> tuple[bool, str, list[Finding]]:
    """Whether `torch.func.vmap` and `torch.func.grad` take it, and if not, why."""
    own_rule = getattr(case.target, "vmap", torch.autograd.Function.vmap)
    if is_function_class(case.target) and not has_setup_context(case.target):
        return False, "forward takes ctx; torch.func needs setup_context", []
    if case.draws:
        return False, "forward draws random numbers", []
    floats, other = tuple(case.floats), flipped(case)

    def applied(*args: Any) -> tuple:
        return tuple(case.outputs(*args))

    def total(*args: Any) -> torch.Tensor:
        return _joined(case, *args).sin().sum()

    def agrees(function: Callable, dim: int) -> bool:
        stacked = list(case.args)
        for i in floats:
            stacked[i] = torch.stack([case.args[i], other.args[i]], dim)
        in_dims = tuple(dim if i in floats else None for i in range(len(case.args)))
        batched = torch.func.vmap(function, in_dims)(*stacked)
        single = [function(*case.args), function(*other.args)]
        return all(
            torch.allclose(torch.stack(pair), whole, equal_nan=True)
            for *pair, whole in zip(*single, batched, strict=True)
        )

    try:
        transforms = itertools.product((applied, torch.func.grad(total, floats)), (0, -1))
        right = all(itertools.starmap(agrees, transforms))
    except Exception as error:  # what a transform may stumble on is anything
        if own_rule is torch.autograd.Function.vmap:
            return False, _why_no_vmap(error), []
        values = {"error": type(error).__name__, "words": f"{error}"[:200]}
        return False, "its rule fails", [finding("vmap", "rule for vmap", **values)]
    return (True, "", []) if right else (False, "gives other numbers", [finding("vmap")])


def _why_no_vmap(error: Exception) -> str:
    message = str(error).strip()
    if "does not have vmap support" in message:
        return "no rule for vmap: neither generate_vmap_rule nor a method vmap"
    if "data-dependent control flow" in message or "convert_to_python" in message:
        return "it branches on values"
    return f"{type(error).__name__}: {message.splitlines()[0] if message else ''}"[:120]


def takes_batched_grads(case: Case) -> list[Finding]:
    """A note where `torch.autograd.grad(..., is_grads_batched=True)` gives other numbers."""
    leaves = case.leaves()
    outputs = case.outputs(*leaves)
    pairs = [random_grads(outputs, seed) for seed in (1, 2)]
    single = [gradients(case, case.outputs(*leaves), leaves, grads) for grads in pairs]
    stacked = [torch.stack(both) for both in zip(*pairs, strict=True)]
    how = {"is_grads_batched": True, "allow_unused": True, "materialize_grads": True}
    try:
        batched = torch.autograd.grad(outputs, [leaves[i] for i in case.floats], stacked, **how)
    except Exception:  # many a backward can't be batched, and says so
        return []
    wholes = zip(*single, batched, strict=True)
    right = all(torch.allclose(torch.stack(pair), whole) for *pair, whole in wholes)
    return [] if right else [finding("batched")]


def under_compile(case: Case) -> list[Finding]:
    """Notes on whether `torch.compile` keeps this backward; needs no C++ compiler."""
    leaves = case.leaves()
    inputs = [leaves[i] for i in case.floats]
    applied = case.target.apply if is_function_class(case.target) else case.target

    def total(*tensors: torch.Tensor) -> torch.Tensor:
        args = list(leaves)
        for i, tensor in zip(case.floats, tensors, strict=True):
            args[i] = tensor
        returned = applied(*args)
        returned = returned if isinstance(returned, tuple) else (returned,)
        return torch.stack([y.sin().sum() for y in returned if can_need_grad(y)]).sum()

    def gradients_of(function: Callable) -> tuple[torch.Tensor, ...]:
        return torch.autograd.grad(function(*inputs), inputs)

    eager, compiled = gradients_of(total), partial(torch.compile, backend="aot_eager")
    transformed = torch.func.grad(total, tuple(range(len(inputs))))
    detached = [tensor.detach() for tensor in inputs]
    ways = {
        "torch.compile": lambda: gradients_of(compiled(total)),
        "torch.compile(torch.func.grad(...))": lambda: compiled(transformed)(*detached),
    }
    notes = []
    for way, run in ways.items():
        torch.compiler.reset()
        try:
            if not all(map(torch.allclose, run(), eager)):
                notes.append(finding("compile loses", name=way))
        except Exception as error:  # what a compiler may stumble on is anything
            words = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"[:150]
            notes.append(finding("compile refuses", name=way, error=words))
    return notes or [finding("compile keeps")]


def distance_of_surrogate(cases: list[Case]) -> tuple[float, Finding]:
    """How far backward is from the true derivative of forward, and where it is farthest."""
    farthest, note = 0.0, finding("surrogate is exact")
    for case in cases:
        for i, backward in backward_jacobians(case).items():
            comparison = Comparison(case, i, backward, slopes_of(case, i, case.outputs))
            row, column = worst_element(comparison, torch.ones_like(comparison.wrong))
            right = comparison.numerical[row, column].item()
            distance = abs(backward[row, column].item() - right)
            if distance > farthest:
                values = _at(comparison, row, column) | {"right": right}
                farthest, note = distance, finding("farthest", **values)
    return farthest, note


def node_of(case: Case, output: torch.Tensor) -> Any:
    """The node of the Function in the graph of its output, or None."""
    waiting: list[Any] = [output.grad_fn]
    if is_function_class(case.target):
        cls = getattr(type(output.grad_fn), "_forward_cls", None)
        return output.grad_fn if cls is not None and issubclass(cls, case.target) else None
    while waiting:
        node = waiting.pop()
        if hasattr(type(node), "_forward_cls"):
            return node
        if node is not None:
            waiting += [following for following, _ in node.next_functions]
    return None

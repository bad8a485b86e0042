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
from typing import Any

import torch
from torch.autograd import forward_ad

from lab.checking.causes import table_of, wrong_gradient
from lab.checking.numbers import (
    Comparison,
    as_real,
    backward_jacobians,
    close_to_rounding,
    compare,
    element_text,
    equal_with_nan,
    gradients,
    random_grads,
    slopes_of,
    worst_element,
)
from lab.checking.samples import (
    Case,
    can_need_grad,
    copied,
    flipped,
    has_setup_context,
    is_function_class,
    not_contiguous,
)
from lab.checking.users_code import Crash, users_code
from lab.checking.verdict import JUMP, Finding, Kink


def is_repeatable(case: Case) -> list[Finding]:
    """Do the same inputs give the same numbers, also after calls on other inputs?"""
    leaves = case.leaves()
    with users_code("called a second time", "second call"):
        outputs, again = case.outputs(*leaves), case.outputs(*leaves)
    if not all(map(equal_with_nan, outputs, again)):
        text = "forward is not deterministic: the same inputs gave different outputs, though "
        text += "PyTorch's random state was the same. No gradient can be checked."
        return [Finding("not deterministic", text)]
    grads = random_grads(outputs)
    first = gradients(case, outputs, leaves, grads)
    try:
        second = gradients(case, outputs, leaves, grads)
    except Exception:  # it frees what forward saved, which is allowed; see `frees_its_buffers`
        second = gradients(case, case.outputs(*leaves), leaves, grads)
    if not all(map(equal_with_nan, first, second)):
        text = "backward is not deterministic: called twice on the same graph, it gives two "
        return [Finding("not deterministic", text + "results. Does it change something on ctx?")]
    with users_code("called on other inputs before backward", "shared state"):
        outputs = case.outputs(*leaves)
        for other in other_calls(case):
            with contextlib.suppress(Exception):  # such inputs may not fit
                other.outputs(*other.leaves())
        third = gradients(case, outputs, leaves, grads)
    if not all(map(equal_with_nan, first, third)):
        text = "A second call before backward changes the gradients of the first: something is "
        return [Finding("shared state", text + "kept on the class or globally. Keep it on ctx.")]
    return []


def other_calls(case: Case) -> list[Case]:
    """Other values; other numbers beside the tensors; other shapes."""
    numbers = [0.6 * arg + 0.1 if isinstance(arg, float) else arg for arg in flipped(case).args]
    first_rows: list[Any] = list(numbers)
    for i in case.floats:
        first_rows[i] = case.args[i][:1] if case.args[i].dim() else case.args[i]
    return [replace(case, args=tuple(args)) for args in (numbers, first_rows)]


def frees_its_buffers(case: Case) -> list[str]:
    """A note where backward can run only once for each forward."""
    leaves = case.leaves()
    outputs = case.outputs(*leaves)
    grads = random_grads(outputs)
    gradients(case, outputs, leaves, grads)
    try:
        gradients(case, outputs, leaves, grads)
    except Exception as error:  # whatever a missing buffer leads to
        return [
            "backward runs only once for each forward, as if what forward saved were freed: with "
            f"retain_graph=True the second call raises {type(error).__name__}."
        ]
    return []


def is_linear(case: Case) -> list[Finding]:
    """Is backward linear in grad_output? That is what makes the sum over several paths right."""
    leaves = case.leaves()

    def backward(grads: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        return gradients(case, case.outputs(*leaves), leaves, grads)

    def close(some: Sequence[torch.Tensor], others: Sequence[torch.Tensor]) -> bool:
        return all(close_to_rounding(case, a, b) for a, b in zip(some, others, strict=True))

    one, other = (random_grads(case.outputs(*leaves), seed) for seed in (1, 2))
    with users_code("for several grad_outputs"):
        once, more = backward(one), backward(other)
        both = backward([a + 3 * b for a, b in zip(one, other, strict=True)])
        nothing = backward([torch.zeros_like(a) for a in one])
        large = backward([1e6 * a for a in one])
        ones = backward([torch.ones_like(a) for a in one])
    if not all(gradient.isfinite().all() for gradient in (*once, *more)):
        return []  # which is told by the comparison of values
    if any(gradient.any() for gradient in once) and close(once, more) and close(once, both):
        text = (
            "backward does not depend on grad_output, the gradient of what comes after. Multiply "
            "the derivative by it."
        )
        return [Finding("ignores grad_output", text, text)]
    if len(one) > 1:
        with users_code("for one output at a time"):
            alone = [backward([g if j == k else torch.zeros_like(g) for j, g in enumerate(one)])
                     for k in range(len(one))]  # fmt: skip
            without = [
                gradients(case, [case.outputs(*leaves)[k]], leaves, [one[k]])
                for k in range(len(one))
            ]
        for parts in (alone, without):
            if not close(once, [torch.stack(each).sum(0) for each in zip(*parts, strict=True)]):
                text = (
                    "The gradient is wrong where several outputs are used: it is not the sum of "
                    "the gradients for each output alone. Add them."
                )
                return [Finding("wrong value", text)]
    summed = [a + 3 * b for a, b in zip(once, more, strict=True)]
    if close(both, summed) and close(large, [1e6 * a for a in once]):
        return []
    text = (
        "backward is not linear in grad_output: for the sum of two grad_outputs it does not return "
        "the sum of its two results, so the gradient is wrong where the output is used twice."
    )
    advice = "Multiply by grad_output; do not clip, normalise, round or compare it."
    if any(gradient.any() for gradient in nothing):
        advice = "It is not zero for a grad_output of 0: something is added to it. Multiply."
    elif len(one) == 1 and all(
        slope.shape == one[0].shape and close([got], [slope * one[0].clamp(min=0)])
        for slope, got in zip(ones, once, strict=True)
        if not one[0].is_complex()
    ):
        advice = (
            "It is 0 wherever grad_output is negative: take the mask from the input of forward, "
            "not from grad_output."
        )
    return [Finding("not linear", f"{text} {advice}", advice)]


def needs_every_input(case: Case) -> list[Finding]:
    """Is each gradient the same where the other inputs need none?"""
    floats = case.floats
    leaves = case.leaves()
    outputs = case.outputs(*leaves)
    grads = random_grads(outputs)
    whole = dict(zip(floats, gradients(case, outputs, leaves, grads), strict=True))
    # Of very many inputs only each alone.
    counts = range(len(floats) - 1, 0, -1) if len(floats) <= 5 else (1,)
    for needed in itertools.chain(*(itertools.combinations(floats, n) for n in counts)):
        names = " and ".join(case.names[i] for i in needed)
        where = f"where only {names} {'needs' if len(needed) == 1 else 'need'} a gradient"
        try:
            with users_code(where):
                leaves = case.leaves(needed)
                some = gradients(case, case.outputs(*leaves), leaves, grads)
        except Crash as crash:
            return [Finding("needs_input_grad", crash.told)]
        for i, gradient in zip(needed, some, strict=True):
            if close_to_rounding(case, gradient, whole[i]):
                continue
            element = int((as_real(gradient) - as_real(whole[i])).abs().argmax())
            text = (
                f"The gradient for {case.names[i]} is wrong {where}: at "
                f"{element_text(case, i, element)} it is {as_real(gradient)[element]:.6g}, and "
                f"{as_real(whole[i])[element]:.6g} where all inputs need one. Check what backward "
                "does with ctx.needs_input_grad."
            )
            return [Finding("needs_input_grad", text)]
    return []


def takes_any_layout(case: Case) -> list[Finding]:
    """Are the numbers the same for tensors that are not contiguous in memory?"""
    if case.draws:
        return []  # another layout gets the random numbers in another order
    leaves = case.leaves()
    outputs = case.outputs(*leaves)
    ones = [torch.ones_like(output) for output in outputs]
    plain = gradients(case, outputs, leaves, ones)

    def differ(some: Sequence[torch.Tensor], others: Sequence[torch.Tensor]) -> bool:
        return not all(close_to_rounding(case, a, b) for a, b in zip(some, others, strict=True))

    for i in case.floats:
        args = list(case.args)
        args[i] = not_contiguous(args[i])
        moved = replace(case, args=tuple(args)).leaves()
        name = case.names[i]
        with users_code(f"where {name} is not contiguous", "not contiguous"):
            others = case.outputs(*moved)
            answers = gradients(case, others, moved, ones)
        if differ(others, outputs) or differ(answers, plain):
            text = f"The numbers change where {name} is not contiguous. Use .reshape, and index "
            return [Finding("not contiguous", text + "tensors instead of their memory.")]
    with users_code("where grad_output is not contiguous", "not contiguous"):
        for grads in (
            [one.new_ones(()).expand_as(one) for one in ones],  # from y.sum().backward()
            [not_contiguous(one) for one in ones],  # from a transpose
        ):
            answers = gradients(case, case.outputs(*leaves), leaves, grads, copy=False)
            if differ(answers, plain):
                text = "The gradient changes where grad_output is not contiguous. Use .reshape, "
                return [Finding("not contiguous", text + "and leave the memory alone.")]
    return []


def far_from_zero(case: Case, elementwise: bool) -> list[Finding]:
    """Is backward finite for inputs 10, 100 and 1000 times as large, in float32 too?

    An elementwise Function must also be right there; another may assume that its inputs are, say,
    probabilities.
    """
    for factor, dtype in itertools.product((10, 100, 1000), (torch.float64, torch.float32)):
        args = tuple(
            (factor * arg).to(dtype)
            if i in case.floats and not arg.is_complex()
            else arg.to(dtype)
            if can_need_grad(arg) and not arg.is_complex()
            else arg
            for i, arg in enumerate(case.args)
        )
        far = replace(case, args=args)
        far = far.coarse() if dtype == torch.float32 else far
        try:
            with users_code("far from zero"):
                leaves = far.leaves()
                outputs = far.outputs(*leaves)
                answers = gradients(far, outputs, leaves, [torch.ones_like(y) for y in outputs])
                fine = all(answer.isfinite().all() for answer in answers)
                if fine and not (elementwise and far.precision < 1e-10):
                    continue
                compared = compare(far)
        except Crash:
            continue  # the author never promised to take such inputs
        for i, comparison in compared.items():
            where = f"far from zero, in {str(dtype).removeprefix('torch.')}"
            if comparison.not_finite.any():
                return [_not_finite(comparison, where)]
            if elementwise and far.precision < 1e-10 and comparison.wrong.any():
                row, column = worst_element(comparison, comparison.wrong)
                text = (
                    f"The gradient for {case.names[i]} is wrong {where}: at "
                    f"{element_text(far, i, column)} backward gives "
                    f"{comparison.backward[row, column]:.6g}, the numerical gradient is "
                    f"{comparison.numerical[row, column]:.6g}."
                )
                table = table_of(comparison, comparison.wrong)
                return [Finding("wrong value", text, "", table)]
    return []


def _not_finite(comparison: Comparison, where: str) -> Finding:
    row, column = worst_element(comparison, comparison.not_finite)
    case, slopes = comparison.case, comparison.slopes
    text = (
        f"The gradient for {case.names[comparison.position]} is not finite {where}: at "
        f"{element_text(case, comparison.position, column)} backward gives "
        f"{comparison.backward[row, column]:.4g}, while forward is finite and its slope is "
        f"{slopes.left[row, column]:.4g} from the left and {slopes.right[row, column]:.4g} from "
        "the right. One such number ruins every weight upstream."
    )
    return Finding("not finite", text)


# ---- Points without a derivative ----------------------------------------------------------------


def at_special_points(
    case: Case, points: list[tuple], declared: bool
) -> tuple[list[Finding], list[Kink]]:
    """What backward answers at kinks, at zero and at ties."""
    findings: list[Finding] = []
    kinks: list[Kink] = []
    for args in points or zeros_and_ties(case):
        there = replace(case, args=args)
        try:
            with users_code("at a kink", "kink"):
                compared = compare(there)
        except Crash:
            if declared:
                raise
            continue  # the point was only a guess
        findings += [
            _not_finite(comparison, "where forward is finite")
            for comparison in compared.values()
            if comparison.not_finite.any()
        ]
        if not findings:
            findings += ties(compared)
        for comparison in compared.values():
            findings += outside_slopes(comparison)
            if declared or len(case.floats) == 1:
                kinks += kinks_among(comparison)
        if findings:
            break
    return findings[:1], kinks


def zeros_and_ties(case: Case) -> list[tuple]:
    """Zeros; for each input one number in all its elements; and two inputs that are the same."""
    zeros = tuple(
        torch.zeros_like(arg) if i in case.floats else arg for i, arg in enumerate(case.args)
    )
    points = [zeros]
    for i in case.floats:
        points.append((*case.args[:i], zeros[i], *case.args[i + 1 :]))
        level = case.args[i].mean().expand_as(case.args[i]).clone()
        points.append((*case.args[:i], level, *case.args[i + 1 :]))
    for i, j in itertools.combinations(case.floats, 2):
        if case.args[i].shape == case.args[j].shape:
            points.append((*case.args[:j], case.args[i], *case.args[j + 1 :]))
    unique: list[tuple] = []
    for point in points:
        if not any(
            all(
                a is b or (can_need_grad(a) and torch.equal(a, b))
                for a, b in zip(point, other, strict=True)
            )
            for other in unique
        ):
            unique.append(point)
    return unique


def ties(compared: dict[int, Comparison]) -> list[Finding]:
    """Do the gradients of elements that are equal add up to the slope of moving them together?"""
    first = next(iter(compared.values()))
    case = first.case
    total, names = torch.zeros(len(first.backward), dtype=torch.float64), []
    moved = []
    for i, comparison in compared.items():
        if case.args[i].is_complex() or not (comparison.slopes.kink | comparison.outside).any():
            continue
        total += comparison.backward.sum(1)
        names.append(case.names[i])
        moved.append(i)

    def value(shift: float) -> torch.Tensor:
        args = [arg + shift if i in moved else arg for i, arg in enumerate(case.args)]
        return torch.cat([as_real(output) for output in case.truth(*args)])

    if not moved:
        return []
    left = (value(0.0) - value(-case.eps)) / case.eps
    right = (value(case.eps) - value(0.0)) / case.eps
    smooth = left.isfinite() & ((left - right).abs() < 1e-3 * (1 + left.abs()))
    wrong = smooth & ((total - left).abs() > 1e-2 * (1 + left.abs()))
    if not wrong.any():
        return []
    row = int(wrong.int().argmax())
    text = (
        f"At a tie the gradients are wrong: where all elements of {' and '.join(names)} are equal, "
        f"and move together, an output has the slope {left[row]:.4g}, while the gradients that "
        f"backward gives them add up to {total[row]:.4g}. Give the gradient to one of them, or "
        "divide it among them."
    )
    return [Finding("ties", text)]


def outside_slopes(comparison: Comparison) -> list[Finding]:
    """At a kink, backward may choose any value between the two one-sided slopes, and no other."""
    if not comparison.outside.any():
        return []
    row, column = divmod(int(comparison.outside.flatten().int().argmax()), len(comparison.wrong.T))
    text = (
        f"At {element_text(comparison.case, comparison.position, column)} forward has a kink, its "
        f"slope is {comparison.slopes.left[row, column]:.4g} from the left and "
        f"{comparison.slopes.right[row, column]:.4g} from the right. Backward gives "
        f"{comparison.backward[row, column]:.4g}; choose a value between the two."
    )
    return [Finding("kink", text)]


def kinks_among(comparison: Comparison) -> list[Kink]:
    """The first kink or jump of forward; the others say the same."""
    slopes = comparison.slopes
    jumps = slopes.steep & (slopes.left.abs().maximum(slopes.right.abs()) > JUMP)
    marked = (slopes.kink | jumps) & slopes.finite
    if not marked.any():
        return []
    row, column = divmod(int(marked.flatten().int().argmax()), marked.shape[1])
    where, _, value = element_text(comparison.case, comparison.position, column).rpartition(" = ")
    return [
        Kink(
            where=where,
            value=complex(value).real,
            left=slopes.left[row, column].item(),
            right=slopes.right[row, column].item(),
            backward=comparison.backward[row, column].item(),
            relu=_relu_chooses(comparison, row, column),
        )
    ]


def _relu_chooses(comparison: Comparison, row: int, column: int) -> float | None:
    """What torch.relu answers at the same point, if forward is a ReLU there."""
    case, position = comparison.case, comparison.position
    shifted = [case.args[position] + shift for shift in (-1, 1)]
    try:
        with users_code("beside a kink"):
            outputs = [
                case.outputs(*case.args[:position], arg, *case.args[position + 1 :])[0]
                for arg in shifted
            ]
    except Crash:
        return None
    if row != column or not all(map(equal_with_nan, outputs, map(torch.relu, shifted))):
        return None
    leaf = case.leaves()[position]
    (gradient,) = torch.autograd.grad(torch.relu(leaf).sum(), leaf)
    return gradient.flatten()[column].item()


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
        known = [as_real_graph(grad).sum() for grad in first if grad is not None]
        recorded = bool(known) and torch.stack(known).requires_grad
        if recorded:
            torch.stack(known).sum().backward()  # autograd.grad passes by a once_differentiable
        twice = backward_as_case(case)
        compared = compare(twice)
    except Exception as error:  # refusing is allowed, and a Function may refuse as it likes
        return "refused" if "once_differentiable" in str(error) else "raises", []
    for i, comparison in compared.items():
        # Without any graph, a backward whose numbers do not depend on the inputs loses nothing.
        if comparison.wrong.any() and (recorded or i < len(case.args)):
            row, column = worst_element(comparison, comparison.wrong)
            text = (
                f"The second derivative is silently wrong: at {element_text(twice, i, column)} "
                f"a second backward gives {comparison.backward[row, column]:.4g}, the numerical "
                f"gradient of the first is {comparison.numerical[row, column]:.4g}. "
            )
            return "wrong", [Finding("second derivative", text + _why_second(case))]
    return "right" if recorded else "no graph", []


def as_real_graph(tensor: torch.Tensor) -> torch.Tensor:
    """The same numbers as real ones, with their graph."""
    dense = tensor if tensor.layout is torch.strided else tensor.to_dense()
    return torch.view_as_real(dense).flatten() if dense.is_complex() else dense.flatten()


def backward_as_case(case: Case) -> Case:
    """Backward as a callable of the inputs and of grad_output, to be checked like a forward."""
    grads = random_grads(case.outputs(*case.leaves()))
    count, names = len(case.args), case.names

    def first(*args: Any) -> tuple:
        args = tuple(
            arg.detach().requires_grad_()
            if can_need_grad(arg) and i not in case.passive and not arg.requires_grad
            else arg
            for i, arg in enumerate(args)
        )
        outputs = case.outputs(*args[:count])
        return torch.autograd.grad(
            outputs,
            [args[i] for i in case.floats],
            args[count:],
            create_graph=True,
            allow_unused=True,
            materialize_grads=True,
        )

    several = len(grads) > 1
    parameters = [inspect.Parameter(name.replace(" ", "_"), inspect.Parameter.POSITIONAL_ONLY)
                  for name in names]  # fmt: skip
    parameters += [
        inspect.Parameter(f"grad_output{k if several else ''}", inspect.Parameter.POSITIONAL_ONLY)
        for k in range(len(grads))
    ]
    first.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    twice = replace(case, target=first, args=(*case.args, *grads), watched=None)
    return twice.coarse() if rounds_to_float32(twice) else twice


def _why_second(case: Case) -> str:
    """The cause, where the graph shows it."""
    leaves = case.leaves()
    copies = [copied(leaf) for leaf in leaves]
    returned = case.apply(*copies)
    output = next(r for r in returned if can_need_grad(r) and r.requires_grad)
    node = node_of(case, output)
    known = {t.data_ptr() for t in (*copies, *returned) if isinstance(t, torch.Tensor)}
    kept = {f"ctx.{name}": value for name, value in vars(node).items()} if node is not None else {}
    for number, saved in enumerate(getattr(node, "saved_tensors", ())):
        kept[f"saved tensor {number}"] = saved
    for name, value in kept.items():
        if can_need_grad(value) and value.data_ptr() not in known:
            return (
                f"Forward computed {name} and kept it; for a second derivative it is a constant. "
                "Save inputs and outputs, compute the rest again in backward, or refuse: "
                "@once_differentiable above backward, below @staticmethod."
            )
    return (
        "Autograd does not see all that backward computes. Compute it from the saved tensors with "
        "PyTorch's operations (no .detach(), NumPy or torch.no_grad(), and create_graph=True in an "
        "inner torch.autograd.grad), or refuse: @once_differentiable above backward, below "
        "@staticmethod."
    )


def rounds_to_float32(case: Case) -> bool:
    """Whether results stay the same for a change of an input too small for float32.

    They must follow a larger change: a staircase stays the same under both.
    """

    def changed(position: int, size: float) -> torch.Tensor:
        args = list(case.args)
        wave = torch.arange(1, args[position].numel() + 1, dtype=torch.float64).sin()
        args[position] = args[position] * (1 + size * (2 + wave)).reshape(args[position].shape)
        pairs = zip(case.outputs(*case.args), case.outputs(*args), strict=True)
        return torch.cat([as_real(a) != as_real(b) for a, b in pairs])

    for i in case.floats:
        try:
            small, large = changed(i, 1e-10), changed(i, 2e-6)
        except Exception:  # which other questions tell
            return False
        moved = large.double().mean() >= 0.2
        if moved and (small & large).sum() <= 0.2 * large.sum():
            return True
    return False


def forward_mode(case: Case) -> list[Finding]:
    """Is `jvp` the derivative along the tangent, where a Function defines one?"""
    if not is_function_class(case.target) or case.target.jvp is torch.autograd.Function.jvp:
        return []
    tangents = random_grads([case.args[i] for i in case.floats], 3)
    try:
        with users_code("in jvp"), forward_ad.dual_level():
            args = [copied(arg) for arg in case.args]
            for i, tangent in zip(case.floats, tangents, strict=True):
                args[i] = forward_ad.make_dual(args[i], tangent)
            every = case.apply(*args)
            outputs = every if case.watched is None else [every[i] for i in case.watched]
            duals = [forward_ad.unpack_dual(output).tangent for output in outputs]
            given = torch.cat(
                [as_real(torch.zeros_like(y) if d is None else d)
                 for y, d in zip(outputs, duals, strict=True)]
            )  # fmt: skip
    except Crash as crash:
        return [Finding("jvp", crash.told)]
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
    text = (
        f"jvp is wrong: for a tangent of random numbers it gives {given[row]:.4g} for output "
        f"element {row}, the numerical derivative along the tangent is {wanted[row]:.4g}."
    )
    if torch.allclose(given[smooth], along([torch.ones_like(t) for t in tangents])[smooth], 1e-5):
        text += " It returns the derivative itself: multiply it by the tangent."
    return [Finding("jvp", text)]


def lets_go_of_memory(case: Case) -> list[Finding]:
    """Is the graph freed with its output? An output that is kept on ctx keeps itself alive."""
    outputs = case.outputs(*case.leaves())
    nodes = [node_of(case, output) for output in outputs]
    watched = [weakref.ref(node) for node in nodes if node is not None]
    outputs.clear()
    nodes.clear()
    if all(node() is None for node in watched):
        return []
    text = (
        "An output is kept on ctx, so the graph keeps itself alive and memory grows until Python's "
        "garbage collector runs. Use ctx.save_for_backward for it."
    )
    return [Finding("memory", text)]


def under_torch_func(case: Case) -> tuple[bool, str, list[Finding]]:
    """Whether `torch.func.vmap` and `torch.func.grad` take it, and if not, why."""
    if is_function_class(case.target) and not has_setup_context(case.target):
        return False, "forward takes ctx; torch.func needs setup_context", []
    if case.draws:
        return False, "forward draws random numbers", []
    floats = tuple(case.floats)
    other = flipped(case)
    stacked = [
        torch.stack([arg, other.args[i]]) if i in floats else arg for i, arg in enumerate(case.args)
    ]
    in_dims = tuple(0 if i in floats else None for i in range(len(case.args)))

    def applied(*args: Any) -> tuple:
        return tuple(case.outputs(*args))

    def total(*args: Any) -> torch.Tensor:
        parts = [as_real_graph(output).sin().sum() for output in case.outputs(*args)]
        return torch.stack(parts).sum()

    def both(function: Callable) -> bool:
        batched = torch.func.vmap(function, in_dims, randomness="same")(*stacked)
        single = [function(*case.args), function(*other.args)]
        return all(
            torch.allclose(torch.stack(pair), whole, equal_nan=True)
            for *pair, whole in zip(*single, batched, strict=True)
        )

    try:
        right = both(applied) and both(torch.func.grad(total, floats))
    except Exception as error:  # what a transform may stumble on is anything
        if getattr(
            case.target, "vmap", None
        ) is torch.autograd.Function.vmap or not is_function_class(case.target):
            return False, _why_no_vmap(error), []
        text = (
            f"The rule for vmap raises {type(error).__name__} or returns a wrong dimension: {error}"
        )
        return False, "its rule fails", [Finding("vmap", text[:300])]
    if right:
        return True, "", []
    text = "Under torch.func.vmap it gives other numbers than one call for each element."
    return False, "gives other numbers", [Finding("vmap", text)]


def _why_no_vmap(error: Exception) -> str:
    message = str(error).strip()
    if "override the setup_context" in message:
        return "forward takes ctx; torch.func needs setup_context"
    if "does not have vmap support" in message:
        return "no rule for vmap: neither generate_vmap_rule nor a method vmap"
    if "data-dependent control flow" in message or "convert_to_python" in message:
        return "it branches on values"
    return f"{type(error).__name__}: {message.splitlines()[0] if message else ''}"[:120]


def takes_batched_grads(case: Case) -> list[str]:
    """A note where `torch.autograd.grad(..., is_grads_batched=True)` gives other numbers."""
    leaves = case.leaves()
    outputs = case.outputs(*leaves)
    pairs = [random_grads(outputs, seed) for seed in (1, 2)]
    inputs = [leaves[i] for i in case.floats]
    single = [gradients(case, case.outputs(*leaves), leaves, grads) for grads in pairs]
    try:
        batched = torch.autograd.grad(
            outputs,
            inputs,
            [torch.stack(both) for both in zip(*pairs, strict=True)],
            is_grads_batched=True,
            allow_unused=True,
            materialize_grads=True,
        )
    except Exception:  # many a backward can't be batched, and says so
        return []
    if all(
        torch.allclose(torch.stack(pair), whole)
        for *pair, whole in zip(*single, batched, strict=True)
    ):
        return []
    return ["With is_grads_batched=True (torch.autograd.functional's vectorize) gradients differ."]


def on_complex_inputs(case: Case) -> list[str]:
    """A note where forward takes complex inputs, too, and backward is wrong there."""
    if any(case.args[i].is_complex() for i in case.floats):
        return []
    args = tuple(
        torch.complex(arg, arg.flip(list(range(arg.dim())))) if i in case.floats else arg
        for i, arg in enumerate(case.args)
    )
    there = replace(case, args=args)
    try:
        with users_code("on complex inputs"):
            compared = compare(there)
    except Crash:
        return []
    except (RuntimeError, TypeError, ValueError):  # forward does not return what it did
        return []
    wrong = [i for i, comparison in compared.items() if comparison.wrong.any()]
    if not wrong or any(wrong_gradient(i, [compared]).kind != "no conj" for i in wrong):
        return []
    return [
        "For complex inputs, which forward takes too, conj is missing in backward: there it must "
        "multiply by the conjugate of the derivative."
    ]


def under_compile(case: Case) -> list[str]:
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
        parts = [output.sin().sum() for output in returned if can_need_grad(output)]
        return torch.stack(parts).sum()

    eager = torch.autograd.grad(total(*inputs), inputs)
    positions = tuple(range(len(inputs)))
    ways: dict[str, Callable] = {
        "torch.compile": lambda: torch.autograd.grad(
            torch.compile(total, backend="aot_eager")(*inputs), inputs
        ),
        "torch.compile(torch.func.grad(...))": lambda: torch.compile(
            torch.func.grad(total, positions), backend="aot_eager"
        )(*[tensor.detach() for tensor in inputs]),
    }
    notes = []
    for way, compiled in ways.items():
        torch.compiler.reset()
        try:
            kept = all(map(torch.allclose, compiled(), eager))
        except Exception as error:  # what a compiler may stumble on is anything
            words = str(error).strip().partition("\n")[0]
            notes.append(f"{way} refuses it: {type(error).__name__}: {words}"[:200])
            continue
        if not kept:
            notes.append(f"{way} does not use this backward: its gradients are others.")
    return notes or ["torch.compile keeps this backward."]


def distance_of_surrogate(cases: list[Case]) -> tuple[float, str]:
    """How far backward is from the true derivative of forward, and where it is farthest."""
    farthest, said = 0.0, "The surrogate is the derivative wherever it was tried."
    for case in cases:
        backward = backward_jacobians(case)
        for i in case.floats:
            comparison = Comparison(case, i, backward[i], slopes_of(case, i, case.outputs))
            everywhere = torch.ones_like(comparison.wrong)
            row, column = worst_element(comparison, everywhere)
            numerical = comparison.numerical[row, column]
            distance = (backward[i][row, column] - numerical).abs().item()
            if distance > farthest:
                farthest = distance
                said = (
                    f"Farthest from the derivative at {element_text(case, i, column)}: backward "
                    f"gives {backward[i][row, column]:.4g}, the numerical gradient is "
                    f"{numerical:.4g}."
                )
    return farthest, said


def node_of(case: Case, output: torch.Tensor) -> Any:
    """The node of the Function in the graph of its output, or None where there is none."""
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


def is_constant(case: Case) -> bool:
    """Whether forward returns the same for quite other inputs."""
    outputs = case.outputs(*case.args)
    moved = [arg * 1.1 + 0.37 if i in case.floats else arg for i, arg in enumerate(case.args)]
    try:
        return all(map(equal_with_nan, outputs, case.outputs(*moved)))
    except Exception:  # such inputs were never promised
        return False

"""The questions that are put to a Function, one a small function.

Each takes a case, one Function with one tuple of arguments, and returns what it found.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.autograd.gradcheck import GradcheckError

from lab.checking.hints import explain, kinks_among
from lab.checking.numbers import (
    RTOL,
    analytic_jacobians,
    element_text,
    equal_with_nan,
    exceeds_tolerance,
    gradients,
    largest_error,
    numerical_jacobians,
    one_sided_differ,
    worst_element,
)
from lab.checking.samples import (
    Case,
    declared_inputs,
    flipped,
    has_setup_context,
    is_float,
    not_contiguous,
)
from lab.checking.users_code import Crash, users_code
from lab.checking.verdict import JUMP, Finding, Kink


def first_look(case: Case, notes: list[str]) -> list[Finding]:
    """One forward and one backward, called as PyTorch calls them: what came back, what was edited.

    Nothing here looks at the numbers of a gradient.
    """
    args = [arg.clone() if isinstance(arg, torch.Tensor) else arg for arg in case.leaves()]
    before = [arg.clone() if isinstance(arg, torch.Tensor) else arg for arg in args]
    with users_code("in forward"):
        every = case.apply(*args)
    every = every if isinstance(every, tuple) else (every,)
    outputs = [output for output in every if is_float(output)]
    findings = _edited(args, before, case.names, "forward")
    if findings:
        return findings
    node = _node(case, outputs[0]) if outputs else None
    if node is None:
        return [
            Finding(
                "bypassed",
                "Backward is never reached: the output does not come from .apply, or is no "
                "floating-point tensor. A forward that is called by hand, .forward(...), records "
                "nothing for this Function.",
            )
        ]
    if not all(output.isfinite().all() for output in outputs):
        text = "forward gives inf or nan on these inputs: they lie outside its domain. "
        return [Finding("not finite", text + "Let sample_inputs() choose others.")]
    if outputs[0].dtype != torch.float64:
        text = f"forward computes in {_kind_of(outputs[0])} though it is given float64: "
        return [Finding("dtype", text + "too coarse to be checked. Keep the dtype of the input.")]
    notes += _other_dtype(case)
    handed = [torch.randn_like(out) if is_float(out) else torch.zeros_like(out) for out in every]
    kept, results = [g.clone() for g in handed], [out.clone() for out in every]
    if inspect.isclass(case.target):
        with users_code("in backward"), torch.no_grad():
            returned = node.apply(*handed)
        returned = returned if isinstance(returned, tuple) else (returned,)
    else:  # the node is somewhere inside, and what it returns is not seen
        with users_code("in backward"):
            gradients(case, outputs, args, [grad for grad in handed if is_float(grad)])
        returned = None
    findings += _edited(handed, kept, ["grad_output"] * len(handed), "backward")
    findings += _edited(args, before, case.names, "backward")
    findings += _edited(every, results, ["the output"] * len(every), "backward")
    return findings + ([] if returned is None else _count_and_shapes(case, returned, notes))


def _node(case: Case, output: torch.Tensor) -> Any:
    """The node of the Function in the graph of its output, or None where there is none."""
    node = output.grad_fn
    cls = getattr(type(node), "_forward_cls", None)
    if inspect.isclass(case.target):
        return node if cls is not None and issubclass(cls, case.target) else None
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if hasattr(type(node), "_forward_cls"):
            return node
        if node is not None:
            waiting += [following for following, _ in node.next_functions]
    return None


def _edited(tensors: Sequence, before: Sequence, names: Sequence[str], who: str) -> list[Finding]:
    findings = []
    for tensor, old, name in zip(tensors, before, names, strict=False):
        if isinstance(tensor, torch.Tensor) and not equal_with_nan(tensor, old):
            kind = "edits grad_output" if name == "grad_output" else "edits input"
            text = (
                f"{who} edits {name}, a tensor that it was handed: others hold the same tensor "
                "and now read other numbers. "
            )
            if who == "forward":
                text += f"If it is meant to work in place, say so: ctx.mark_dirty({name}). If not: "
            text += (
                f"Work on a copy: {name}.clone(), or an operation without the trailing underscore."
            )
            findings.append(Finding(kind, text))
    return findings


def _count_and_shapes(case: Case, returned: tuple, notes: list[str]) -> list[Finding]:
    expected, got = len(case.args), len(returned)
    for name, gradient in zip(case.names[:expected], returned, strict=False):
        if gradient is not None and not isinstance(gradient, torch.Tensor):
            text = (
                f"backward returns {_shown(gradient)} for {name}: a gradient is a tensor of its "
                "input's shape, or None."
            )
            if isinstance(gradient, list | tuple):
                text += " Return one for each input, commas between them, no brackets around them."
            return [Finding("no tensor", text)]
    if got < expected or any(gradient is not None for gradient in returned[expected:]):
        return [
            Finding(
                "number of gradients",
                f"backward returns {got} gradient{'s' * (got != 1)}, expected {expected}: one for "
                f"each input of forward ({', '.join(case.names[:expected])}), in that order, None "
                "where there is none.",
            )
        ]
    findings = []
    for i in case.floats:
        arg, gradient, name = case.args[i], returned[i], case.names[i]
        if gradient is None or gradient.shape == arg.shape:
            continue
        shapes = f"shape {tuple(gradient.shape)} for {name} of shape {tuple(arg.shape)}"
        if _sums_to(gradient.shape, arg.shape):
            notes.append(
                f"backward returns a gradient of {shapes}; only PyTorch's broadcasting rescues it, "
                f"by summing. Sum it in backward, over the dimensions in which {name} was repeated."
            )
        elif gradient.shape == arg.shape[::-1]:
            findings.append(
                Finding("transposed", f"backward returns a gradient of {shapes}: transposed.")
            )
        else:
            text = f"backward returns a gradient of {shapes}. A gradient has its input's shape."
            findings.append(Finding("shape", text))
    return findings


def _shown(value: Any) -> str:
    """A number or a short text as it is; of anything else, its type."""
    shown = repr(value)
    if isinstance(value, bool | int | float | complex | str) and len(shown) <= 20:
        return shown
    return f"a value of type {type(value).__name__}"


def _sums_to(shape: torch.Size, target: torch.Size) -> bool:
    try:
        return torch.broadcast_shapes(shape, target) == shape
    except RuntimeError:
        return False


def _other_dtype(case: Case) -> list[str]:
    """Where forward leaves the dtype or device of its input, as a detour through NumPy may."""
    args = [arg.float() if is_float(arg) else arg for arg in case.args]
    with users_code("on float32 inputs", "float32"):
        output = case.outputs(*args)[0]
    given = args[case.floats[0]]
    if (output.dtype, output.device) == (given.dtype, given.device):
        return []
    return [
        f"Given {_kind_of(given)}, forward returns {_kind_of(output)}: make it the same, "
        "with .to(input)."
    ]


def _kind_of(tensor: torch.Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} on {tensor.device}"


def not_deterministic(case: Case) -> list[Finding]:
    leaves = case.leaves()
    with users_code("called a second time", "second call"):
        outputs, again = case.outputs(*leaves), case.outputs(*leaves)
    if not all(map(equal_with_nan, outputs, again)):
        apart = max((a - b).abs().max().item() for a, b in zip(outputs, again, strict=True))
        text = f"forward is not deterministic: the same inputs gave outputs {apart:.2g} apart."
        return [Finding("not deterministic", text + " Its numerical gradient has no meaning then.")]
    grads = [torch.randn_like(output) for output in outputs]
    with users_code("when backward runs a second time", "second call"):
        first, second = (gradients(case, outputs, leaves, grads) for _ in range(2))
    if not all(map(equal_with_nan, first, second)):
        text = "backward is not deterministic: called twice on the same graph, it answers twice "
        return [Finding("not deterministic", text + "differently. Is something left on ctx?")]
    with users_code("called on other inputs before backward", "shared state"):
        outputs = case.outputs(*leaves)
        case.outputs(*flipped(case).leaves())
        third = gradients(case, outputs, leaves, grads)
    if not all(map(equal_with_nan, first, third)):
        text = "a second call before backward changes the gradients of the first: something is "
        return [Finding("shared state", text + "kept on the class or globally. Keep it on ctx.")]
    return []


def first_derivative(case: Case) -> tuple[float, list[Finding], list[Kink]]:
    """PyTorch's gradcheck, for every combination of inputs that need a gradient, and both layouts.

    Returns the largest error, what is wrong, and the kinks met on the way.
    """
    floats = case.floats
    error = largest_error(case)
    # All together first; of very many inputs only that and each alone.
    counts = range(len(floats), 0, -1) if len(floats) <= 5 else (len(floats), 1)
    for needed in itertools.chain(*(itertools.combinations(floats, n) for n in counts)):
        said = ", ".join(case.names[i] for i in needed)
        only = "" if needed == tuple(floats) else f" (where only {said} needs a gradient)"
        findings, kinks = _gradcheck(case, needed, only)
        if findings or kinks:
            return error, findings, kinks
    for i in floats:
        args = list(case.args)
        args[i] = not_contiguous(args[i])
        where = f" (with {case.names[i]} not contiguous)"
        findings, _ = _gradcheck(replace(case, args=tuple(args)), floats, where, "not contiguous")
        if findings:
            return error, findings, []
    return error, [], []


def _gradcheck(
    case: Case, needed: Sequence, where: str, kind: str = "crash"
) -> tuple[list[Finding], list[Kink]]:
    reached = _standing_in_for_forward(case) if hasattr(case.target, "surrogate") else case.apply
    try:
        with users_code(f"in gradcheck{where}", kind):
            gradcheck(reached, case.leaves(needed), eps=case.eps, atol=case.atol, rtol=RTOL)
    except GradcheckError as error:
        findings, kinks = explain(case, needed, where)
        if findings or kinks:
            return findings, kinks
        return [Finding("gradcheck", _first_sentence(error))], []
    return [], []


def _standing_in_for_forward(case: Case) -> Callable:
    """The values of the surrogate with the gradients of backward: what gradcheck must agree on."""

    def values_of_surrogate(*args: Any) -> torch.Tensor:
        output = case.apply(*args)
        return case.target.surrogate(*args).detach() + (output - output.detach())

    return values_of_surrogate


def _first_sentence(error: Exception) -> str:
    return "gradcheck says: " + str(error).strip().splitlines()[0].split(". ")[0][:200]


def second_derivative(case: Case) -> tuple[str, list[Finding]]:
    """Right, refused, or wrong: PyTorch's gradgradcheck, and the numbers where it fails."""
    leaves = case.leaves()
    try:
        outputs = case.outputs(*leaves)
        grads = [torch.ones_like(output).requires_grad_() for output in outputs]
        inputs = [leaves[i] for i in case.floats]
        first = torch.autograd.grad(outputs, inputs, grads, create_graph=True, allow_unused=True)
        total = sum(grad.sum() for grad in first if grad is not None)
        if isinstance(total, torch.Tensor) and total.requires_grad:
            total.backward()  # autograd.grad and gradgradcheck pass by a once_differentiable
        gradgradcheck(case.apply, case.leaves(), eps=case.eps, atol=case.atol, rtol=RTOL)
    except GradcheckError:
        return "wrong", [Finding("second derivative", _explain_second(case))]
    except Exception as error:  # refusing is allowed, and a Function may refuse as it likes
        return "refused" if "once_differentiable" in str(error) else "raises", []
    return "right", []


def _explain_second(case: Case) -> str:
    usual = (
        " The usual cause: a tensor that forward computed stands on ctx, and to the second "
        "derivative it is a constant. Save inputs and outputs, compute the rest again in backward, "
        "or refuse: @once_differentiable."
    )

    def first(*args: Any) -> tuple:
        outputs = case.outputs(*args)
        inputs = [arg for arg in args if is_float(arg) and arg.requires_grad]
        ones = [torch.ones_like(output) for output in outputs]
        return torch.autograd.grad(
            outputs, inputs, ones, create_graph=True, allow_unused=True, materialize_grads=True
        )

    with users_code("in a second backward", "second derivative"):
        for i in case.floats:
            analytic = analytic_jacobians(first, case.leaves(), case.floats)[i]
            left, right = numerical_jacobians(first, case, i, needed=case.floats)
            numeric = (left + right) / 2
            wrong = exceeds_tolerance(analytic, numeric, case.atol)
            if wrong.any():
                row, column = worst_element(analytic, numeric, wrong)
                return (
                    "The second derivative is silently wrong: at "
                    f"{element_text(case, i, column)} a second backward says "
                    f"{analytic[row, column]:.4g}, the numerical gradient of the first "
                    f"{numeric[row, column]:.4g}." + usual
                )
    return "The second derivative is silently wrong." + usual


def used_twice(case: Case) -> list[Finding]:
    """Backward must be linear in grad_output: that is what makes a sum of paths right."""
    leaves = case.leaves()
    outputs = case.outputs(*leaves)
    once = [torch.randn_like(output) for output in outputs]
    more = [3 * torch.randn_like(output) for output in outputs]
    with users_code("where the output is used twice", "used twice"):
        one, other, both = (
            gradients(case, outputs, leaves, grads)
            for grads in (once, more, list(map(torch.add, once, more)))
        )
    if not all(map(torch.allclose, map(torch.add, one, other), both)):
        return [
            Finding(
                "used twice",
                "The gradient is wrong where the output is used twice: backward of the sum of two "
                "grad_outputs is not the sum of its answers. Backward must be linear in "
                "grad_output: multiply by it, do not clip, normalise or round it.",
            )
        ]
    ones = [torch.ones_like(output) for output in outputs]
    with users_code("with a grad_output that is not contiguous", "not contiguous"):
        plain, expanded, turned = (
            gradients(case, outputs, leaves, grads, copy=False)
            for grads in (
                ones,
                [one.new_ones(()).expand_as(one) for one in ones],  # from y.sum().backward()
                [not_contiguous(one) for one in ones],  # from a transpose
            )
        )
    for other in (expanded, turned):
        if not all(map(torch.allclose, plain, other)):
            text = "The gradient is another one where grad_output is not contiguous in memory. "
            return [Finding("not contiguous", text + "Use .reshape, not the memory itself.")]
    return []


def kinks_of(target: Any, first: Case, device: str) -> list[Kink]:
    """Kinks where the author declares them; else, for a Function of one tensor, at 0 if there."""
    if hasattr(target, "kink_inputs"):
        points = declared_inputs(target.kink_inputs, "kink_inputs()", device)
    elif len(first.floats) == 1 and not hasattr(target, "surrogate"):
        points = [tuple(torch.zeros_like(arg) if is_float(arg) else arg for arg in first.args)]
    else:
        return []
    found = []
    for args in points:
        case = replace(first, args=args)
        try:
            with users_code("at a kink", "kink"):
                analytic = analytic_jacobians(case.outputs, case.leaves(), case.floats)
                sides = {i: numerical_jacobians(case.outputs, case, i) for i in case.floats}
        except Crash:
            if hasattr(target, "kink_inputs"):
                raise
            continue  # 0 was only a guess
        for i, (left, right) in sides.items():
            if left.isfinite().all() and right.isfinite().all():
                marked = one_sided_differ(left, right) | (left.abs() > JUMP)
                found += kinks_among(case, i, analytic[i], left, right, marked)
    return found


def distance_of_surrogate(cases: list[Case]) -> tuple[float, str]:
    """How far backward is from the true derivative of forward, and where it is farthest."""
    farthest, said = 0.0, "The surrogate is the derivative wherever it was tried."
    for case in cases:
        analytic = analytic_jacobians(case.outputs, case.leaves(), case.floats)
        for i in case.floats:
            left, right = numerical_jacobians(case.outputs, case, i)
            numeric = (left + right) / 2
            row, column = worst_element(
                analytic[i], numeric, torch.ones_like(numeric, dtype=torch.bool)
            )
            distance = (analytic[i] - numeric)[row, column].abs().item()
            if distance > farthest:
                farthest = distance
                said = (
                    f"Farthest from the derivative at {element_text(case, i, column)}: "
                    f"backward says "
                    f"{analytic[i][row, column]:.4g}, the numerical gradient "
                    f"{numeric[row, column]:.4g}."
                )
    return farthest, said


def under_torch_func(case: Case) -> tuple[bool, str, list[Finding]]:
    """Whether `torch.func.vmap` and `torch.func.grad` take it, and if not, why."""
    if inspect.isclass(case.target) and not has_setup_context(case.target):
        return False, "forward takes ctx; torch.func needs setup_context", []
    floats = tuple(case.floats)
    other = flipped(case)
    stacked = [
        torch.stack([arg, other.args[i]]) if i in floats else arg for i, arg in enumerate(case.args)
    ]
    in_dims = tuple(0 if i in floats else None for i in range(len(case.args)))

    def total(*args: Any) -> torch.Tensor:
        return torch.stack([output.sin().sum() for output in case.outputs(*args)]).sum()

    def both(function: Callable) -> bool:
        batched = torch.func.vmap(function, in_dims)(*stacked)
        single = [function(*case.args), function(*other.args)]
        return all(
            torch.allclose(torch.stack(pair), whole, equal_nan=True)
            for *pair, whole in zip(*map(_flat, single), _flat(batched), strict=True)
        )

    try:
        right = both(case.apply) and both(torch.func.grad(total, floats))
    except Exception as error:  # what a transform may stumble on is anything
        return False, _why_no_vmap(error), []
    if right:
        return True, "", []
    text = "Under torch.func.vmap it gives other numbers than one call for each element."
    return False, "gives other numbers", [Finding("vmap", text)]


def _flat(value: Any) -> list[torch.Tensor]:
    return [v for v in (value if isinstance(value, tuple) else (value,)) if is_float(v)]


def _why_no_vmap(error: Exception) -> str:
    message = str(error).strip()
    if "override the setup_context" in message:
        return "forward takes ctx; torch.func needs setup_context"
    if "does not have vmap support" in message:
        return "no rule for vmap: neither generate_vmap_rule nor a method vmap"
    if "data-dependent control flow" in message or "convert_to_python" in message:
        return "it branches on values"
    return f"{type(error).__name__}: {message.splitlines()[0] if message else ''}"[:120]

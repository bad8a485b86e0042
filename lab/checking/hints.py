"""Why is a gradient wrong? The usual causes, read off the numbers.

Nothing here gives a verdict; it explains the one of `gradcheck`.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from lab.checking.numbers import (
    RTOL,
    analytic_jacobians,
    differentiated,
    element_text,
    equal_with_nan,
    exceeds_tolerance,
    gradients,
    index_text,
    numerical_jacobians,
    one_sided_differ,
    worst_element,
)
from lab.checking.samples import Case
from lab.checking.users_code import Crash, users_code
from lab.checking.verdict import Finding, Kink


def explain(case: Case, needed: Sequence, where: str) -> tuple[list[Finding], list[Kink]]:
    """For each input whose gradient is wrong: the worst element, and a hint if the numbers say."""
    findings, kinks = [], []
    with users_code("in backward"):
        analytic = analytic_jacobians(case.outputs, case.leaves(needed), needed)
        sides = {i: numerical_jacobians(differentiated(case), case, i) for i in case.floats}
    numeric = {i: (left + right) / 2 for i, (left, right) in sides.items()}
    for i in needed:
        wrong = exceeds_tolerance(analytic[i], numeric[i], case.atol)
        at_kink = wrong & one_sided_differ(*sides[i])
        kinks += kinks_among(case, i, analytic[i], *sides[i], at_kink)
        wrong &= ~at_kink
        if wrong.any():
            kind, hint = _hint(case, i, analytic[i], numeric, wrong)
            row, column = worst_element(analytic[i], numeric[i], wrong)
            rate = (
                "derivative of its surrogate"
                if hasattr(case.target, "surrogate")
                else "numerical gradient"
            )
            text = (
                f"The gradient for {case.names[i]} is wrong{where}: "
                f"at {element_text(case, i, column)} "
                f"backward says {analytic[i][row, column]:.6g}, the {rate} "
                f"{numeric[i][row, column]:.6g}{_of_output(case, i, row, column)}. "
                f"Wrong are {int(wrong.any(0).sum())} of its {wrong.shape[1]} elements. {hint}"
            )
            findings.append(Finding(kind, text, hint))
    return findings, kinks


def _of_output(case: Case, position: int, row: int, column: int) -> str:
    """Which output is meant; nothing where it is the only one or the one at the same index."""
    outputs = case.outputs(*case.args)
    elementwise = len(outputs) == 1 and outputs[0].shape == case.args[position].shape
    if sum(output.numel() for output in outputs) == 1 or (elementwise and row == column):
        return ""
    for number, output in enumerate(outputs):
        if row < output.numel():
            name = "output" if len(outputs) == 1 else f"output {number}"
            return f", for {name}{index_text(output.shape, row)}"
        row -= output.numel()
    return ""


def kinks_among(
    case: Case,
    position: int,
    analytic: torch.Tensor,
    left: torch.Tensor,
    right: torch.Tensor,
    among: torch.Tensor,
) -> list[Kink]:
    """The first kink of those marked: the others say the same."""
    if not among.any():
        return []
    row, column = divmod(int(among.flatten().int().argmax()), among.shape[1])
    where, _, value = element_text(case, position, column).rpartition(" = ")
    return [
        Kink(
            where=where,
            value=float(value),
            left=left[row, column].item(),
            right=right[row, column].item(),
            backward=analytic[row, column].item(),
            relu=_relu_says(case, position, row, column),
        )
    ]


def _relu_says(case: Case, position: int, row: int, column: int) -> float | None:
    """What torch.relu answers at the same point, if forward is a ReLU there."""
    before, after = case.args[:position], case.args[position + 1 :]
    shifted = [case.args[position] + shift for shift in (-1, 1)]
    try:
        with users_code("beside a kink"):
            outputs = [case.outputs(*before, arg, *after)[0] for arg in shifted]
    except Crash:
        return None
    if row != column or not all(map(equal_with_nan, outputs, map(torch.relu, shifted))):
        return None
    leaf = case.leaves()[position]
    (gradient,) = torch.autograd.grad(torch.relu(leaf).sum(), leaf)
    return gradient.flatten()[column].item()


def _hint(
    case: Case,
    i: int,
    says: torch.Tensor,
    numeric: dict[int, torch.Tensor],
    wrong: torch.Tensor,
) -> tuple[str, str]:
    """The kind of a wrong gradient and the usual cause, read off the numbers."""
    is_ = numeric[i]
    small = case.atol + RTOL * is_.abs()
    if not says.isfinite().all():
        return "not finite", "A gradient that is inf or nan spoils every weight before it."
    if not says.any():
        return "all zero", (
            "It is zero everywhere: does backward return None or zeros, or was the output detached?"
        )
    if _ignores_grad_output(case):
        return "ignores grad_output", (
            "It does not depend on grad_output, the gradient of what comes after. Multiply the "
            "derivative by it."
        )
    sizable = is_.abs() > 10 * small
    if sizable.any() and (says[~sizable].abs() <= 10 * small[~sizable]).all():
        factors = says[sizable] / is_[sizable]
        factor = factors.median().item()
        if abs(factor) > 1e-6 and (factors - factor).abs().max() < 1e-2 * abs(factor):
            return "constant factor", _factor_hint(case, factor)
    if case.args[i].dim() == 2 and case.args[i].shape[0] == case.args[i].shape[1]:
        turned = says.view(-1, *case.args[i].shape).transpose(1, 2).flatten(1)
        if not exceeds_tolerance(turned, is_, case.atol).any():
            return "transposed", "It is the transpose of the right one."
    for other in case.floats:
        alike = other != i and numeric[other].shape == says.shape
        if alike and not exceeds_tolerance(says, numeric[other], case.atol).any():
            return "swapped", (
                f"It is the gradient for {case.names[other]}: backward returns the gradients in "
                "the order of forward's inputs."
            )
    flat = (is_.abs() <= small).all(0)  # elements that move no output at all
    if flat[wrong.any(0)].all():
        return "no mask", (
            "No mask: forward is flat there, so no gradient may pass, and backward lets it through."
        )
    return "wrong value", "Derive the formula of backward again, and try it at that element."


def _factor_hint(case: Case, factor: float) -> str:
    if abs(factor + 1) < 1e-2:
        return "Everywhere it is -1 times the right one: the sign is the wrong way round."
    sizes = {n for arg in case.args if isinstance(arg, torch.Tensor) for n in arg.shape}
    sizes |= {arg.numel() for arg in case.args if isinstance(arg, torch.Tensor)}
    parts = round(1 / factor)
    said = f"Everywhere it is {factor:.4g} times the right one:"
    if parts > 1 and parts in sizes and abs(factor * parts - 1) < 1e-2:
        return f"{said} is a mean over {parts} taken where a sum is right, or a factor missing?"
    if round(factor) in sizes - {1} and abs(factor - round(factor)) < 1e-2:
        return f"{said} is a factor one too much, or the 1/{round(factor)} of a mean missing?"
    return f"{said} a constant factor is missing, or one too much."


def _ignores_grad_output(case: Case) -> bool:
    leaves = case.leaves()
    outputs = case.outputs(*leaves)
    ones = [torch.ones_like(output) for output in outputs]
    once = gradients(case, outputs, leaves, ones)
    twice = gradients(case, outputs, leaves, [2 * one for one in ones])
    return any(g.any() for g in once) and all(map(equal_with_nan, once, twice))

"""What backward says beside what the difference quotients say, and the words for it.

Nothing here gives a verdict; it explains the one of `gradcheck`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from lab.checking.samples import Case
from lab.checking.users_code import Crash, users_code

RTOL = 1e-3  # gradcheck's own default
JUMP = 1e5  # a quotient as steep as that, at a point without a derivative, is a jump


@dataclass
class Finding:
    """Something wrong.

    Args:
        kind: two or three words, the same for the same mistake, such as "no mask".
        text: one or more sentences for a learner.
        hint: the end of the text that names the usual cause of such numbers; may be empty.
    """

    kind: str
    text: str
    hint: str = ""


@dataclass
class Kink:
    """A point at which forward has no derivative, and what backward answers there."""

    where: str
    value: float
    left: float
    right: float
    backward: float
    relu: float | None

    def __str__(self) -> str:
        what = "jumps" if max(abs(self.left), abs(self.right)) > JUMP else "has a kink"
        said = (
            f"At {self.where} = {self.value:.6g} forward {what}: the quotient is "
            f"{self.left:.4g} from the left, {self.right:.4g} from the right. "
            f"Backward chose {self.backward:.4g}"
        )
        return said + ("." if self.relu is None else f"; torch.relu chooses {self.relu:.4g}.")


def same(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether shapes and numbers are the same, NaN being the same as NaN."""
    return a.shape == b.shape and torch.equal(a.nan_to_num(), b.nan_to_num())


def gradients(
    case: Case, outputs: Sequence, leaves: Sequence, grads: Sequence, copy: bool = True
) -> list[torch.Tensor]:
    """One gradient for each floating-point argument, zeros where backward returns None.

    `copy`: hand over copies of `grads`, so that a backward that edits them spoils nothing here.
    """
    return list(
        torch.autograd.grad(
            outputs,
            [leaves[i] for i in case.floats],
            [grad.clone() for grad in grads] if copy else grads,
            retain_graph=True,
            allow_unused=True,
            materialize_grads=True,
        )
    )


def analytic_jacobians(
    function: Callable, leaves: list, needed: Sequence[int]
) -> dict[int, torch.Tensor]:
    """What backward says: for each argument a matrix, a row an output, a column an input."""
    inputs = [leaves[i] for i in needed]
    rows: list[list[torch.Tensor]] = [[] for _ in needed]
    for output in function(*leaves):
        if not output.requires_grad:  # as good as a gradient of zero
            for row, leaf in zip(rows, inputs, strict=True):
                row += [torch.zeros_like(leaf).flatten()] * output.numel()
            continue
        for unit in torch.eye(output.numel(), dtype=output.dtype, device=output.device):
            answers = torch.autograd.grad(
                output,
                inputs,
                unit.reshape(output.shape).clone(),
                retain_graph=True,
                allow_unused=True,
                materialize_grads=True,
            )
            for row, gradient in zip(rows, answers, strict=True):
                row.append(gradient.detach().flatten())
    return {i: torch.stack(row) for i, row in zip(needed, rows, strict=True)}


def difference_quotients(
    function: Callable, case: Case, position: int, needed: Sequence[int] = ()
) -> tuple[torch.Tensor, torch.Tensor]:
    """The quotients from the left and from the right, in the shape of `analytic_jacobians`."""

    def value(shift: float, element: int) -> torch.Tensor:
        leaves = case.leaves(needed)
        moved = case.args[position].detach().clone(memory_format=torch.contiguous_format)
        moved.view(-1)[element] += shift
        leaves[position] = moved.requires_grad_(position in needed)
        return torch.cat([output.detach().flatten() for output in function(*leaves)])

    eps, columns = case.eps, range(case.args[position].numel())
    here = value(0.0, 0)
    left = torch.stack([(here - value(-eps, i)) / eps for i in columns], 1)
    right = torch.stack([(value(eps, i) - here) / eps for i in columns], 1)
    return left, right


def differ(a: torch.Tensor, b: torch.Tensor, atol: float) -> torch.Tensor:
    """Where they differ by more than gradcheck allows."""
    return ~((a - b).abs() <= atol + RTOL * b.abs())  # the negation counts NaN as different


def parted(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Where the one-sided quotients disagree by more than a smooth function's could."""
    return (left - right).abs() > 1e-2 * (1 + torch.minimum(left.abs(), right.abs()))


def largest_error(case: Case) -> float:
    """Largest difference between backward and the difference quotient, kinks left out."""
    with users_code("in backward"):
        analytic = analytic_jacobians(case.outputs, case.leaves(), case.floats)
        errors = [0.0]
        for i in case.floats:
            left, right = difference_quotients(_truth(case), case, i)
            error = (analytic[i] - (left + right) / 2).abs().nan_to_num(torch.inf, torch.inf)
            errors.append(error.masked_fill(parted(left, right), 0).max().item())
    return max(errors)


def _truth(case: Case) -> Callable:
    """The function whose derivative backward should be: forward, or the declared surrogate."""
    if not hasattr(case.target, "surrogate"):
        return case.outputs

    def surrogate(*args: Any) -> list[torch.Tensor]:
        with users_code("in surrogate"):
            return [case.target.surrogate(*args)]

    return surrogate


def explain(case: Case, needed: Sequence, where: str) -> tuple[list[Finding], list[Kink]]:
    """For each input whose gradient is wrong: the worst element, and a hint if the numbers say."""
    findings, kinks = [], []
    with users_code("in backward"):
        analytic = analytic_jacobians(case.outputs, case.leaves(needed), needed)
        sides = {i: difference_quotients(_truth(case), case, i) for i in case.floats}
    numeric = {i: (left + right) / 2 for i, (left, right) in sides.items()}
    for i in needed:
        wrong = differ(analytic[i], numeric[i], case.atol)
        at_kink = wrong & parted(*sides[i])
        kinks += kinks_among(case, i, analytic[i], *sides[i], at_kink)
        wrong &= ~at_kink
        if wrong.any():
            kind, hint = _hint(case, i, analytic[i], numeric, wrong)
            row, column = worst(analytic[i], numeric[i], wrong)
            rate = (
                "derivative of its surrogate"
                if hasattr(case.target, "surrogate")
                else "difference quotient"
            )
            text = (
                f"The gradient for {case.names[i]} is wrong{where}: at {place(case, i, column)} "
                f"backward says {analytic[i][row, column]:.6g}, the {rate} "
                f"{numeric[i][row, column]:.6g}{_of_output(case, i, row, column)}. "
                f"Wrong are {int(wrong.any(0).sum())} of its {wrong.shape[1]} elements. {hint}"
            )
            findings.append(Finding(kind, text, hint))
    return findings, kinks


def worst(analytic: torch.Tensor, numeric: torch.Tensor, among: torch.Tensor) -> tuple[int, int]:
    """Row and column of the largest difference."""
    error = (analytic - numeric).abs().nan_to_num(torch.inf).masked_fill(~among, -1)
    return divmod(int(error.argmax()), error.shape[1])


def _index(shape: torch.Size, flat: int) -> str:
    return str([int(i) for i in torch.unravel_index(torch.tensor(flat), shape)]) if shape else ""


def place(case: Case, position: int, column: int) -> str:
    """Which element of which argument, and its value: `x[0, 1] = 5`."""
    arg = case.args[position]
    value = arg.reshape(-1)[column].item()
    return f"{case.names[position]}{_index(arg.shape, column)} = {value:.4g}"


def _of_output(case: Case, position: int, row: int, column: int) -> str:
    """Which output is meant; nothing where it is the only one or the one at the same index."""
    outputs = case.outputs(*case.args)
    elementwise = len(outputs) == 1 and outputs[0].shape == case.args[position].shape
    if sum(output.numel() for output in outputs) == 1 or (elementwise and row == column):
        return ""
    for number, output in enumerate(outputs):
        if row < output.numel():
            name = "output" if len(outputs) == 1 else f"output {number}"
            return f", for {name}{_index(output.shape, row)}"
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
    where, _, value = place(case, position, column).rpartition(" = ")
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
    if row != column or not all(map(same, outputs, map(torch.relu, shifted))):
        return None
    leaf = case.leaves()[position]
    (gradient,) = torch.autograd.grad(torch.relu(leaf).sum(), leaf)
    return gradient.flatten()[column].item()


def _hint(
    case: Case, i: int, says: torch.Tensor, numeric: dict[int, torch.Tensor], wrong: torch.Tensor
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
        if not differ(turned, is_, case.atol).any():
            return "transposed", "It is the transpose of the right one."
    for other in case.floats:
        alike = other != i and numeric[other].shape == says.shape
        if alike and not differ(says, numeric[other], case.atol).any():
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
    return any(g.any() for g in once) and all(map(same, once, twice))

"""The numbers: what backward returns, and the numerical gradient of forward beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from lab.checking.samples import Case
from lab.checking.users_code import users_code

RTOL = 1e-3  # gradcheck's own default


def equal_with_nan(a: torch.Tensor, b: torch.Tensor) -> bool:
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


def numerical_jacobians(
    function: Callable, case: Case, position: int, needed: Sequence[int] = ()
) -> tuple[torch.Tensor, torch.Tensor]:
    """The one-sided slopes, left and right, in the shape of `analytic_jacobians`."""

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


def exceeds_tolerance(a: torch.Tensor, b: torch.Tensor, atol: float) -> torch.Tensor:
    """Where they differ by more than gradcheck allows."""
    return ~((a - b).abs() <= atol + RTOL * b.abs())  # the negation counts NaN as different


def one_sided_differ(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Where the one-sided slopes disagree by more than those of a smooth function could."""
    return (left - right).abs() > 1e-2 * (1 + torch.minimum(left.abs(), right.abs()))


def largest_error(case: Case) -> float:
    """Largest difference between backward and the numerical gradient, kinks left out."""
    with users_code("in backward"):
        analytic = analytic_jacobians(case.outputs, case.leaves(), case.floats)
        errors = [0.0]
        for i in case.floats:
            left, right = numerical_jacobians(differentiated(case), case, i)
            error = (analytic[i] - (left + right) / 2).abs().nan_to_num(torch.inf, torch.inf)
            errors.append(error.masked_fill(one_sided_differ(left, right), 0).max().item())
    return max(errors)


def differentiated(case: Case) -> Callable:
    """The function whose derivative backward should be: forward, or the declared surrogate."""
    if not hasattr(case.target, "surrogate"):
        return case.outputs

    def surrogate(*args: Any) -> list[torch.Tensor]:
        with users_code("in surrogate"):
            return [case.target.surrogate(*args)]

    return surrogate


def worst_element(
    analytic: torch.Tensor, numeric: torch.Tensor, among: torch.Tensor | None = None
) -> tuple[int, int]:
    """Row and column of the largest difference, of all elements or of those marked."""
    error = (analytic - numeric).abs().nan_to_num(torch.inf)
    if among is not None:
        error = error.masked_fill(~among, -1)
    return divmod(int(error.argmax()), error.shape[1])


def index_text(shape: torch.Size, flat: int) -> str:
    return str([int(i) for i in torch.unravel_index(torch.tensor(flat), shape)]) if shape else ""


def element_text(case: Case, position: int, column: int) -> str:
    """Which element of which argument, and its value: `x[0, 1] = 5`."""
    arg = case.args[position]
    value = arg.reshape(-1)[column].item()
    return f"{case.names[position]}{index_text(arg.shape, column)} = {value:.4g}"

"""The numbers: what backward returns, and the numerical gradient of forward beside it.

A Jacobian here is a matrix with a row for each output element and a column for each element of one
input. A complex element counts as two, its real and its imaginary part, as in PyTorch's convention
that the gradient of L with respect to z is dL/dRe(z) + i dL/dIm(z).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from lab.checking.samples import Case
from lab.checking.users_code import users_code
from lab.checking.verdict import JUMP

LARGER_STEP = 30  # times eps
JUMP_GROWTH = 0.3  # how far, as a logarithm, slopes at a jump may be off growing like 1 / step


def equal_with_nan(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether shapes and numbers are the same, NaN being the same as NaN."""
    return a.shape == b.shape and torch.equal(as_real(a).nan_to_num(), as_real(b).nan_to_num())


def close_to_rounding(case: Case, a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two results of the same computation differ by rounding alone."""
    tolerance = max(1e-7, 30 * case.precision)
    scale = b.abs().max().item() if b.numel() else 0.0
    return a.shape == b.shape and torch.allclose(
        a, b, rtol=tolerance, atol=tolerance * min(scale, 1e3) + 1e-12, equal_nan=True
    )


def as_real(tensor: torch.Tensor) -> torch.Tensor:
    """All its numbers in one dimension, dense, real, in float64."""
    tensor = tensor.detach()
    tensor = tensor if tensor.layout is torch.strided else tensor.to_dense()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    return tensor.double().flatten()


def gradients(
    case: Case, outputs: Sequence, leaves: Sequence, grads: Sequence, copy: bool = True
) -> list[torch.Tensor]:
    """One gradient for each argument that can need one, zeros where backward returns None.

    `copy`: pass copies of `grads` to backward, so that a backward that edits them spoils nothing.
    """
    pairs = zip(outputs, grads, strict=True)
    used = [(output, grad) for output, grad in pairs if output.requires_grad]
    needed = [leaves[i] for i in case.floats if leaves[i].requires_grad]
    if not used:
        return [torch.zeros_like(leaf) for leaf in needed]
    answers = torch.autograd.grad(
        [output for output, _ in used],
        needed,
        [grad.clone() if copy else grad for _, grad in used],
        retain_graph=True,
        allow_unused=True,
        materialize_grads=True,
    )
    return [answer if answer.layout is torch.strided else answer.to_dense() for answer in answers]


def random_grads(outputs: Sequence[torch.Tensor], seed: int = 1) -> list[torch.Tensor]:
    """A grad_output for each output: of both signs, the same for the same seed."""
    generator = torch.Generator().manual_seed(seed)
    return [
        torch.randn(output.shape, dtype=output.dtype, generator=generator).to(output.device)
        for output in outputs
    ]


def backward_jacobians(case: Case, needed: Sequence[int] | None = None) -> dict[int, torch.Tensor]:
    """What backward returns, one row a call: grad_output is 1 at one element and 0 elsewhere.

    Each row has a forward of its own, since a backward may free what forward saved.
    """
    needed = case.floats if needed is None else list(needed)
    rows: dict[int, list[torch.Tensor]] = {i: [] for i in needed}
    with users_code("in backward"):
        shapes = [output.detach() for output in case.outputs(*case.leaves(needed))]
        for number, like in enumerate(shapes):
            size = as_real(like).numel()
            for unit in torch.eye(size, dtype=torch.float64, device=like.device):
                leaves = case.leaves(needed)
                output = case.outputs(*leaves)[number]
                if like.is_complex():
                    unit = torch.view_as_complex(unit.reshape(*like.shape, 2).contiguous())
                answers = gradients(case, [output], leaves, [unit.reshape(like.shape).to(like)])
                for i, gradient in zip(needed, answers, strict=True):
                    rows[i].append(as_real(gradient))
    return {i: torch.stack(row) for i, row in rows.items()}


@dataclass(frozen=True)
class Slopes:
    """The finite differences of forward for one input.

    Args:
        left, right: one-sided, a Jacobian each.
        kink: where the two stay different, and bounded, as the step shrinks.
        steep: where they grow as the step shrinks: a jump, or a vertical slope.
        jump: where they grow as fast as the step shrinks: forward is not continuous.
        noise: how far off rounding alone may put them.
    """

    left: torch.Tensor
    right: torch.Tensor
    kink: torch.Tensor
    steep: torch.Tensor
    jump: torch.Tensor
    noise: torch.Tensor

    @property
    def central(self) -> torch.Tensor:
        return (self.left + self.right) / 2

    @property
    def finite(self) -> torch.Tensor:
        """Where forward is finite on both sides."""
        return self.left.isfinite() & self.right.isfinite()

    @property
    def known(self) -> torch.Tensor:
        """The columns that are finite: one infinite output makes 0 * inf = NaN of the others."""
        return self.finite.all(0, keepdim=True)

    @property
    def smooth(self) -> torch.Tensor:
        """Where the numerical gradient is a derivative."""
        return self.finite & ~self.kink & ~self.steep


def slopes_of(case: Case, position: int, function: Callable | None = None) -> Slopes:
    """The one-sided finite differences of `function` (default: of `case.truth`).

    Args:
        case: gives the point and the step.
        position: the argument that is moved, element by element.
        function: arguments -> list of tensors.
    """
    function = case.truth if function is None else function
    here = _value(case, position, function, 0.0, 0)
    columns = range(as_real(case.args[position]).numel())
    # The step grows with x where x + step would lose its digits, no earlier: forward may oscillate.
    unit = 1e3 if case.precision < 1e-10 else 1e2
    steps = case.eps * (as_real(case.args[position]).abs() / unit).clamp(min=1)
    left, right = _one_sided(case, position, function, here, steps, columns)
    noise = 30 * case.precision * here.abs()[:, None] / steps
    differ = one_sided_differ(left, right, noise)
    suspicious = differ | (left.abs() > JUMP)  # a jump may be symmetric
    kink, steep, jump = (torch.zeros_like(differ) for _ in range(3))
    if suspicious.any():
        # A second step tells a kink (the difference stays) from mere curvature (it shrinks with the
        # step) and from a jump (it grows).
        factor = 0.1 if case.precision < 1e-10 else 4.0
        again = [column for column in columns if suspicious[:, column].any()]
        other = _one_sided(case, position, function, here, factor * steps, again)
        apart = differ[:, again]
        before = torch.where(apart, (left - right)[:, again], left[:, again]).abs()
        after = torch.where(apart, other[0] - other[1], other[0]).abs()
        growth = after / before.clamp(min=1e-30)
        bound = factor**0.5
        low, high = min(bound, 1 / bound), max(bound, 1 / bound)
        kink[:, again] = apart & (growth > low) & (growth < high)
        grown = growth >= high if factor < 1 else growth <= low
        steep[:, again] = suspicious[:, again] & grown
        jump[:, again] = steep[:, again] & ((growth * factor).log().abs() < JUMP_GROWTH)
    return Slopes(left, right, kink, steep, jump, noise)


def _one_sided(
    case: Case, position: int, function: Callable, here: torch.Tensor, steps: torch.Tensor, columns
) -> tuple[torch.Tensor, torch.Tensor]:
    sides = []
    for sign in (-1, 1):
        moved = [
            sign * (_value(case, position, function, sign * steps[i].item(), i) - here) / steps[i]
            for i in columns
        ]
        sides.append(torch.stack(moved, 1))
    return sides[0], sides[1]


def _value(
    case: Case, position: int, function: Callable, shift: float, element: int
) -> torch.Tensor:
    args = case.leaves()  # forward may ask which of its inputs need a gradient
    moved = args[position].detach().clone(memory_format=torch.contiguous_format)
    real = torch.view_as_real(moved) if moved.is_complex() else moved
    real.view(-1)[element] += shift
    args[position] = moved.requires_grad_(position in case.floats)
    return torch.cat([as_real(output) for output in function(*args)])


def one_sided_differ(
    left: torch.Tensor, right: torch.Tensor, noise: torch.Tensor | float = 0.0
) -> torch.Tensor:
    """Where the one-sided slopes disagree by more than those of a gentle function could."""
    return (left - right).abs() > 1e-2 * (1 + torch.minimum(left.abs(), right.abs())) + noise


@dataclass(frozen=True)
class Comparison:
    """Backward beside the numerical gradient, for one input of one case.

    Args:
        symmetric: whether both are for changes that keep a symmetric matrix symmetric.
    """

    case: Case
    position: int
    backward: torch.Tensor
    slopes: Slopes
    symmetric: bool = False

    @property
    def numerical(self) -> torch.Tensor:
        return self.slopes.central

    @property
    def tolerance(self) -> torch.Tensor:
        # No numerical gradient is more exact than its two sides agree.
        apart = (self.slopes.left - self.slopes.right).abs() / 2
        return self.case.atol + self.case.rtol * self.numerical.abs() + self.slopes.noise + apart

    @property
    def wrong(self) -> torch.Tensor:
        """Where forward has a derivative and backward is not it; NaN is never it."""
        close = (self.backward - self.numerical).abs() <= self.tolerance
        return self.slopes.smooth & self.slopes.known & ~close

    @property
    def outside(self) -> torch.Tensor:
        """Where forward has a kink and backward is not between the two one-sided slopes."""
        left, right = self.slopes.left, self.slopes.right
        low, high = torch.minimum(left, right), torch.maximum(left, right)
        tolerance = self.case.atol + 1e-2 * (1 + high.abs() + low.abs()) * (
            1 if self.case.precision < 1e-10 else 10
        )
        within = (self.backward >= low - tolerance) & (self.backward <= high + tolerance)
        return self.slopes.kink & ~within

    @property
    def not_finite(self) -> torch.Tensor:
        """Where backward is NaN though forward is continuous, or inf though its slope is finite."""
        nan = self.backward.isnan() & ~self.slopes.jump.any(0, keepdim=True)
        infinite = self.backward.isinf() & ~self.slopes.steep
        return self.slopes.known & (nan | infinite)

    @property
    def largest_error(self) -> float:
        error = (self.backward - self.numerical).abs().nan_to_num(torch.inf, torch.inf)
        return error.masked_fill(~self.slopes.smooth, 0).max().item() if error.numel() else 0.0


def compare(case: Case) -> dict[int, Comparison]:
    """Backward beside the numerical gradient, for each input that can need a gradient."""
    backward = backward_jacobians(case)
    compared = {i: Comparison(case, i, backward[i], slopes_of(case, i)) for i in case.floats}
    for i, comparison in compared.items():
        if comparison.wrong.any() and case.precision < 1e-10:
            # Where forward subtracts nearly equal numbers, rounding spoils a small step.
            larger = slopes_of(replace(case, eps=LARGER_STEP * case.eps), i)
            others = [replace(comparison, slopes=larger), _for_symmetric_changes(comparison)]
            compared[i] = next((c for c in others if c and not c.wrong.any()), comparison)
    return compared


def _for_symmetric_changes(comparison: Comparison) -> Comparison | None:
    """The same for changes of a symmetric matrix that keep it symmetric; None for all others.

    Forward may read one triangle alone, or backward may share a gradient out between the two.
    """
    arg, slopes = comparison.case.args[comparison.position], comparison.slopes
    if arg.is_complex() or arg.dim() < 2 or not equal_with_nan(arg, arg.mT):
        return None
    size = arg.shape[-1]
    if arg.unique().numel() < arg.numel() // size * (size + 1) / 2:  # as a matrix of ones
        return None

    def folded(jacobian: torch.Tensor) -> torch.Tensor:
        matrices = jacobian.double().view(-1, *arg.shape)
        return ((matrices + matrices.mT) / 2).flatten(1)

    masks = {name: folded(getattr(slopes, name)) > 0 for name in ("kink", "steep", "jump")}
    moved = replace(slopes, left=folded(slopes.left), right=folded(slopes.right), **masks)
    return replace(comparison, backward=folded(comparison.backward), slopes=moved, symmetric=True)


def right_along_a_line(case: Case) -> bool:
    """Whether backward is right for one random direction of all inputs and one grad_output.

    This needs two calls of forward where a Jacobian needs two for each element. It is as strict,
    but it does not show where a fault is, and at a kink it may say False of a right backward.
    """
    leaves = case.leaves()
    outputs = case.outputs(*leaves)
    grads = random_grads(outputs)
    directions = random_grads([leaves[i] for i in case.floats], seed=2)
    slope = sum(
        as_real(gradient) @ as_real(direction)
        for gradient, direction in zip(
            gradients(case, outputs, leaves, grads), directions, strict=True
        )
    )

    def value(step: float) -> torch.Tensor:
        moved = list(leaves)
        for i, direction in zip(case.floats, directions, strict=True):
            moved[i] = (leaves[i] + step * direction).detach().requires_grad_()
        pairs = zip(case.truth(*moved), grads, strict=True)
        return torch.stack([as_real(output) @ as_real(grad) for output, grad in pairs]).sum()

    numerical = (value(case.eps) - value(-case.eps)) / (2 * case.eps)
    return bool((slope - numerical).abs() <= 1e-6 * (1 + numerical.abs()))


def worst_element(comparison: Comparison, among: torch.Tensor) -> tuple[int, int]:
    """Row and column of the largest difference among those marked."""
    error = (comparison.backward - comparison.numerical).abs().nan_to_num(torch.inf, torch.inf)
    return divmod(int(error.masked_fill(~among, -1).argmax()), error.shape[1])


def element_text(case: Case, position: int, column: int) -> str:
    """Which element of which argument, and its value: `x[0, 1] = 5`."""
    arg = case.args[position]
    element = column // 2 if arg.is_complex() else column
    value: Any = arg.reshape(-1)[element].item()
    return f"{case.names[position]}{index_text(arg.shape, element)} = {value:.4g}"


def index_text(shape: Sequence[int], element: int) -> str:
    """The index of a flat element: `[0, 1]`; nothing for a tensor without dimensions."""
    if not shape:
        return ""
    return str([int(i) for i in torch.unravel_index(torch.tensor(element), tuple(shape))])

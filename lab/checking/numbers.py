"""The numbers: what backward returns, and the numerical gradient of forward beside it.

A Jacobian here is a matrix with a row for each output element and a column for each element of one
input. A complex element counts as two, its real and its imaginary part, as in PyTorch's convention
that the gradient of L with respect to z is dL/dRe(z) + i dL/dIm(z).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from lab.checking.samples import Case
from lab.checking.users_code import users_code
from lab.checking.verdict import JUMP

LARGER_STEP = 30  # times eps
JUMP_POWER = 0.13  # how far slopes at a jump may be off growing like 1 / step


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


def all_close(case: Case, some: Sequence[torch.Tensor], others: Sequence[torch.Tensor]) -> bool:
    """Whether that holds for each pair."""
    return all(close_to_rounding(case, a, b) for a, b in zip(some, others, strict=True))


def is_returned(case: Case, position: int) -> bool:
    """Whether forward returns an argument as it is."""
    return any(equal_with_nan(output, case.args[position]) for output in case.outputs(*case.args))


def as_real(tensor: torch.Tensor) -> torch.Tensor:
    """All its numbers in one dimension, dense, real, in float64, without their graph."""
    return with_graph(tensor.detach()).double()


def with_graph(tensor: torch.Tensor) -> torch.Tensor:
    """The same with its graph, and in its precision."""
    tensor = tensor if tensor.layout is torch.strided else tensor.to_dense()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    return tensor.flatten()


def broadcasts(shape: torch.Size, to: torch.Size) -> bool:
    """Whether a tensor of this shape can be expanded to the other."""
    tail = to[len(to) - len(shape) :]
    return len(shape) <= len(to) and all(a in (1, b) for a, b in zip(shape, tail, strict=True))


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


def backward_jacobians(case: Case) -> dict[int, torch.Tensor]:
    """What backward returns, one row a call: grad_output is 1 at one element and 0 elsewhere.

    Each row has a forward of its own, since a backward may free what forward saved.
    """
    rows: dict[int, list[torch.Tensor]] = {i: [] for i in case.floats}
    with users_code("in backward"):
        for number, like in enumerate(case.outputs(*case.leaves())):
            for element in range(as_real(like).numel()):
                leaves = case.leaves()
                output = case.outputs(*leaves)[number]
                unit = torch.zeros_like(output, memory_format=torch.contiguous_format)
                (torch.view_as_real(unit) if unit.is_complex() else unit).view(-1)[element] = 1
                answers = gradients(case, [output], leaves, [unit])
                for i, gradient in zip(case.floats, answers, strict=True):
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

    def value(shift: float, element: int) -> torch.Tensor:
        args = case.leaves()  # forward may ask which of its inputs need a gradient
        moved = args[position].detach().clone(memory_format=torch.contiguous_format)
        real = torch.view_as_real(moved) if moved.is_complex() else moved
        real.view(-1)[element] += shift
        args[position] = moved.requires_grad_(position in case.floats)
        return torch.cat([as_real(output) for output in function(*args)])

    def one_sided(sign: int, steps: torch.Tensor, columns: Sequence[int]) -> torch.Tensor:
        shifts = {i: sign * steps[i].item() for i in columns}
        return torch.stack([(value(shifts[i], i) - here) / shifts[i] for i in columns], 1)

    here = value(0.0, 0)
    # The step grows with x where x + step would lose its digits, no earlier: forward may oscillate.
    unit = 1e3 if case.is_precise else 1e2
    steps = case.eps * (as_real(case.args[position]).abs() / unit).clamp(min=1)
    left, right = (one_sided(sign, steps, range(len(steps))) for sign in (-1, 1))
    noise = 30 * case.precision * here.abs()[:, None] / steps
    gentle = 1e-2 * (1 + torch.minimum(left.abs(), right.abs())) + noise
    differ = (left - right).abs() > gentle
    suspicious = differ | (left.abs() > JUMP)  # a jump may be symmetric
    kink, steep, jump = (torch.zeros_like(differ) for _ in range(3))
    if suspicious.any():
        # A second step tells what is like step ** -power: the difference stays at a kink (0),
        # shrinks with the step where forward is curved (-1), and grows at a jump (1).
        factor = 0.1 if case.is_precise else 4.0
        again = suspicious.any(0).nonzero().flatten().tolist()
        other = [one_sided(sign, factor * steps, again) for sign in (-1, 1)]
        apart = differ[:, again]
        before = torch.where(apart, (left - right)[:, again], left[:, again]).abs()
        after = torch.where(apart, other[0] - other[1], other[0]).abs()
        power = -(after / before.clamp(min=1e-30)).log() / math.log(factor)
        kink[:, again] = apart & (power.abs() < 0.5)
        steep[:, again] = suspicious[:, again] & (power >= 0.5)
        jump[:, again] = steep[:, again] & ((power - 1).abs() < JUMP_POWER)
    return Slopes(left, right, kink, steep, jump, noise)


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
        share = 1e-2 if self.case.is_precise else 1e-1
        tolerance = self.case.atol + share * (1 + high.abs() + low.abs())
        within = (self.backward >= low - tolerance) & (self.backward <= high + tolerance)
        return self.slopes.kink & ~within

    @property
    def not_finite(self) -> torch.Tensor:
        """Where backward is NaN though forward is continuous, or inf though its slope is finite."""
        nan = self.backward.isnan() & ~self.slopes.jump.any(0, keepdim=True)
        infinite = self.backward.isinf() & ~self.slopes.steep
        return self.slopes.known & (nan | infinite)

    @property
    def error(self) -> torch.Tensor:
        return (self.backward - self.numerical).abs().nan_to_num(torch.inf, torch.inf)

    @property
    def largest_error(self) -> float:
        return max(self.error[self.slopes.smooth].tolist(), default=0.0)


def compare(case: Case) -> dict[int, Comparison]:
    """Backward beside the numerical gradient, for each input that can need a gradient."""
    backward = backward_jacobians(case)
    compared = {i: Comparison(case, i, backward[i], slopes_of(case, i)) for i in case.floats}
    for i, comparison in compared.items():
        if comparison.wrong.any() and case.is_precise:
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
    is_special = arg.unique().numel() < arg.numel() // size * (size + 1) / 2  # as a matrix of ones
    if is_special and not comparison.case.symmetric:
        return None

    def folded(jacobian: torch.Tensor) -> torch.Tensor:
        matrices = jacobian.double().view(-1, *arg.shape)
        return ((matrices + matrices.mT) / 2).flatten(1)

    masks = {name: folded(getattr(slopes, name)) > 0 for name in ("kink", "steep", "jump")}
    moved = replace(slopes, left=folded(slopes.left), right=folded(slopes.right), **masks)
    return replace(comparison, backward=folded(comparison.backward), slopes=moved, symmetric=True)


def worst_element(comparison: Comparison, among: torch.Tensor) -> tuple[int, int]:
    """Row and column of the largest difference among those marked."""
    return divmod(int(comparison.error.masked_fill(~among, -1).argmax()), among.shape[1])


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

"""Why is a gradient wrong? Each cause is a hypothesis that predicts the numbers of backward.

A cause is named only where its prediction is what backward returned, to rounding, at every element
of every sample, and where no other hypothesis predicts the same. Otherwise three elements are
shown as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import torch

from lab.checking.numbers import (
    Comparison,
    as_real,
    element_text,
    index_text,
    slopes_of,
    worst_element,
)
from lab.checking.samples import can_need_grad
from lab.checking.verdict import Finding

DECLARE_SURROGATE = (
    "If that is on purpose, declare it on the class: surrogate(*args), the function that backward "
    "is the derivative of, or surrogate = True where there is no such function."
)
REDERIVE = "Work out the derivative again and evaluate it by hand at these elements."

Prediction = Callable[[Comparison], torch.Tensor | None]


def wrong_gradient(position: int, samples: list[dict[int, Comparison]], where: str = "") -> Finding:
    """What is wrong with the gradient for one input, why if that is certain, and three elements.

    Args:
        position: the input.
        samples: the comparisons of every case, by input.
        where: under which circumstances, ending the first clause; may be empty.
    """
    compared = [sample[position] for sample in samples if position in sample]
    shown = max(compared, key=lambda c: (bool(c.not_finite.any()), int(c.wrong.sum())))
    marked = shown.not_finite if shown.not_finite.any() else shown.wrong
    row, column = worst_element(shown, marked)
    rate = "numerical gradient"
    if callable(getattr(shown.case.target, "surrogate", None)):
        rate = "derivative of its surrogate"
    wrong = int(marked.any(0).sum())
    others = not all(map(can_need_grad, shown.case.args))
    if len(compared) > 1 or others:
        where += f" on {shown.case.describe()}"
    text = (
        f"The gradient for {shown.case.names[position]} is wrong{where}: at "
        f"{element_text(shown.case, position, column)} backward gives "
        f"{shown.backward[row, column]:.6g}, the {rate} is {shown.numerical[row, column]:.6g}"
        f"{_of_output(shown, row, column)}. "
        f"{wrong} of {marked.shape[1]} elements {'is' if wrong == 1 else 'are'} wrong."
    )
    text = text.removesuffix(" 1 of 1 elements is wrong.")
    kind, cause = _cause(position, samples, compared)
    if cause:
        return Finding(kind, f"{text} {cause}", cause)
    return Finding(kind, f"{text} {REDERIVE}", REDERIVE, table_of(shown, marked))


def table_of(comparison: Comparison, marked: torch.Tensor) -> str:
    """The worst element and two more, a row each."""
    error = (comparison.backward - comparison.numerical).abs().nan_to_num(torch.inf, torch.inf)
    order = error.masked_fill(~marked, -1).flatten().argsort(descending=True)
    rows = [("input", "grad_output", "your gradient", "numerical gradient")]
    for flat in order[: min(3, int(marked.sum()))].tolist():
        row, column = divmod(flat, error.shape[1])
        rows.append(
            (
                element_text(comparison.case, comparison.position, column),
                "1" + _of_output(comparison, row, column).replace(", for output", " at y"),
                f"{comparison.backward[row, column]:.6g}",
                f"{comparison.numerical[row, column]:.6g}",
            )
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def _of_output(comparison: Comparison, row: int, column: int) -> str:
    """Which output is meant; nothing where it is the only one or the one at the same index."""
    case = comparison.case
    outputs = case.outputs(*case.args)
    same_shape = len(outputs) == 1 and outputs[0].shape == case.args[comparison.position].shape
    if sum(output.numel() for output in outputs) == 1 or (same_shape and row == column):
        return ""
    for number, output in enumerate(outputs):
        size = as_real(output).numel()
        if row < size:
            name = "output" if len(outputs) == 1 else f"output {number}"
            return f", for {name}{index_text(output.shape, row * output.numel() // size)}"
        row -= size
    return ""


def _cause(
    position: int, samples: list[dict[int, Comparison]], compared: list[Comparison]
) -> tuple[str, str]:
    """The kind of a wrong gradient, and a sentence on its cause if the numbers prove it."""
    if any(c.not_finite.any() for c in compared):
        return "not finite", "A gradient that is inf or nan ruins every weight upstream."
    flat = all(not c.numerical[c.slopes.smooth].abs().gt(c.case.atol).any() for c in compared)
    if flat:
        return "flat forward", (
            "Forward is flat there: its derivative is 0, and what backward returns is not its "
            f"derivative. {DECLARE_SURROGATE}"
        )
    if not any(c.backward.any() for c in compared):
        return "all zero", "It is zero everywhere: was something detached, or multiplied by zero?"
    if factor := _factor(compared):
        return "constant factor", factor
    found = [
        (kind, text)
        for kind, text, prediction in _hypotheses(position, samples)
        if _reproduces(compared, prediction)
    ]
    return found[0] if len(found) == 1 else ("wrong value", "")


def _reproduces(compared: list[Comparison], prediction: Prediction) -> bool:
    """Whether backward is what the hypothesis predicts, everywhere, and that is not the truth."""
    differs = False
    for comparison in compared:
        predicted = prediction(comparison)
        if predicted is None or not _equal(comparison, predicted):
            return False
        differs |= bool(comparison.wrong.any())
    return differs


def _equal(comparison: Comparison, predicted: torch.Tensor) -> bool:
    rounding = 1e-6 if comparison.case.precision < 1e-10 else 2e-2
    near = rounding * (1 + predicted.abs()) + comparison.slopes.noise
    return bool(((comparison.backward - predicted).abs() <= near)[comparison.slopes.smooth].all())


# ---- A constant factor --------------------------------------------------------------------------


def _factor(compared: list[Comparison]) -> str:
    """What to say where backward is a constant times the right one; else nothing."""
    factors = [_factor_of(c) for c in compared]
    known = [(f, c) for f, c in zip(factors, compared, strict=True) if f is not None]
    if not known or any(math.isnan(f) for f, _ in known) or not _telling(compared, known[0][0]):
        return ""
    factor = known[0][0]
    reduced = [_reduced_sizes(c) for _, c in known]
    for index, what in ((0, "output but not of the input"), (1, "input but not of the output")):
        sizes = [r[index] for r in reduced]
        if 1 in sizes:
            continue
        if all(abs(f * n - 1) < 1e-5 for (f, _), n in zip(known, sizes, strict=True)):
            return (
                f"It is 1/{sizes[0]} times the correct gradient everywhere. {sizes[0]} is the size "
                f"of the dimensions of the {what}: is a mean taken where a sum is right?"
            )
        if all(abs(f / n - 1) < 1e-5 for (f, _), n in zip(known, sizes, strict=True)):
            return (
                f"It is {sizes[0]} times the correct gradient everywhere. {sizes[0]} is the size "
                f"of the dimensions of the {what}: is the 1/{sizes[0]} of a mean missing?"
            )
    if any(abs(f - factor) > 1e-5 * abs(factor) for f, _ in known):
        return ""
    if abs(factor + 1) < 1e-5:
        said = "It is -1 times the correct gradient everywhere: the sign is flipped."
    else:
        fraction = Fraction(factor).limit_denominator(200)
        # A fraction says more than a decimal that does not end: 2/3, not 0.6667.
        fits = abs(float(fraction) - factor) < 1e-6 * abs(factor) and 10**4 % fraction.denominator
        shown = str(fraction) if fits else f"{factor:.4g}"
        said = (
            f"It is {shown} times the correct gradient everywhere: check for a missing or extra "
            "constant factor."
        )
    identity = all(
        c.numerical.shape[0] == c.numerical.shape[1]
        and torch.allclose(c.numerical, torch.eye(len(c.numerical)).to(c.numerical), atol=1e-5)
        for c in compared
    )
    return f"{said} {DECLARE_SURROGATE}" if identity else said


def _telling(compared: list[Comparison], factor: float) -> bool:
    """Whether the numbers are many enough, or the factor simple enough, for no coincidence."""
    slopes = torch.cat([c.numerical[c.slopes.smooth] for c in compared])
    different = (slopes[slopes.abs() > 1e-6] * 1e4).round().unique().numel()
    return different > 2 or any(abs(f - round(f)) < 1e-5 * abs(f) for f in (factor, 1 / factor))


def _factor_of(comparison: Comparison) -> float | None:
    """backward / numerical gradient if that is one number; NaN if not, None if both are zero."""
    numerical, backward = comparison.numerical, comparison.backward
    sizable = comparison.slopes.smooth & (numerical.abs() > 1e-4 * numerical.abs().max())
    if not sizable.any() or not numerical[sizable].abs().max() > 1e-8:
        return math.nan if comparison.wrong.any() else None
    factor = (backward[sizable] / numerical[sizable]).median().item()
    return factor if _equal(comparison, factor * numerical) and factor != 0 else math.nan


def _reduced_sizes(comparison: Comparison) -> tuple[int, int]:
    """The product of the output's sizes that the input lacks, and the other way round."""
    outputs = list(comparison.case.outputs(*comparison.case.args)[0].shape)
    inputs = list(comparison.case.args[comparison.position].shape)
    for size in tuple(inputs):
        if size in outputs:
            outputs.remove(size)
            inputs.remove(size)
    return math.prod(outputs), math.prod(inputs)


# ---- The other hypotheses -----------------------------------------------------------------------


def _hypotheses(
    position: int, samples: list[dict[int, Comparison]]
) -> list[tuple[str, str, Prediction]]:
    """Kind, sentence and prediction of each."""
    name = samples[0][position].case.names[position] if position in samples[0] else "input"
    found: list[tuple[str, str, Prediction]] = [
        ("transposed", f"It is the transpose of the gradient for {name}.", _input_transposed),
        (
            "wrong dimension",
            "It is the right gradient for a transposed grad_output: check along which dimension "
            "backward sums or expands it.",
            _output_transposed,
        ),
        (
            "wrong value",
            "It is grad_output times the Jacobian, where the transposed Jacobian is needed: what "
            "forward gathers, backward must scatter, and the other way round.",
            _turned_jacobian,
        ),
        (
            "no mask",
            "Forward is flat there, so no gradient may pass, but backward lets it through: check "
            f"its mask. {DECLARE_SURROGATE}",
            _no_mask,
        ),
        (
            "mask from the output",
            "The mask follows the sign of the output, where the sign of the input decides.",
            lambda c: _masked(c, lambda input, output: output > 0),
        ),
        (
            "wrong value",
            "It passes grad_output on as it is.",
            _passes_on,
        ),
        (
            "wrong mask",
            "The mask is inverted: each side of 0 has the slope of the other.",
            lambda c: _masked(c, lambda input, output: input < 0),
        ),
        (
            "wrong value",
            "It is the derivative at forward's output instead of its input: was the output saved "
            "and taken for the input?",
            _at_output,
        ),
        (
            "wrong value",
            "It is 1 / the correct gradient: multiply where it divides.",
            _reciprocal,
        ),
        (
            "repeated index",
            "It is 0 where an index repeats: gradients of the same element must be added, as "
            "index_add or index_put(..., accumulate=True) do.",
            _last_index_wins,
        ),
    ]
    found.append(
        (
            "no conj",
            "It is the conjugate of the right one: PyTorch multiplies by the conjugate of the "
            "derivative.",
            _conjugate,
        )
    )
    for other in samples[0]:
        if other != position and (hypothesis := _another_input(position, other, samples)):
            found.append(hypothesis)
    return found


def _another_input(
    position: int, other: int, samples: list[dict[int, Comparison]]
) -> tuple[str, str, Prediction] | None:
    """Whether it is the gradient for another input, and whether the two are exchanged."""
    beside = {id(s[position]): s[other] for s in samples if position in s and other in s}
    if not beside:
        return None

    def predicted(comparison: Comparison) -> torch.Tensor | None:
        its = beside.get(id(comparison))
        return None if its is None else _as_gradient_of(its, comparison)

    pairs = [(s[position], s[other]) for s in samples if position in s and other in s]
    name = pairs[0][0].case.names[other]
    back = [(its, _as_gradient_of(mine, its)) for mine, its in pairs]
    if all(numbers is not None and _equal(its, numbers) for its, numbers in back):
        text = f"It is the gradient for {name}, and the other way round: return the gradients in "
        return "swapped", f"{text}the order of forward's inputs.", predicted
    return "wrong value", f"It is equal to the correct gradient for {name}.", predicted


def _as_gradient_of(other: Comparison, mine: Comparison) -> torch.Tensor | None:
    """The right numbers of another input, where this one's would be the same."""
    its, own = (c.case.args[c.position].shape for c in (other, mine))
    if its == own:
        return other.numerical
    if other.case.args[other.position].is_complex():
        return None
    if _broadcasts(own, its):
        return _summed(other.numerical, its, own)
    if _broadcasts(its, own):
        same = torch.allclose(_summed(mine.backward, own, its), other.numerical, 1e-6, 1e-6)
        return mine.backward if same else None
    return None


def _broadcasts(shape: torch.Size, to: torch.Size) -> bool:
    tail = to[len(to) - len(shape) :]
    return len(shape) <= len(to) and all(a in (1, b) for a, b in zip(shape, tail, strict=True))


def _summed(jacobian: torch.Tensor, shape: torch.Size, to: torch.Size) -> torch.Tensor:
    """The columns of one input's shape, added up to those of an input that was broadcast to it."""
    return torch.stack([row.view(shape).sum_to_size(to).flatten() for row in jacobian])


def _input_transposed(comparison: Comparison) -> torch.Tensor | None:
    shape = comparison.case.args[comparison.position].shape
    if len(shape) != 2 or shape[0] != shape[1] or comparison.numerical.shape[1] != shape.numel():
        return None
    return comparison.numerical.view(-1, *shape).transpose(1, 2).flatten(1)


def _output_transposed(comparison: Comparison) -> torch.Tensor | None:
    outputs = comparison.case.outputs(*comparison.case.args)
    shape = outputs[0].shape
    if len(outputs) != 1 or len(shape) != 2 or shape[0] != shape[1] or outputs[0].is_complex():
        return None
    return comparison.numerical.view(*shape, -1).transpose(0, 1).flatten(0, 1)


def _turned_jacobian(comparison: Comparison) -> torch.Tensor | None:
    numerical, case = comparison.numerical, comparison.case
    square = numerical.shape[0] == numerical.shape[1]
    return numerical.t() if square and not case.args[comparison.position].is_complex() else None


def _conjugate(comparison: Comparison) -> torch.Tensor | None:
    """J g in place of conj(J) g: the conjugate of the right answer for the conjugate of g."""
    case = comparison.case
    complex_outputs = {output.is_complex() for output in case.outputs(*case.args)}
    if not case.args[comparison.position].is_complex() or len(complex_outputs) > 1:
        return None
    predicted = comparison.numerical.clone()
    predicted[:, 1::2] *= -1
    if complex_outputs == {True}:
        predicted[1::2] *= -1
    return predicted


def _diagonal(comparison: Comparison) -> bool:
    """Whether output element i depends on input element i alone, in forward and in backward."""
    shape = comparison.case.args[comparison.position].shape
    outputs = comparison.case.outputs(*comparison.case.args)
    if len(outputs) != 1 or outputs[0].shape != shape:
        return False
    if comparison.numerical.shape != (shape.numel(), shape.numel()):
        return False  # complex
    return all(
        not (matrix - torch.diag(matrix.diagonal())).abs().gt(1e-6).any()
        for matrix in (comparison.numerical, comparison.backward)
    )


def _one_value(values: torch.Tensor) -> float | None:
    """The value that all have; None where they differ or there is none."""
    if not values.numel() or (values - values[0]).abs().max() > 1e-6 * (1 + values[0].abs()):
        return None
    return values[0].item()


def _passes_on(comparison: Comparison) -> torch.Tensor | None:
    """The identity; where forward is flat, that is a missing mask."""
    slope = comparison.numerical.diagonal()
    if not _diagonal(comparison) or (slope.abs() < 1e-6).any():
        return None
    return torch.diag(torch.ones_like(slope))


def _reciprocal(comparison: Comparison) -> torch.Tensor | None:
    slope = comparison.numerical.diagonal()
    if not _diagonal(comparison) or (slope.abs() < 1e-6).any():
        return None
    return torch.diag(1 / slope)


def _no_mask(comparison: Comparison) -> torch.Tensor | None:
    if not _diagonal(comparison):
        return None
    slope, smooth = comparison.numerical.diagonal(), comparison.slopes.smooth.diagonal()
    flat = slope.abs() < 1e-6
    passed = _one_value(slope[smooth & ~flat])
    return None if passed is None else torch.diag(torch.where(flat, passed, slope))


def _masked(comparison: Comparison, mask: Callable) -> torch.Tensor | None:
    """The two slopes of forward, chosen by another mask than the sign of the input."""
    if not _diagonal(comparison):
        return None
    positive = as_real(comparison.case.args[comparison.position]) > 0
    slope, smooth = comparison.numerical.diagonal(), comparison.slopes.smooth.diagonal()
    over, under = _one_value(slope[smooth & positive]), _one_value(slope[smooth & ~positive])
    if over is None or under is None or abs(over - under) < 1e-6:
        return None
    case = comparison.case
    chosen = mask(case.args[comparison.position], case.outputs(*case.args)[0]).flatten()
    return torch.diag(torch.where(chosen, over, under).double())


def _at_output(comparison: Comparison) -> torch.Tensor | None:
    # Where forward has two slopes, the mask says the same more simply.
    if (
        not _diagonal(comparison)
        or _masked(comparison, lambda input, output: input > 0) is not None
    ):
        return None
    args = list(comparison.case.args)
    args[comparison.position] = comparison.case.outputs(*args)[0].detach()
    moved = slopes_of(replace(comparison.case, args=tuple(args)), comparison.position)
    return moved.central if moved.smooth.all() else None


def _last_index_wins(comparison: Comparison) -> torch.Tensor | None:
    """The right gradient with zeros where backward has them, if an index repeats."""
    indices = [
        arg
        for arg in comparison.case.args
        if isinstance(arg, torch.Tensor) and not can_need_grad(arg) and arg.dtype != torch.bool
    ]
    if not any(index.unique().numel() < index.numel() for index in indices):
        return None
    columns = comparison.numerical.abs().gt(1e-6).sum(0)
    lost = comparison.wrong.any(0)
    if not (columns[lost] > 1).all() or not comparison.backward[:, lost].any():
        return None
    return comparison.numerical.where(comparison.backward != 0, 0.0)

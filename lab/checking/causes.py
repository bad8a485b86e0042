"""Why is a gradient wrong? Each cause is a hypothesis that predicts the numbers of backward.

A cause is named only where its prediction is what backward returned, to rounding, at every element
of every sample, and where no other hypothesis predicts the same. Otherwise three elements are
shown as they are.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from functools import partial
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from lab.checking.numbers import (
    Comparison,
    as_real,
    broadcasts,
    element_text,
    equal_with_nan,
    index_text,
    is_returned,
    slopes_of,
    worst_element,
)
from lab.checking.samples import Case, can_need_grad, moved_far
from lab.checking.verdict import Finding, say

STEPS = {"round", "sign", "sgn", "floor", "ceil", "trunc", "fix", "heaviside", "bernoulli"}
Prediction = Callable[[Comparison], torch.Tensor | None]


def wrong_gradient(
    position: int, samples: list[dict[int, Comparison]], elsewhere: str = ""
) -> Finding:
    """What is wrong with the gradient for one input, why if that is certain, and three elements.

    Args:
        position: the input.
        samples: the comparisons of every case, by input.
        elsewhere: where the wrong gradient was found, if the samples are right; then no cause is
            named.
    """
    where = elsewhere
    compared = [sample[position] for sample in samples if position in sample]
    compared.sort(key=lambda c: (bool(c.not_finite.any()), int(c.wrong.sum())), reverse=True)
    shown = compared[0]
    case = shown.case
    marked = shown.not_finite if shown.not_finite.any() else shown.wrong
    if len(compared) > 1 or not all(map(can_need_grad, case.args)):
        where += f" on {case.describe()}"
    row, column = worst_element(shown, marked)
    name, element = case.names[position], element_text(case, position, column)
    got = shown.backward[row, column]
    flat = all(not c.numerical[c.slopes.smooth].abs().gt(c.case.atol).any() for c in compared)
    if flat and not shown.not_finite.any() and not elsewhere:
        hint = say("declare surrogate")
        text = say("flat forward", name=name, got=got, element=element)
        return Finding("flat forward", f"{text} {hint}", hint, about=name)
    wrong, size = int(marked.any(0).sum()), marked.shape[1]
    text = say(
        "wrong gradient",
        name=name,
        where=where,
        element=element,
        got=got,
        rate="derivative of its surrogate" if case.surrogate else "numerical gradient",
        right=shown.numerical[row, column],
        output=_of_output(shown, row, column),
        count=f"{wrong} of {size} elements {'is' if wrong == 1 else 'are'} wrong." * (size > 1),
    )
    kind, cause = ("wrong value", "") if elsewhere else _cause(position, samples, compared)
    table = "" if cause else table_of(shown, marked)
    step = "" if cause or case.surrogate else _step_in(case, position)
    declare = say("declare surrogate")
    hints = [cause or say("rederive"), say("steps", step=step) if step else ""]
    if not case.surrogate and (step or elsewhere or kind == "no mask"):
        hints.append(declare)
    if all(map(_is_identity, compared)):  # it is there for its backward, as a gradient reversal is
        hints = [cause, say("identity", name=name), declare]
    hint = " ".join(filter(None, hints))
    return Finding(kind, f"{text} {hint}", hint, table, name)


def _step_in(case: Case, position: int) -> str:
    """The first function without a slope that forward calls on what an input moves, or nothing."""
    moved = moved_far(case, [position])
    with suppress(Exception):  # forward may refuse the moved input
        for (name, given), (_, then) in zip(_steps_of(case), _steps_of(moved), strict=False):
            if not equal_with_nan(given, then):
                return name
    return ""


def _steps_of(case: Case) -> list[tuple[str, torch.Tensor]]:
    """The functions without a slope that forward calls, each with the tensor that it is given."""
    called: list[tuple[str, torch.Tensor]] = []

    class Listening(TorchFunctionMode):
        def __torch_function__(
            self, function: Any, types: Any, args: tuple = (), kwargs: dict | None = None
        ) -> Any:
            name = getattr(function, "__name__", "").strip("_")
            if name in STEPS and isinstance(args[0], torch.Tensor):
                called.append((name, args[0].clone()))
            return function(*args, **(kwargs or {}))

    with Listening():
        case.outputs(*case.leaves())
    return called


def table_of(comparison: Comparison, marked: torch.Tensor) -> str:
    """The worst element and two more, a row each."""
    order = comparison.error.masked_fill(~marked, -1).flatten().argsort(descending=True)
    rows = [("input", "grad_output", "your gradient", "numerical gradient")]
    for flat in order[: min(3, int(marked.sum()))].tolist():
        row, column = divmod(flat, marked.shape[1])
        output = _of_output(comparison, row, column).replace(", for output", " at y")
        element = element_text(comparison.case, comparison.position, column)
        pair = (comparison.backward[row, column], comparison.numerical[row, column])
        rows.append((element, f"1{output}", f"{pair[0]:.6g}", f"{pair[1]:.6g}"))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    padded = [[cell.ljust(n) for cell, n in zip(row, widths, strict=True)] for row in rows]
    return "\n".join("  ".join(row).rstrip() for row in padded)


def _of_output(comparison: Comparison, row: int, column: int) -> str:
    """Which output is meant; nothing where it is the only one or the one at the same index."""
    outputs = _outputs(comparison)
    same_shape = len(outputs) == 1 and outputs[0].shape == _arg(comparison).shape
    if sum(output.numel() for output in outputs) == 1 or (same_shape and row == column):
        return ""
    for number, output in enumerate(outputs):
        size = as_real(output).numel()
        if row < size:
            name = "output" if len(outputs) == 1 else f"output {number}"
            return f", for {name}{index_text(output.shape, row * output.numel() // size)}"
        row -= size
    return ""


def _arg(comparison: Comparison) -> torch.Tensor:
    return comparison.case.args[comparison.position]


def _outputs(comparison: Comparison) -> list[torch.Tensor]:
    return comparison.case.outputs(*comparison.case.args)


def _cause(
    position: int, samples: list[dict[int, Comparison]], compared: list[Comparison]
) -> tuple[str, str]:
    """The kind of a wrong gradient, and a sentence on its cause if the numbers prove it."""
    if any(c.not_finite.any() for c in compared):
        return "not finite", say("inf or nan")
    if not any(c.backward.any() for c in compared):
        return "all zero", say("all zero")
    if factor := _factor(compared):
        return "constant factor", factor
    what = "The surrogate" if compared[0].case.surrogate else "Forward"
    found = [
        (kind, say(key, what=what))
        for kind, key, prediction in HYPOTHESES
        if all(_predicts(prediction, c) for c in compared)
    ]
    for other in samples[0]:
        if other != position and (hypothesis := _another_input(position, other, samples)):
            found.append(hypothesis)
    return found[0] if len(found) == 1 else ("wrong value", "")


def _predicts(prediction: Prediction, comparison: Comparison) -> bool:
    predicted = prediction(comparison)
    return predicted is not None and _equal(comparison, predicted)


def _equal(comparison: Comparison, predicted: torch.Tensor) -> bool:
    """Whether that is what backward returned, wherever forward has a derivative."""
    rounding = 1e-6 if comparison.case.is_precise else 2e-2
    near = rounding * (1 + predicted.abs()) + comparison.slopes.noise
    return bool(((comparison.backward - predicted).abs() <= near)[comparison.slopes.smooth].all())


# ---- A constant factor --------------------------------------------------------------------------


def _factor(compared: list[Comparison]) -> str:
    """What to say where backward is a constant times the right one; else nothing."""
    known = [(f, c) for c in compared if (f := _factor_of(c)) is not None]
    factors = [f for f, _ in known]
    if not factors or any(map(math.isnan, factors)) or not _telling(compared, factors[0]):
        return ""
    every = [_sizes(c) for _, c in known]
    for of in every[0]:
        sizes = [some.get(of, 1) for some in every]
        if of.startswith("dimension") and len({*sizes}) == 1:
            continue  # a factor may be equal to one size by chance
        pairs = list(zip(factors, sizes, strict=True))
        if 1 not in sizes and all(abs(f * n - 1) < 1e-5 for f, n in pairs):
            return say("mean for sum", size=sizes[0], of=of)
        if 1 not in sizes and all(abs(f / n - 1) < 1e-5 for f, n in pairs):
            return say("sum for mean", size=sizes[0], of=of)
    factor = factors[0]
    if any(abs(f - factor) > 1e-5 * abs(factor) for f in factors):
        return ""
    words = say("flipped sign")
    if abs(factor + 1) > 1e-5:
        # A fraction says more than a decimal that does not end: 2/3, not 0.6667.
        fraction = Fraction(factor).limit_denominator(200)
        fits = abs(float(fraction) - factor) < 1e-6 * abs(factor) and 10**4 % fraction.denominator
        words = say("constant factor", factor=str(fraction) if fits else f"{factor:.4g}")
    return words


def _is_identity(comparison: Comparison) -> bool:
    unit = torch.eye(*comparison.numerical.shape, dtype=torch.float64)
    returned = is_returned(comparison.case, comparison.position)
    return returned and torch.allclose(
        comparison.numerical, unit.to(comparison.numerical), atol=1e-5
    )


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


def _sizes(comparison: Comparison) -> dict[str, int]:
    """Sizes that a mean may run over, by what they are the sizes of."""
    outputs, inputs = Counter(_outputs(comparison)[0].shape), Counter(_arg(comparison).shape)
    sizes = {
        "the dimensions of the output but not of the input": (outputs - inputs).elements(),
        "the dimensions of the input but not of the output": (inputs - outputs).elements(),
    }
    name = comparison.case.names[comparison.position]
    dims = {f"dimension {d} of {name}": n for d, n in enumerate(_arg(comparison).shape)}
    alone = {of: n for of, n in dims.items() if list(dims.values()).count(n) == 1}
    return {of: math.prod(some) for of, some in sizes.items()} | alone


# ---- The gradient of another input --------------------------------------------------------------


def _another_input(
    position: int, other: int, samples: list[dict[int, Comparison]]
) -> tuple[str, str] | None:
    """Whether it is the gradient for another input, and whether the two are exchanged."""
    pairs = [(s[position], s[other]) for s in samples if position in s and other in s]
    if not pairs or not all(_is_gradient_of(mine, its) for mine, its in pairs):
        return None
    name = pairs[0][0].case.names[other]
    others = {c.position for s in samples for c in s.values() if c.wrong.any()} - {position, other}
    if not others and all(_is_gradient_of(its, mine) for mine, its in pairs):
        return "swapped", say("swapped", name=name)
    return "wrong value", say("another input", name=name)


def _is_gradient_of(mine: Comparison, other: Comparison) -> bool:
    """Whether backward returned for one input the right numbers of another, broadcast or summed."""
    own, its = _arg(mine).shape, _arg(other).shape
    if own == its:
        return _equal(mine, other.numerical)
    if _arg(mine).is_complex() or _arg(other).is_complex():
        return False
    if broadcasts(own, its):
        return _equal(mine, _summed(other.numerical, its, own))
    if broadcasts(its, own):
        return torch.allclose(_summed(mine.backward, own, its), other.numerical, 1e-6, 1e-6)
    return False


def _summed(jacobian: torch.Tensor, shape: torch.Size, to: torch.Size) -> torch.Tensor:
    """The columns of one input's shape, added up to those of an input that was broadcast to it."""
    return torch.stack([row.view(shape).sum_to_size(to).flatten() for row in jacobian])


# ---- The other hypotheses: what backward would return -------------------------------------------


def _input_transposed(comparison: Comparison) -> torch.Tensor | None:
    shape = _arg(comparison).shape
    if len(shape) != 2 or shape[0] != shape[1] or comparison.numerical.shape[1] != shape.numel():
        return None
    return comparison.numerical.view(-1, *shape).transpose(1, 2).flatten(1)


def _output_transposed(comparison: Comparison) -> torch.Tensor | None:
    outputs = _outputs(comparison)
    shape = outputs[0].shape
    if len(outputs) != 1 or len(shape) != 2 or shape[0] != shape[1] or outputs[0].is_complex():
        return None
    return comparison.numerical.view(*shape, -1).transpose(0, 1).flatten(0, 1)


def _turned_jacobian(comparison: Comparison) -> torch.Tensor | None:
    numerical = comparison.numerical
    square = numerical.shape[0] == numerical.shape[1]
    return numerical.t() if square and not _arg(comparison).is_complex() else None


def _conjugate(comparison: Comparison) -> torch.Tensor | None:
    """J g in place of conj(J) g: the conjugate of the right answer for the conjugate of g."""
    complex_outputs = {output.is_complex() for output in _outputs(comparison)}
    if not _arg(comparison).is_complex() or len(complex_outputs) > 1:
        return None
    predicted = comparison.numerical.clone()
    predicted[:, 1::2] *= -1
    if complex_outputs == {True}:
        predicted[1::2] *= -1
    return predicted


def slope_of_each(comparison: Comparison) -> torch.Tensor | None:
    """The diagonal of the Jacobian; None unless output element i depends on input element i alone.

    NaN where forward has no derivative.
    """
    outputs, size = _outputs(comparison), _arg(comparison).numel()
    square = comparison.numerical.shape == (size, size)
    if len(outputs) != 1 or outputs[0].shape != _arg(comparison).shape or not square:
        return None
    for matrix in (comparison.numerical, comparison.backward):
        if (matrix - torch.diag(matrix.diagonal())).abs().gt(1e-6).any():
            return None
    return comparison.numerical.diagonal().where(comparison.slopes.smooth.diagonal(), torch.nan)


def _one_value(values: torch.Tensor) -> float | None:
    """The value that all have, NaN aside; None where they differ, or where all are NaN."""
    values = values[~values.isnan()]
    if not values.numel() or (values - values[0]).abs().max() > 1e-6 * (1 + values[0].abs()):
        return None
    return values[0].item()


def _no_mask(comparison: Comparison) -> torch.Tensor | None:
    slope = slope_of_each(comparison)
    if slope is None:
        return None
    flat = slope.abs() < 1e-6
    passed = _one_value(slope[~flat])
    return None if passed is None else torch.diag(torch.where(flat, passed, slope))


def _masked(mask: Callable, comparison: Comparison) -> torch.Tensor | None:
    """The two slopes of forward, chosen by a mask on the input or the output."""
    slope = slope_of_each(comparison)
    if slope is None:
        return None
    positive = as_real(_arg(comparison)) > 0
    over, under = _one_value(slope[positive]), _one_value(slope[~positive])
    if over is None or under is None or abs(over - under) < 1e-6:
        return None
    chosen = mask(_arg(comparison), _outputs(comparison)[0]).flatten()
    return torch.diag(torch.where(chosen, over, under).double())


def _passes_on(comparison: Comparison) -> torch.Tensor | None:
    """The identity; where forward is flat, a missing mask says the same."""
    slope = slope_of_each(comparison)
    if slope is None or (slope.abs() < 1e-6).any():
        return None
    return torch.diag(torch.ones_like(slope))


def _at_output(comparison: Comparison) -> torch.Tensor | None:
    two_slopes = _masked(lambda x, y: x > 0, comparison) is not None
    if slope_of_each(comparison) is None or two_slopes:
        return None
    output, position = _outputs(comparison)[0].detach(), comparison.position
    moved = slopes_of(comparison.case.changed(lambda _: output, [position]), position)
    return moved.central if moved.smooth.all() else None


def _last_index_wins(comparison: Comparison) -> torch.Tensor | None:
    """The right gradient with zeros where backward has them, if an index repeats."""
    indices = [
        arg
        for arg in comparison.case.args
        if isinstance(arg, torch.Tensor) and arg.dtype in (torch.int64, torch.int32)
    ]
    if not any(index.unique().numel() < index.numel() for index in indices):
        return None
    columns = comparison.numerical.abs().gt(1e-6).sum(0)
    lost = comparison.wrong.any(0)
    if not (columns[lost] > 1).all() or not comparison.backward[:, lost].any():
        return None
    return comparison.numerical.where(comparison.backward != 0, 0.0)


# Kind of finding, key of its words, prediction.
HYPOTHESES: tuple[tuple[str, str, Prediction], ...] = (
    ("transposed", "transposed", _input_transposed),
    ("wrong dimension", "wrong dimension", _output_transposed),
    ("wrong value", "turned Jacobian", _turned_jacobian),
    ("no mask", "no mask", _no_mask),
    ("mask from the output", "mask from the output", partial(_masked, lambda x, y: y > 0)),
    ("wrong mask", "wrong mask", partial(_masked, lambda x, y: x < 0)),
    ("wrong value", "passes on", _passes_on),
    ("wrong value", "at the output", _at_output),
    ("repeated index", "repeated index", _last_index_wins),
    ("no conj", "no conj", _conjugate),
)

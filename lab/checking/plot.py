"""A plot of one check: forward, the numerical gradient, and what backward returns.

For an elementwise Function of one tensor these are curves over a range. For every other Function
the Jacobians of backward and of forward are drawn as images, with their difference beside them.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from lab.checking.causes import slope_of_each
from lab.checking.check import cases_of
from lab.checking.numbers import Comparison, compare, index_text
from lab.checking.samples import Case, flipped
from lab.files import write_whole

# From Okabe and Ito's palette, which can be told apart with every kind of colour blindness.
RIGHT, WRONG = "#0072B2", "#D55E00"
STEP = 0.01  # of the curves; most kinks lie at a multiple of it
NUMBERED = 12  # a Jacobian with more rows or columns is drawn without its numbers


def save_plot(target: Any, file: Path, device: str, seed: int, eps: float, atol: float) -> str:
    """Draw a Function into `file`, on the first sample that shows a fault, or else on the first.

    Args:
        target: a subclass of `torch.autograd.Function`, or a callable that applies one.
        file: written whole or not at all; its suffix names the format.
        device, seed, eps, atol: as for `check_function`.

    Returns:
        Why there is nothing to draw; an empty string if it was drawn.

    Raises:
        UserError: the file can't be written.
        Crash: forward or backward raised.
    """
    if getattr(target, "surrogate", None) is True:
        return "backward is declared to be the derivative of no function"
    torch.manual_seed(seed)
    cases, why_not = cases_of(target, device, eps, atol)
    if why_not:
        return why_not
    image = io.BytesIO()
    figure_of(cases).savefig(image, format=file.suffix[1:].lower(), dpi=150)
    write_whole(file, image.getvalue())
    return ""


def figure_of(cases: list[Case]) -> Figure:
    """The figure of the first case that shows a fault, or else of the first."""
    found = [list(compare(case).values()) for case in cases]
    faulty = (of_case for of_case in found if any(each.wrong.any() for each in of_case))
    shown, figure = next(faulty, found[0]), Figure(layout="constrained")
    case = shown[0].case
    figure.suptitle(f"{getattr(case.target, '__name__', case.target)}\n{case.describe()}")
    (_draw_curves if _is_elementwise(shown) else _draw_jacobians)(figure, shown)
    return figure


# ---- Curves -------------------------------------------------------------------------------------


def _is_elementwise(found: list[Comparison]) -> bool:
    """Whether each output depends on the input at the same place alone, and all in the same way."""
    if len(found) != 1 or slope_of_each(found[0]) is None:
        return False
    (y,), turned = found[0].case.outputs(*found[0].case.args), flipped(found[0].case)
    (turned_y,) = turned.outputs(*turned.args)
    return torch.allclose(y.flatten().flip(0), turned_y.flatten())


def _along(case: Case, function: Callable, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The values of an elementwise function at each x, and what its backward returns there."""
    found, position, sample = [], case.floats[0], case.args[case.floats[0]]
    for start in range(0, len(x), sample.numel()):  # forward may insist on the shape of the sample
        points = np.resize(x[start : start + sample.numel()], sample.numel())
        leaves = case.leaves([])
        leaves[position] = sample.new_tensor(points).reshape(sample.shape).requires_grad_()
        y = function(*leaves)[0]
        (slope,) = torch.autograd.grad(y.sum(), leaves[position], materialize_grads=True)
        found.append(torch.stack([y.detach().flatten(), slope.flatten()]))
    values, slopes = torch.cat(found, 1)[:, : len(x)].cpu().double().numpy()
    return values, slopes


def _kinks(y: np.ndarray) -> np.ndarray:
    """Where a curve bends far more sharply than two steps to the left and to the right."""
    bend = np.pad(np.nan_to_num(np.abs(np.diff(y, 2)) / STEP, nan=np.inf), 1)
    beside = np.maximum(np.roll(bend, 2), np.roll(bend, -2))
    return np.isfinite(y) & (bend > 0.05) & (bend > 8 * beside) & (bend >= np.roll(bend, 1))


def _draw_curves(figure: Figure, found: list[Comparison]) -> None:
    """Forward above; below it backward over the numerical gradient, with what is wrong shaded."""
    case, sample = found[0].case, found[0].case.args[found[0].position]
    of = "surrogate" if hasattr(case.target, "surrogate") else "forward"
    low, high = min(-3.0, sample.min().item()), max(3.0, sample.max().item())
    x = np.arange(np.floor(low / STEP), np.ceil(high / STEP) + 1) * STEP
    with np.errstate(invalid="ignore"):  # forward may not be defined everywhere
        y, backward = _along(case, case.outputs, x)
        before, there, behind = (_along(case, case.truth, x + n * case.eps)[0] for n in (-1, 0, 1))
        numeric, at_kink = (behind - before) / (2 * case.eps), _kinks(there)
    smooth = np.isfinite(numeric) & ~(at_kink | np.roll(at_kink, 1) | np.roll(at_kink, -1))
    close = np.abs(backward - numeric) <= case.atol + case.rtol * np.abs(numeric)
    wrong, lost = smooth & ~close, np.isfinite(there) & ~np.isfinite(backward)
    numeric[at_kink] = np.nan  # the mean of two slopes is no gradient

    figure.set_size_inches(8, 7)
    above, below = figure.subplots(2, 1, sharex=True)
    above.plot(x, y, color="black", linewidth=2, label="forward")
    if of == "surrogate":
        above.plot(x, there, color=RIGHT, linestyle="--", label="surrogate")
    below.plot(x, numeric, color=RIGHT, lw=7, alpha=0.35, label=f"numerical gradient of {of}")
    below.plot(x, backward, color="black", linewidth=1.5, label="backward, with grad_output 1")
    if at_kink.any():
        below.plot(x[at_kink], backward[at_kink], "ko", label="backward at a kink")
    if lost.any():
        below.plot(x[lost], np.nan_to_num(numeric[lost]), "X", color=WRONG, label="nan or inf")
    shade = {"where": wrong, "color": WRONG, "alpha": 0.2, "linewidth": 0, "step": "mid"}
    shade["label"] = "backward is wrong" if wrong.any() else ""
    least, most = np.percentile(y[np.isfinite(y)], [2, 98])
    no_pole = at_kink & (np.abs(2 * y - least - most) <= 2 * (most - least) + 0.1)
    for axes, curves, word in ((above, [y], "output"), (below, [numeric, backward], "slope")):
        for kink in x[at_kink]:
            axes.axvline(kink, color="grey", linestyle=":", label="kink or jump")
        axes.fill_between(x, 0, 1, transform=axes.get_xaxis_transform(), **shade)
        # A pole would press everything else flat, and a constant would show its rounding.
        finite = [value for curve in curves for value in curve if np.isfinite(value)]
        at_kinks = curves[-1][no_pole & np.isfinite(curves[-1])]
        bottom, top = np.percentile(finite, [2, 98])
        bottom, top = min([bottom, *at_kinks]), max([top, *at_kinks])
        margin = 0.1 * (top - bottom) + 0.1
        axes.set(ylabel=word, ylim=(bottom - margin, top + margin))
        axes.grid(alpha=0.25)
    below.set_xlabel(case.names[found[0].position])
    drawn = [axes.get_legend_handles_labels() for axes in (above, below)]
    legend = {label: handle for pair in drawn for handle, label in zip(*pair, strict=True)}
    figure.legend(legend.values(), legend, loc="outside lower center", ncols=3, frameon=False)


# ---- Jacobians ----------------------------------------------------------------------------------


def _draw_jacobians(figure: Figure, found: list[Comparison]) -> None:
    """A row for each argument: what backward returns, the numerical gradient, the difference."""
    figure.set_size_inches(13, 1.2 + 4.2 * len(found))
    case, outputs = found[0].case, found[0].case.outputs(*found[0].case.args)
    names = ["output"] if len(outputs) == 1 else [f"output {n}" for n in range(len(outputs))]
    rows = [element for pair in zip(names, outputs, strict=True) for element in _elements(*pair)]
    grid = figure.subplots(len(found), 3, squeeze=False, sharey="row")
    for row, comparison in zip(grid, found, strict=True):
        name = case.names[comparison.position]
        backward, numeric = comparison.backward.cpu().numpy(), comparison.numerical.cpu().numpy()
        wrong = (comparison.wrong | comparison.not_finite).cpu().numpy()
        apart = np.where(wrong, backward - numeric, 0)
        largest = np.abs(numeric[np.isfinite(numeric)]).max(initial=0) or 1.0
        _draw_matrix(row[0], backward, wrong, np.abs(backward) / largest)
        _draw_matrix(row[1], numeric, np.zeros_like(wrong), np.abs(numeric) / largest)
        _draw_matrix(row[2], apart, wrong, np.where(wrong, np.abs(apart) / largest, 0.12))
        row[0].set_title(f"backward: gradient for {name}")
        row[1].set_title(f"numerical gradient for {name}")
        row[2].set_title(f"difference: {wrong.sum()} of {wrong.size} entries are wrong")
        columns = _elements(name, case.args[comparison.position])
        every = slice(None, None, -(-max(wrong.shape) // (2 * NUMBERED)))
        for axes in row:
            axes.set_xticks(range(len(columns))[every], columns[every], rotation=90)
        row[0].set_yticks(range(len(rows))[every], rows[every])
    handles = [Patch(color=RIGHT, label="right"), Patch(color=WRONG, label="wrong")]
    figure.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False)


def _elements(name: str, tensor: torch.Tensor) -> list[str]:
    """The name of each real number of a tensor: x[0, 1], or z[0, 1].real and z[0, 1].imag."""
    parts = (".real", ".imag") if tensor.is_complex() else ("",)
    return [f"{name}{index_text(tensor.shape, n)}{p}" for n in range(tensor.numel()) for p in parts]


def _draw_matrix(axes: Axes, values: np.ndarray, wrong: np.ndarray, depth: np.ndarray) -> None:
    """Each entry in the colour of right or wrong, the deeper the larger it is."""
    depth = np.clip(np.nan_to_num(depth, nan=1.0), np.where(wrong, 0.3, 0), 1)
    colour = np.where(wrong[..., None], to_rgb(WRONG), to_rgb(RIGHT))
    axes.imshow(1 - depth[..., None] * (1 - colour), aspect="auto", interpolation="nearest")
    for (row, column), value in np.ndenumerate(values):
        if max(values.shape) <= NUMBERED and (value or wrong[row, column]):
            ink = "white" if depth[row, column] > 0.6 else "black"
            axes.text(column, row, f"{value:.2g}", ha="center", va="center", color=ink, size=8)

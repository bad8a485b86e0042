"""A picture of one check: forward, the numerical gradient, and what backward returns.

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

from lab.checking import numbers
from lab.checking.guesses import samples_of
from lab.checking.samples import Case, flipped
from lab.checking.users_code import users_code
from lab.errors import UserError
from lab.files import write_whole

FORMATS = (".png", ".svg", ".pdf")
# From Okabe and Ito's palette, which can be told apart with every kind of colour blindness.
RIGHT, WRONG = "#0072B2", "#D55E00"
STEP = 0.01  # of the curves; most kinks lie at a multiple of it
NUMBERED = 12  # a Jacobian with more rows or columns is drawn without its numbers

Jacobians = tuple[np.ndarray, np.ndarray, np.ndarray]  # backward's, numerical, which are wrong


def require_format(file: Path) -> None:
    """Refuse a file whose suffix names no format of `FORMATS`.

    Raises:
        UserError: with the suffix, and what is allowed.
    """
    if file.suffix.lower() not in FORMATS:
        suffix, allowed = file.suffix or "no suffix", ", ".join(FORMATS)
        raise UserError(f"--plot {file}: {suffix} is not a supported image format; use {allowed}")


def save_plot(target: Any, file: Path, device: str, seed: int, eps: float, atol: float) -> None:
    """Draw a Function into `file`, in the format that its suffix names.

    Args:
        target: a subclass of `torch.autograd.Function`, or a callable that applies one.
        file: written whole or not at all.
        device, seed, eps, atol: as for `check_function`.

    Raises:
        UserError: the suffix names no supported format, or the file can't be written.
        Crash: forward or backward raised.
    """
    require_format(file)
    torch.manual_seed(seed)
    cases = [Case(target, args, eps, atol) for args in samples_of(target, device)]
    jacobians = [_jacobians(case) for case in cases]
    faulty = [any(wrong.any() for *_, wrong in of_case) for of_case in jacobians]
    shown = faulty.index(True) if any(faulty) else 0
    draw = _draw_curves if _is_elementwise(cases[shown], jacobians[shown]) else _draw_jacobians
    figure = Figure(layout="constrained")
    figure.suptitle(f"{getattr(target, '__name__', target)}\n{cases[shown].describe()}")
    draw(figure, cases[shown], jacobians[shown])
    picture = io.BytesIO()
    figure.savefig(picture, format=file.suffix[1:].lower(), dpi=150)
    write_whole(file, picture.getvalue())


def _jacobians(case: Case) -> list[Jacobians]:
    """For each floating-point argument, a row an output element and a column an input element."""
    return [
        (c.backward.cpu().numpy(), c.numerical.cpu().numpy(), c.wrong.cpu().numpy())
        for c in numbers.compare(case).values()
    ]


# ---- Curves -------------------------------------------------------------------------------------


def _is_elementwise(case: Case, jacobians: list[Jacobians]) -> bool:
    """Whether each output depends on the input at the same place alone, and all in the same way."""
    outputs, turned = case.outputs(*case.args), flipped(case)
    if len(case.floats) != 1 or [y.shape for y in outputs] != [case.args[case.floats[0]].shape]:
        return False
    same = torch.allclose(outputs[0].flatten().flip(0), turned.outputs(*turned.args)[0].flatten())
    return same and not any((m - np.diag(np.diag(m))).any() for m in jacobians[0][:2])


def _along(case: Case, function: Callable, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The values of an elementwise function at each x, and what its backward returns there."""
    position, (sample,) = case.floats[0], [case.args[i] for i in case.floats]
    found = []
    for start in range(0, len(x), sample.numel()):  # forward may insist on the shape of the sample
        points = np.resize(x[start : start + sample.numel()], sample.numel())
        leaves = case.leaves([])
        leaves[position] = sample.new_tensor(points).reshape(sample.shape).requires_grad_()
        y = function(*leaves)[0]
        (slope,) = torch.autograd.grad(y.sum(), leaves[position], materialize_grads=True)
        found.append(torch.stack([y.detach().flatten(), slope.flatten()]))
    values, slopes = torch.cat(found, 1)[:, : len(x)].cpu().numpy()
    return values, slopes


def _kinks(y: np.ndarray) -> np.ndarray:
    """Where a curve bends far more sharply than two steps to the left and to the right."""
    bend = np.pad(np.nan_to_num(np.abs(np.diff(y, 2)) / STEP, nan=np.inf), 1)
    beside = np.maximum(np.roll(bend, 2), np.roll(bend, -2))
    return (bend > 0.05) & (bend > 8 * beside) & (bend >= np.roll(bend, 1))


def _draw_curves(figure: Figure, case: Case, _: list[Jacobians]) -> None:
    """Forward above; below it backward over the numerical gradient, with what is wrong shaded."""
    sample, truth = case.args[case.floats[0]], case.truth
    low, high = min(-3.0, sample.min().item()), max(3.0, sample.max().item())
    x = np.arange(np.floor(low / STEP), np.ceil(high / STEP) + 1) * STEP
    with users_code(f"somewhere between {low:g} and {high:g}"):
        y, backward = _along(case, case.outputs, x)
        before, there, behind = (_along(case, truth, x + n * case.eps)[0] for n in (-1, 0, 1))
    numeric = (behind - before) / (2 * case.eps)
    at_kink = _kinks(there)
    smooth = np.isfinite(numeric) & ~(at_kink | np.roll(at_kink, 1) | np.roll(at_kink, -1))
    wrong = smooth & ~(abs(backward - numeric) <= case.atol + case.rtol * abs(numeric))
    numeric[at_kink] = np.nan  # the mean of two slopes is no gradient

    figure.set_size_inches(8, 7)
    above, below = figure.subplots(2, 1, sharex=True)
    above.plot(x, y, color="black", linewidth=2, label="forward")
    if hasattr(case.target, "surrogate"):
        above.plot(x, there, color=RIGHT, linestyle="--", label="surrogate")
    of = "the surrogate" if hasattr(case.target, "surrogate") else "forward"
    wide = {"color": RIGHT, "linewidth": 7, "alpha": 0.35}
    below.plot(x, numeric, label=f"numerical gradient of {of}", **wide)
    below.plot(x, backward, color="black", linewidth=1.5, label="backward, with grad_output 1")
    for axes, curves in ((above, y), (below, np.concatenate([numeric, backward]))):
        frame = axes.get_xaxis_transform()
        axes.vlines(x[at_kink], 0, 1, color="grey", linestyle=":", transform=frame, label="kink")
        shade = {"color": WRONG, "alpha": 0.2, "linewidth": 0, "label": "backward is wrong"}
        axes.fill_between(x, 0, 1, where=wrong, step="mid", transform=frame, **shade)
        # A pole would press everything else flat, and a constant would show its rounding.
        bottom, top = np.percentile(curves[np.isfinite(curves)], [2, 98])
        margin = max(0.1 * (top - bottom), 0.2)
        axes.set(ylim=(bottom - margin, top + margin))
        axes.grid(alpha=0.25)
    below.plot(x[at_kink], backward[at_kink], "ko", label="backward at a kink")
    lost = np.isfinite(there) & ~np.isfinite(backward)
    below.plot(
        x[lost], 0.5 + 0 * x[lost], "X", color=WRONG, ms=10, transform=frame, label="nan or inf"
    )
    above.set(ylabel="output")
    below.set(ylabel="slope", xlabel=case.names[case.floats[0]])
    drawn = {"kink": at_kink, "backward is wrong": wrong, "backward at a kink": at_kink}
    drawn["nan or inf"] = lost
    pairs = [axes.get_legend_handles_labels() for axes in (above, below)]
    legend = {label: handle for of_axes in pairs for handle, label in zip(*of_axes, strict=True)}
    legend = {label: legend[label] for label in legend if drawn.get(label, smooth).any()}
    figure.legend(legend.values(), legend, loc="outside lower center", ncols=3, frameon=False)


# ---- Jacobians ----------------------------------------------------------------------------------


def _draw_jacobians(figure: Figure, case: Case, jacobians: list[Jacobians]) -> None:
    """A row for each argument: what backward returns, the numerical gradient, the difference."""
    figure.set_size_inches(13, 1.2 + 4.2 * len(jacobians))
    outputs = case.outputs(*case.args)
    row_names = [
        f"output{f' {number}' if len(outputs) > 1 else ''}{numbers.index_text(output.shape, flat)}"
        for number, output in enumerate(outputs)
        for flat in range(output.numel())
    ]
    rows = figure.subplots(len(jacobians), 3, squeeze=False)
    for row, i, (analytic, numeric, wrong) in zip(rows, case.floats, jacobians, strict=True):
        name, shape = case.names[i], case.args[i].shape
        columns = [f"{name}{numbers.index_text(shape, flat)}" for flat in range(numeric.shape[1])]
        largest = np.abs(numeric).max() or 1.0
        nowhere, apart = np.zeros_like(wrong), np.where(wrong, analytic - numeric, 0)
        _draw_matrix(row[0], analytic, wrong, np.abs(analytic) / largest)
        _draw_matrix(row[1], numeric, nowhere, np.abs(numeric) / largest)
        _draw_matrix(row[2], apart, wrong, np.where(wrong, np.abs(apart) / largest, 0.12))
        row[0].set_title(f"backward: gradient for {name}")
        row[1].set_title(f"numerical gradient for {name}")
        row[2].set_title(f"difference: {wrong.sum()} of {wrong.size} entries are wrong")
        for axes in row:
            every = -(-max(wrong.shape) // NUMBERED)
            axes.set_xticks(range(0, len(columns), every), columns[::every], rotation=90)
            shown = row_names[::every] if axes is row[0] else []
            axes.set_yticks(range(0, len(row_names), every)[: len(shown)], shown)
    handles = [Patch(color=RIGHT, label="right"), Patch(color=WRONG, label="wrong")]
    figure.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False)


def _draw_matrix(axes: Axes, values: np.ndarray, wrong: np.ndarray, depth: np.ndarray) -> None:
    """Each entry in the colour of right or wrong, the deeper the larger it is."""
    depth = np.clip(np.nan_to_num(depth, nan=1.0), np.where(wrong, 0.3, 0), 1)
    colour = np.where(wrong[..., None], to_rgb(WRONG), to_rgb(RIGHT))
    axes.imshow(1 - depth[..., None] * (1 - colour), aspect="auto", interpolation="nearest")
    for (row, column), value in np.ndenumerate(values):
        if max(values.shape) <= NUMBERED and (value or wrong[row, column]):
            ink = "white" if depth[row, column] > 0.6 else "black"
            axes.text(column, row, f"{value:.2g}", ha="center", va="center", color=ink, size=8)

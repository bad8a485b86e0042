"""The picture of a comparison: losses over steps, and below them the distance to the reference."""

from __future__ import annotations

import io
import itertools
import math
import os
import textwrap
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backend_bases import FigureCanvasBase
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from lab.comparing.numbers import Comparison, Entry, Row
from lab.comparing.table import ends_lower, first_difference, largest_difference, title
from lab.errors import UserError
from lab.files import write_whole

COLOURS = matplotlib.color_sequences["petroff10"]  # told apart with every kind of colour blindness
# The reference is solid. Dashes over it leave both visible where two curves are equal.
DASHES = ("--", ":", "-.", (0, (8, 3)), (0, (3, 1, 1, 1, 1, 1)), (0, (1, 3)), (0, (8, 2, 2, 2)))
LARGEST_RISE = 100.0  # times its first loss; a curve that rises beyond would press the others flat
BAND_FROM = 8  # seeds
MOST_VERDICTS, MOST_LABELS = 10, 40  # rows of which the legend says the differences, the label
LABEL_CHARACTERS = 36
SPREAD = ("", "\nthick: median of the seeds", "\nmedian, and 10 % to 90 % of the seeds")
STEPS = "step   (▲ first difference, x goes on above or is not finite)"

Curve = tuple[np.ndarray, np.ndarray]  # steps and values; inf where a value is not drawn


def draw(comparison: Comparison, file: Path) -> None:
    """Write the picture; the ending of `file` says the format. A symbolic link is followed.

    Raises:
        UserError: matplotlib doesn't know the format, or the file can't be written.
    """
    kind = picture_format(file)
    picture = io.BytesIO()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # a label may be in any alphabet, a loss be near 1e308
        figure_of(comparison).savefig(picture, format=kind, dpi=120)
    write_whole(Path(os.path.realpath(file)), picture.getvalue())


def picture_format(file: Path) -> str:
    """The format that the ending of `file` asks for; png where it has none.

    Raises:
        UserError: matplotlib doesn't know it, or `file` is a folder, a device or a pipe.
    """
    kind = file.suffix[1:].lower() or "png"
    known = FigureCanvasBase.get_supported_filetypes()
    if kind not in known:
        raise UserError(f"{file}: {kind} is not a picture format; use one of {', '.join(known)}")
    if file.exists() and not file.is_file():
        what = "a folder" if file.is_dir() else "a device or a pipe"
        raise UserError(f"{file} is {what}; name a file")
    return kind


def figure_of(comparison: Comparison) -> Figure:
    """Losses above, relative differences below; the reference is drawn first, and widest."""
    rows = [comparison.reference, *(r for r in comparison.rows if r is not comparison.reference)]
    entries = [entry for row in rows for entry in row.entries]
    # Where every curve rises, there is none that the others could press flat.
    rise = LARGEST_RISE if any(_below(entry, LARGEST_RISE).all() for entry in entries) else math.inf
    figure = Figure(figsize=(11, 6.5), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    few, handles = len(rows) <= MOST_VERDICTS, []
    dashes = itertools.chain("-", itertools.cycle(DASHES))
    for row, colour, dash in zip(rows, itertools.cycle(COLOURS), dashes, strict=False):
        style = {"color": colour, "ls": dash, "lw": 1.2 if not few else 1.7 if handles else 3.2}
        _draw(above, [_losses(entry, rise) for entry in row.entries], style)
        _draw(below, [_distances(entry, rise) for entry in row.entries if entry.difference], style)
        for found in row.differences:
            if found.first_step is not None:
                _mark(below, "^", found.first_step, 0.0, colour)
        label = textwrap.fill(row.label, LABEL_CHARACTERS) + (_verdict(row) if few else "")
        handles.append(Line2D([], [], label=label, **style))
    _set_scales(figure)
    if not any(found.largest for row in rows for found in row.differences):
        below.set_yticks([])
        below.text(0.5, 0.5, "no difference", transform=below.transAxes, ha="center")
    seeds = max(len(row.entries) for row in rows)
    above.set(ylabel="loss" + SPREAD[(seeds > 1) + (seeds >= BAND_FROM)])
    below.set(ylabel="relative difference\nto the reference", xlabel=STEPS)
    above.set_title(textwrap.fill(title(comparison), 90), fontsize=10, parse_math=False)
    legend = figure.legend(
        handles=handles[:MOST_LABELS], loc="outside right upper", frameon=False,
        fontsize=9 if few else 7,
        title=f"{MOST_LABELS} of {len(rows)} rows" if len(rows) > MOST_LABELS else None,
    )  # fmt: skip
    for text in legend.get_texts():
        text.set_parse_math(False)
    return figure


def _set_scales(figure: Figure) -> None:
    """Logarithmic where what is drawn allows it, steps in whole numbers."""
    for axes in figure.axes:
        if axes.dataLim.ymin >= 0 < axes.dataLim.ymax:
            axes.set_yscale("log", nonpositive="mask")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)


def _verdict(row: Row) -> str:
    """How a row differs from the reference, for the lines below its label."""
    lines, seeds = [""], f", {len(row.entries)} seeds" if len(row.entries) > 1 else ""
    if any(found.first_step is not None for found in row.differences):
        lines += [f"first difference: {first_difference(row)}", "largest relative difference:"]
    lines.append(largest_difference(row))
    if seeds and row.differences:
        lines.append(f"ends lower in {ends_lower(row)}")
    return seeds + "\n  ".join(lines)


def _below(entry: Entry, rise: float) -> np.ndarray:
    """Where a curve is finite, and below its first loss times `rise`."""
    losses = entry.run.losses
    return np.isfinite(losses) & (losses <= rise * (abs(losses[0]) or math.inf))


def _losses(entry: Entry, rise: float) -> Curve:
    return entry.run.steps, np.where(_below(entry, rise), entry.run.losses, np.inf)


def _distances(entry: Entry, rise: float) -> Curve:
    steps, relative = entry.difference.steps, entry.difference.relative
    drawn = _below(entry, rise)[np.isin(entry.run.steps, steps)]
    return steps, np.where(drawn, relative, np.inf)


def _draw(axes: Axes, curves: Sequence[Curve], style: dict[str, Any]) -> None:
    """Draw the curve of a row; of several seeds the median, over each curve or over a band."""
    for steps, values in curves:
        if not np.isfinite(values).all():
            _mark(axes, "x", steps[~np.isfinite(values)][0], 1.0, style["color"])
        if 1 < len(curves) < BAND_FROM:
            axes.plot(steps, values, color=style["color"], lw=0.7, alpha=0.6)
    if curves:
        steps, (low, median, high) = percentiles(curves)
        axes.plot(steps, median, **style)
        if len(curves) >= BAND_FROM:
            # A logarithmic axis has no 0, where two curves are equal.
            least = min((v[v > 0].min() for _, v in curves if (v > 0).any()), default=0.0)
            axes.fill_between(
                steps,
                np.maximum(low, least),
                high,
                color=style["color"],
                alpha=0.2,
                lw=0,
                where=high >= least,
            )
            for curve in curves:  # the axis reaches what the table says
                axes.update_datalim(np.column_stack(curve))


def percentiles(curves: Sequence[Curve]) -> tuple[np.ndarray, np.ndarray]:
    """The steps of all curves, (n,), and the 10th, 50th and 90th percentile at each, (3, n).

    A curve that ends with an infinite value counts as infinite from there on. Where a curve has no
    value the percentiles are NaN.
    """
    steps = np.unique(np.concatenate([steps for steps, _ in curves]))
    grid = np.full((len(curves), len(steps)), np.nan)
    for line, (of_curve, values) in zip(grid, curves, strict=True):
        line[np.searchsorted(steps, of_curve)] = values
        if not np.isfinite(values[-1]):
            line[steps > of_curve[-1]] = np.inf
    low, high = np.percentile(grid, [10, 90], axis=0, method="nearest")
    return steps, np.stack([low, np.median(grid, axis=0), high])


def _mark(axes: Axes, marker: str, step: int, height: float, colour: Any) -> None:
    """Put a mark on the lower (0) or upper (1) edge, whatever the scale of the axis is."""
    edge = axes.get_xaxis_transform()
    axes.plot([step], [height], marker, c=colour, clip_on=False, transform=edge, zorder=5)

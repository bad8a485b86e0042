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
from lab.recording.curves import RecordedRun

COLOURS = matplotlib.color_sequences["petroff10"]  # told apart with every kind of colour blindness
# The reference is solid. Dashes over it leave both visible where two curves are equal.
DASHES = ("--", ":", "-.", (0, (8, 3)), (0, (3, 1, 1, 1, 1, 1)), (0, (1, 3)), (0, (8, 2, 2, 2)))
LARGEST_RISE = 100.0  # times its first loss; a curve that rises beyond would press the others flat
BAND_FROM = 8  # seeds
MOST_VERDICTS, MOST_LABELS = 10, 40  # rows of which the legend says the differences, the label

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
    runs = [entry.run for row in rows for entry in row.entries]
    # Where every curve rises, there is none that the others could press flat.
    limit = LARGEST_RISE if any(_stays_below(run, LARGEST_RISE).all() for run in runs) else math.inf
    figure = Figure(layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    handles: list[Line2D] = []
    dashes = itertools.chain("-", itertools.cycle(DASHES))
    for row, colour, dash in zip(rows, itertools.cycle(COLOURS), dashes, strict=False):
        style: dict[str, Any] = {"color": colour, "ls": dash, "lw": 1.6 if handles else 3.2}
        _draw(above, [_losses(entry, limit) for entry in row.entries], style)
        _draw(below, [_distances(entry, limit) for entry in row.entries if entry.difference], style)
        for found in row.differences:
            if found.first_step is not None:
                _mark(below, "^", found.first_step, 0.0, colour)
        handles.append(Line2D([], [], label=_label(row, comparison), **style))
    for axes, name in ((above, "loss"), (below, "relative difference\nto the reference")):
        if axes.dataLim.ymin >= 0 < axes.dataLim.ymax:
            axes.set_yscale("log", nonpositive="mask")
        axes.set_ylabel(name)
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    below.set_xlabel("step")
    below.xaxis.get_major_locator().set_params(integer=True)
    if below.get_yscale() != "log":
        below.set_yticks([])
    if not any(found.largest for row in rows for found in row.differences):
        below.text(0.5, 0.5, "no difference", transform=below.transAxes, ha="center")
    _explain(figure, comparison, handles)
    return figure


def _explain(figure: Figure, comparison: Comparison, handles: list[Line2D]) -> None:
    """Add title and legend, and make room for them."""
    marks = {line.get_marker() for axes in figure.axes for line in axes.lines}
    seeds = max(len(row.entries) for row in comparison.rows)
    notes = {
        "one seed": {"lw": 0.7} if 1 < seeds < BAND_FROM else None,
        "10th to 90th percentile of seeds": {"lw": 8, "alpha": 0.2} if seeds >= BAND_FROM else None,
        "first difference": {"ls": "", "marker": "^"} if "^" in marks else None,
        "goes on above, or is not finite": {"ls": "", "marker": "x"} if "x" in marks else None,
    }
    rest = [
        Line2D([], [], color="grey", label=name, **style) for name, style in notes.items() if style
    ]
    legend = figure.legend(
        handles=handles[:MOST_LABELS] + rest,
        loc="outside right upper",
        frameon=False,
        fontsize=9 if len(handles) <= MOST_VERDICTS else 7,
        title=f"{MOST_LABELS} of {len(handles)} rows" if len(handles) > MOST_LABELS else None,
    )
    heading = figure.suptitle(textwrap.fill(title(comparison), 110), fontsize=10)
    for text in (heading, *legend.get_texts()):
        text.set_parse_math(False)
    lines = sum(text.get_text().count("\n") + 1 for text in legend.get_texts())
    figure.set_size_inches(11, max(6.5, 1 + 0.18 * lines))


def _label(row: Row, comparison: Comparison) -> str:
    lines = textwrap.wrap(row.label, 36)
    if len(row.entries) > 1:
        lines[-1] += f", {len(row.entries)} seeds"
    if row is comparison.reference:
        lines[-1] += " (reference)"
    elif len(comparison.rows) <= MOST_VERDICTS:
        lines += [f"  first difference: {first_difference(row)}", "  largest relative difference:"]
        lines += [f"  {largest_difference(row)}"]
        if len(row.entries) > 1:
            lines += [f"  ends lower: {ends_lower(row)}"]
    return "\n".join(lines)


def _stays_below(run: RecordedRun, limit: float) -> np.ndarray:
    """Where a curve is finite, and below its first loss times the limit."""
    return np.isfinite(run.losses) & (run.losses <= limit * (abs(run.losses[0]) or np.inf))


def _losses(entry: Entry, limit: float) -> Curve:
    run = entry.run
    return run.steps, np.where(_stays_below(run, limit), run.losses, np.inf)


def _distances(entry: Entry, limit: float) -> Curve:
    steps, relative = entry.difference.steps, entry.difference.relative
    drawn = _stays_below(entry.run, limit)[np.isin(entry.run.steps, steps)]
    return steps, np.where(drawn, relative, np.inf)


def _draw(axes: Axes, curves: Sequence[Curve], style: dict[str, Any]) -> None:
    """Draw the curve of a row; of several seeds the median, over each curve or over a band."""
    for steps, values in curves:
        if not np.isfinite(values).all():
            _mark(axes, "x", steps[~np.isfinite(values)][0], 1.0, style["color"])
    if len(curves) == 1:
        axes.plot(*curves[0], **style)
    elif curves:
        steps, (low, median, high) = percentiles(curves)
        axes.plot(steps, median, **style)
        if len(curves) >= BAND_FROM:
            axes.fill_between(steps, low, high, color=style["color"], alpha=0.2, lw=0)
        else:
            for curve in curves:
                axes.plot(*curve, **style | {"lw": 0.7})


def percentiles(curves: Sequence[Curve]) -> tuple[np.ndarray, np.ndarray]:
    """The steps of all curves, (n,), and the 10th, 50th and 90th percentile at each, (3, n).

    A curve that ends with an infinite value counts as infinite from there on, one that merely ends
    counts no more.
    """
    steps = np.unique(np.concatenate([steps for steps, _ in curves]))
    table = np.full((len(curves), len(steps)), np.nan)
    for line, (of_curve, values) in zip(table, curves, strict=True):
        line[np.searchsorted(steps, of_curve)] = values
        if not np.isfinite(values[-1]):
            line[steps > of_curve[-1]] = np.inf
    return steps, np.nanpercentile(table, [10, 50, 90], axis=0)


def _mark(axes: Axes, marker: str, step: int, height: float, colour: Any) -> None:
    """Put a mark on the lower (0) or upper (1) edge, whatever the scale of the axis is."""
    edge = axes.get_xaxis_transform()
    axes.plot([step], [height], marker, c=colour, clip_on=False, transform=edge, zorder=5)

"""The plot of a comparison: losses over steps, and below them the distance to the reference."""

from __future__ import annotations

import functools
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
from matplotlib.ticker import MaxNLocator

from lab.comparing.numbers import Comparison, Row
from lab.comparing.table import first_difference, largest_difference, title
from lab.errors import UserError
from lab.files import write_whole
from lab.recording.reading import RecordedRun

COLOURS = matplotlib.color_sequences["petroff10"]  # told apart with every kind of colour blindness
# The reference is solid. Dashes over it leave both visible where two curves are equal.
DASHES = ("--", ":", "-.", (0, (8, 3)), (0, (3, 1, 1, 1, 1, 1)), (0, (1, 3)), (0, (8, 2, 2, 2)))
LARGEST_RISE = 100.0  # times its first loss; a curve that rises beyond would press the others flat
MOST_VERDICTS, MOST_LABELS = 10, 40  # rows of which the legend says the differences, the label
LABEL_CHARACTERS = 36
FEW_POINTS = 30  # a curve with so few points shows each of them
MARKS = {"^": "▲ first difference", "x": "x goes on above, or is not finite"}

Curve = tuple[np.ndarray, np.ndarray]  # steps and values; inf where a value is not drawn


def draw(comparison: Comparison, file: Path) -> None:
    """Write the plot; the ending of `file` says the format. A symbolic link is followed.

    Raises:
        UserError: matplotlib doesn't know the format, or the file can't be written.
    """
    kind = plot_format(file)
    image = io.BytesIO()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # a label may be in any alphabet, a loss be near 1e308
        figure_of(comparison).savefig(image, format=kind, dpi=120)
    write_whole(Path(os.path.realpath(file)), image.getvalue())


def plot_format(file: Path) -> str:
    """The format that the ending of `file` asks for; png where it has none.

    Raises:
        UserError: matplotlib doesn't know it, or `file` is a folder, a device or a pipe.
    """
    kind = file.suffix[1:].lower() or "png"
    known = sorted({*FigureCanvasBase.get_supported_filetypes()} - {"pgf"})  # that needs LaTeX
    if kind not in known:
        raise UserError(
            f"{file}: {kind} is not a supported image format; use one of {', '.join(known)}"
        )
    if file.exists() and not file.is_file():
        what = "a folder" if file.is_dir() else "a device or a pipe"
        raise UserError(f"{file} is {what}; name a file")
    return kind


def figure_of(comparison: Comparison) -> Figure:
    """Losses above, relative differences below; the reference is drawn first, and widest."""
    rows = [comparison.reference, *(r for r in comparison.rows if r is not comparison.reference)]
    runs = [entry.run for row in rows for entry in row.entries]
    # If every curve rises, no curve is pressed flat by the others.
    rise = LARGEST_RISE if any(_below(run, LARGEST_RISE).all() for run in runs) else math.inf
    few = len(rows) <= MOST_VERDICTS
    called = [
        "\n  ".join([textwrap.fill(row.label, LABEL_CHARACTERS), *(_verdict(row) if few else [])])
        for row in rows
    ]
    lines = "\n".join(called[:MOST_LABELS]).count("\n") + 3
    height = max(6.5, lines * (0.2 if few else 0.155))  # inches; the legend must fit
    figure = Figure(figsize=(11, height), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    dashes = itertools.chain("-", itertools.cycle(DASHES))
    styles = zip(rows, called, itertools.cycle(COLOURS), dashes, strict=False)
    for row, label, colour, dash in styles:
        width = (3.2 if row is comparison.reference else 1.7) if few else 1.2
        style = {"color": colour, "ls": dash, "lw": width, "label": label}
        pairs = [(entry.run, entry.difference) for entry in row.entries]
        _draw(above, [_shown(run, run.steps, run.losses, rise) for run, _ in pairs], style)
        _draw(below, [_shown(r, d.steps, d.relative, rise) for r, d in pairs if d], style)
        for step in row.first_differences:
            _mark(below, "^", step, 0.0, colour)
    for axes in (above, below):
        if axes.dataLim.ymin >= 0 < axes.dataLim.ymax:
            axes.set_yscale("log", nonpositive="mask")
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    below.xaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True))
    has_seeds = len(runs) > len(rows)
    above.set_ylabel("loss\nthick: median, band: all seeds" if has_seeds else "loss")
    drawn = {line.get_marker() for axes in figure.axes for line in axes.lines}
    notes = ["step", *(words for marker, words in MARKS.items() if marker in drawn)]
    below.set(ylabel="relative difference\nto the reference", xlabel=",   ".join(notes))
    above.set_title(textwrap.fill(title(comparison), 90), fontsize=10, parse_math=False)
    handles, _ = above.get_legend_handles_labels()
    legend = figure.legend(
        handles=handles[:MOST_LABELS], fontsize=9 if few else 7, frameon=False,
        title=f"{MOST_LABELS} of {len(rows)} rows" if len(rows) > MOST_LABELS else None,
        loc="outside right upper",
    )  # fmt: skip
    for text in legend.get_texts():
        text.set_parse_math(False)
    return figure


def _verdict(row: Row) -> list[str]:
    """How a row differs from the reference, for the lines below its label."""
    differs = [f"first difference: {first_difference(row)}", "largest relative difference:"]
    return [*(differs if row.first_differences else []), largest_difference(row)]


def _below(run: RecordedRun, rise: float) -> np.ndarray:
    """Where the loss of a run is finite, and below its first loss times `rise`."""
    return np.isfinite(run.losses) & (run.losses <= rise * (abs(run.losses[0]) or math.inf))


def _shown(run: RecordedRun, steps: np.ndarray, values: np.ndarray, rise: float) -> Curve:
    """The curve, with inf at the steps where the loss of the run is not `_below`."""
    hidden = run.steps[~_below(run, rise)]
    return steps, np.where(np.isin(steps, hidden), np.inf, values)


def _draw(axes: Axes, curves: Sequence[Curve], style: dict[str, Any]) -> None:
    """Draw the curve of a row; of several seeds a band, thin curves, and the median of all."""
    thin = {"lw": 0.7, "ls": "-", "alpha": 0.6, "label": ""} if len(curves) > 1 else {}
    for steps, values in curves:
        axes.plot(steps, values, **style | thin)
        # A point without a neighbour that is drawn, on a logarithmic axis, would not be seen.
        drawn = np.pad(np.isfinite(values) & (values > 0), 1)
        alone = drawn[1:-1] & ~drawn[:-2] & ~drawn[2:]
        if len(steps) <= FEW_POINTS:
            alone[:] = True
        if alone.any():
            axes.plot(steps[alone], values[alone], ".", c=style["color"], ms=4)
        if not np.isfinite(values).all():
            _mark(axes, "x", steps[~np.isfinite(values)][0], 1.0, style["color"])
    if thin:
        common = functools.reduce(np.intersect1d, [steps for steps, _ in curves])
        at_common = np.array([v[np.isin(steps, common)] for steps, v in curves])
        shown = np.ma.masked_invalid(at_common)
        if (shown >= 0).all():
            shown = np.ma.masked_equal(shown, 0)  # which a logarithmic axis can't show
        low, high = shown.min(axis=0), shown.max(axis=0)
        axes.fill_between(common, low, high, color=style["color"], alpha=0.12, lw=0)
        axes.plot(common, np.median(at_common, axis=0), **style)


def _mark(axes: Axes, marker: str, step: int, height: float, colour: Any) -> None:
    """Put a mark on the lower (0) or upper (1) edge, whatever the scale of the axis is."""
    edge = axes.get_xaxis_transform()
    axes.plot([step], [height], marker, c=colour, clip_on=False, transform=edge, zorder=5)

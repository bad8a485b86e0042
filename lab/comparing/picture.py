"""The picture of a comparison: losses over steps, and below them the distance to the reference."""

from __future__ import annotations

import io
import itertools
import warnings
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backend_bases import FigureCanvasBase
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from lab.comparing.numbers import Comparison
from lab.comparing.table import verdict
from lab.errors import UserError
from lab.files import write_whole

COLOURS = matplotlib.color_sequences["petroff10"]  # told apart with every kind of colour blindness
# The reference is solid. Dashes over it leave both visible where two curves are equal.
DASHES = ("--", ":", "-.", (0, (8, 3)), (0, (3, 1, 1, 1, 1, 1)), (0, (1, 3)), (0, (8, 2, 2, 2)))
MOST_VERDICTS = 10  # rows of which the legend says more than the label


def draw(comparison: Comparison, file: Path) -> None:
    """Write the picture; the ending of `file` says the format.

    Raises:
        UserError: matplotlib doesn't know the format, or the file can't be written.
    """
    kind = format_of(file)
    picture = io.BytesIO()
    with warnings.catch_warnings():
        # Losses of a diverged run come near 1e308, and a label may be in any alphabet.
        warnings.filterwarnings("ignore", "overflow|Glyph .* missing")
        figure_of(comparison).savefig(picture, format=kind, dpi=120)
    write_whole(file, picture.getvalue())


def format_of(file: Path) -> str:
    """The format that the ending of `file` asks for; png where it has none.

    Raises:
        UserError: matplotlib doesn't know it.
    """
    kind = file.suffix[1:].lower() or "png"
    known = FigureCanvasBase.get_supported_filetypes()
    if kind not in known:
        raise UserError(f"{file}: {kind} is not a picture format; use one of {', '.join(known)}")
    return kind


def figure_of(comparison: Comparison) -> Figure:
    """Losses above, relative differences below; the reference is drawn first, and widest."""
    rows = [comparison.reference, *(r for r in comparison.rows if r is not comparison.reference)]
    rows = [row for row in rows if len(row.run.steps)]
    figure = Figure(figsize=(10, 6.5), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    handles: list[Line2D] = []
    dashes = itertools.chain("-", itertools.cycle(DASHES))
    for row, colour, dash in zip(rows, itertools.cycle(COLOURS), dashes, strict=False):
        style: dict[str, Any] = {"color": colour, "ls": dash, "lw": 1.6 if handles else 3.2}
        above.plot(row.run.steps, row.run.losses, **style)
        found = row.difference
        if found.relative is not None and row is not comparison.reference:
            below.plot(found.steps, found.relative, **style)
            if found.first_step is not None:  # marked on the step axis, as it may be off the scale
                edge = below.get_xaxis_transform()
                below.plot([found.first_step], [0.0], "^", c=colour, clip_on=False, transform=edge)
        label = row.label
        if len(rows) <= MOST_VERDICTS:
            label += "\n  first difference: {}\n  largest: {}".format(*verdict(row, comparison))
        handles.append(Line2D([], [], label=label, **style))
    if _is_positive(above):
        above.set_yscale("log", nonpositive="mask")
    above.set_ylabel("loss")
    below.set_ylabel("relative difference\nto the reference")
    below.set_xlabel("step")
    below.xaxis.get_major_locator().set_params(integer=True)
    if _is_positive(below):
        below.set_yscale("log", nonpositive="mask")
    else:
        below.set_yticks([])
        below.text(0.5, 0.5, "no difference", transform=below.transAxes, ha="center")
    for axes in (above, below):
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    legend = figure.legend(handles=handles, loc="outside right upper", frameon=False)
    for text in legend.get_texts():
        text.set_parse_math(False)
    return figure


def _is_positive(axes: Axes) -> bool:
    """Whether a logarithmic axis can show what was drawn: nothing below 0, something above it."""
    values = np.concatenate([[0.0], *(line.get_ydata() for line in axes.lines)])
    finite = values[np.isfinite(values)]
    return bool(finite.min() >= 0 and finite.max() > 0)

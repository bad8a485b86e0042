"""The picture of a comparison: losses over steps, and below them the distance to the reference."""

from __future__ import annotations

import io
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.backend_bases import FigureCanvasBase
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from lab.comparing.comparison import Comparison, Row, cut_apart
from lab.errors import UserError
from lab.files import write_whole

# Okabe and Ito's colours, told apart with every kind of colour blindness.
FEW = ("#000000", "#E69F00", "#56B4E9", "#009E73", "#D55E00", "#0072B2", "#CC79A7", "#8C8C8C")
NAMED_RUNS = 12
LABEL_CHARACTERS = 40


def draw(comparison: Comparison, file: Path) -> None:
    """Write the picture; the ending of `file` says the format.

    Raises:
        UserError: matplotlib doesn't know the format, or the file can't be written.
    """
    kind = format_of(file)
    try:
        with np.errstate(over="ignore"):  # losses near 1e308, as a diverged run has them
            figure = figure_of(comparison)
            picture = io.BytesIO()
            figure.savefig(picture, format=kind, dpi=120)
            write_whole(file, picture.getvalue())
    except UserError as error:
        raise UserError(f"--plot {error}") from error


def format_of(file: Path) -> str:
    """The format that the ending of `file` asks for; png where it has none.

    Raises:
        UserError: matplotlib doesn't know it.
    """
    kind = file.suffix[1:].lower() or "png"
    known = FigureCanvasBase.get_supported_filetypes()
    if kind not in known:
        raise UserError(f"--plot {file}: {kind} is no format of a picture: {', '.join(known)}")
    return kind


def figure_of(comparison: Comparison) -> Figure:
    # The reference is drawn first and widest, the others thinner and thinner over it: curves that
    # lie over each other all stay visible.
    rows = [comparison.reference, *(r for r in comparison.rows if r is not comparison.reference)]
    rows = [row for row in rows if len(row.run.steps)]
    few = len(rows) <= len(FEW)
    colours = FEW if few else _sequence(len(rows))
    widths = np.linspace(4.0, 1.2, len(rows)) if few else [2.5, *[1.0] * (len(rows) - 1)]

    figure = Figure(figsize=(10, 6.5), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    handles = []
    differ = False
    labels = cut_apart(rows, LABEL_CHARACTERS)[1]
    for row, label, colour, width in zip(rows, labels, colours, widths, strict=False):
        on_top = not few and row is comparison.reference  # many would bury it
        style = {"color": colour, "linewidth": width, "zorder": 4 if on_top else 2}
        _draw_losses(above, row, style)
        differ |= _draw_difference(below, row, style | {"linewidth": width / 2}, marked=few)
        handles.append(Line2D([], [], label=_legend(row, label, comparison, verdict=few), **style))

    losses = np.concatenate([row.run.losses for row in rows]) if rows else np.zeros(0)
    if np.any(losses[np.isfinite(losses)] > 0) and not np.any(losses < 0):
        above.set_yscale("log")
    above.set_ylabel("loss")
    below.set_ylabel("relative difference\nto the reference")
    below.set_xlabel("step")
    below.xaxis.get_major_locator().set_params(integer=True)
    if differ:
        below.set_yscale("log")
        bottom, top = below.get_ylim()
        if bottom < 1.0:  # else a curve that diverges would press all others flat
            below.set_ylim(top=min(top, 10.0))
    else:
        below.set_yticks([])
        words = "no difference between comparable runs"
        below.text(0.5, 0.5, words, transform=below.transAxes, ha="center")
    for axes in (above, below):
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    _add_legend(figure, handles)
    return figure


def _sequence(size: int) -> list:
    """Black for the reference, then one perceptually even sequence."""
    return ["black", *matplotlib.colormaps["viridis"](np.linspace(0.1, 0.95, size - 1))]


def _draw_losses(axes, row: Row, style: dict) -> None:
    finite = np.isfinite(row.run.losses)
    axes.plot(row.run.steps, np.where(finite, row.run.losses, np.nan), **style)
    if not finite.all() and finite.any():
        last = int(np.flatnonzero(finite)[-1])
        axes.plot(row.run.steps[last], row.run.losses[last], "x", color=style["color"], ms=9, mew=2)


def _draw_difference(axes, row: Row, style: dict, *, marked: bool) -> bool:
    """Draw what can be drawn on a log axis; say whether anything could."""
    found = row.difference
    if found.relative is None:
        return False
    visible = np.isfinite(found.relative) & (found.relative > 0)
    axes.plot(found.steps, np.where(visible, found.relative, np.nan), **style)
    if found.parts_at is None:
        return bool(visible.any())
    # A mark on the step axis: at the step itself the difference may be too large to draw.
    axes.plot(
        found.parts_at, 0.0, "^", color=style["color"], ms=9 if marked else 5, clip_on=False,
        transform=axes.get_xaxis_transform(), zorder=5,
    )  # fmt: skip
    if marked:
        axes.axvline(found.parts_at, color=style["color"], linewidth=0.8, linestyle=":")
    return bool(visible.any())


def _legend(row: Row, label: str, comparison: Comparison, *, verdict: bool) -> str:
    found = row.difference
    if row is comparison.reference:
        return f"{label} (reference)"
    if not verdict:
        return label
    parts = "equal" if found.parts_at is None else f"parts at {found.parts_at}"
    return f"{label}\n  {found.not_comparable or parts}"


def _add_legend(figure: Figure, handles: list[Line2D]) -> None:
    if len(handles) > NAMED_RUNS:
        chosen = np.linspace(0, len(handles) - 1, NAMED_RUNS).astype(int)
        title = f"{NAMED_RUNS} of {len(handles)} runs"
        handles = [handles[i] for i in chosen]
    else:
        title = None
    figure.legend(handles=handles, loc="outside right upper", frameon=False, title=title)

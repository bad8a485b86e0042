"""A comparison as text for people: a title, a table, and why runs stopped."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from lab.comparing.labels import VALUE_ALONE, as_typed, last_part, steps_done
from lab.comparing.numbers import Comparison, Row
from lab.recording.reading import RecordedRun

LINE_CHARACTERS = 80  # of running text
MOST_RUNS = 30  # with a line each below the lines of their rows
FIRST, LARGEST = "first\ndifference", "largest relative\ndifference"
OF_A_ROW = ("run", "seeds", "last loss", "its range", "accuracy", FIRST, LARGEST, "ends\nlower")
OF_A_RUN = ("run", "steps", "last loss", "accuracy", "steps/s", FIRST, LARGEST, "folder")
OF_A_PAIR = ("run", "steps", "last loss", "accuracy", "ratio", FIRST, LARGEST, "folder")
OPTIONAL = (LARGEST, "its range", "folder", "steps/s")  # left out of lines that are too long
RIGHT_ALIGNED = ("last loss", "accuracy", "steps/s", "ratio")


def table(comparison: Comparison, width: int | None = None) -> str:
    """The comparison as lines of text, as far as possible of at most `width` characters.

    One line a row. Where rows have several seeds, its loss and accuracy are medians, and a second
    table has one line a run, with the ratio of its last loss to that of the reference.
    """
    rows = comparison.rows
    has_seeds = any(len(row.entries) > 1 for row in rows)
    lines = textwrap.wrap(title(comparison), LINE_CHARACTERS)
    if has_seeds:
        lines += [*_aligned(rows, OF_A_ROW, width, OPTIONAL), ""]
        rows = [Row(f"{r.label} seed={e.run.summary.seed}", [e]) for r in rows for e in r.entries]
    if has_seeds and len(rows) > MOST_RUNS:
        lines.append(f"{len(rows)} runs; --csv has a line for each")
    else:
        lines += _aligned(rows, OF_A_PAIR if has_seeds else OF_A_RUN, width, OPTIONAL[2:])
    if comparison.tolerance:
        lines.append(f"equal: a relative difference of at most {comparison.tolerance:g}")
    errors = [(row.label, row.entries[0].run.summary.error) for row in rows]
    return "\n".join(lines + [f"{label}: {error}" for label, error in errors if error])


def title(comparison: Comparison) -> str:
    """What is compared, and what all runs share but those whose label says otherwise."""
    keys, usual = comparison.keys, comparison.usual
    by = f" by {', '.join(map(last_part, keys))}" if keys else ""
    known = [key for key in (*VALUE_ALONE, "seed", "steps") if key not in keys] + keys[1:]
    said = [f"{last_part(key)} {as_typed(usual[key])}" for key in known if key in usual]
    otherwise = ", unless a label says otherwise" if {*keys[1:]} & {*usual} else ""
    against = f", compared with {comparison.reference.label}" if comparison.rows[1:] else ""
    return f"Loss curves{by}{against}; {', '.join(said)}{otherwise}"


def _aligned(
    rows: Sequence[Row], columns: Sequence[str], width: int | None, optional: Sequence[str]
) -> list[str]:
    """Lines of text, without columns of which all cells are `-`, and optional ones too wide."""
    table = []
    for name in columns:
        cells = [CELLS[name](row) for row in rows]
        head = f"\n{name}".split("\n")[-2:]
        size = max(map(len, (*head, *cells)))
        pad = str.rjust if name in RIGHT_ALIGNED else str.ljust
        if set(cells) != {"-"}:
            table.append([pad(cell, size) for cell in (*head, "-" * size, *cells)])
    lines = ["  ".join(line).rstrip() for line in zip(*table, strict=True)]
    if width is not None and optional and len(max(lines, key=len)) > width:
        columns = [name for name in columns if name != optional[0]]
        return _aligned(rows, columns, width, optional[1:])
    return lines


def status(run: RecordedRun) -> str:
    """The status of a run. One that is still in progress looks like one that was killed."""
    return "unfinished" if run.summary.status == "running" else run.summary.status


def _unfinished(row: Row) -> str:
    counts = Counter(status(entry.run) for entry in row.entries)
    del counts["finished"]
    alone = len(row.entries) == 1
    return "".join(f" {word}" if alone else f", {n} {word}" for word, n in counts.items())


def _range(row: Row) -> str:
    losses = row.last_losses
    return f"{losses.min():.2g} to {losses.max():.2g}" if len(losses) > 1 else "-"


def _accuracy(row: Row) -> str:
    found = [entry.run.summary.test_accuracy for entry in row.entries]
    shares = [share for share in found if share is not None]
    return f"{np.median(shares):.1%}" if shares else "-"


def _speed(row: Row) -> str:
    speed = row.entries[0].run.summary.steps_per_second
    return "-" if speed is None else f"{speed:,.0f}"


def first_difference(row: Row) -> str:
    """The step, of several seeds the range of steps, at which a row differs from the reference."""
    steps = row.first_differences
    never = len(row.differences) - len(steps)
    if not steps:
        return "never" if never else "-"
    up_to = f" to {max(steps)}" if min(steps) < max(steps) else ""
    return f"step {min(steps)}{up_to}" + (f", {never} never" if never else "")


def largest_difference(row: Row) -> str:
    """The largest relative difference over all seeds, and its step; or why it is missing."""
    if not row.differences:
        reason = row.entries[0].not_comparable
        return f"not comparable: {reason}" if reason else "the reference"
    found = max(row.differences, key=lambda found: found.largest_difference)
    over = "" if found.complete else f" (up to step {found.steps[-1]})"
    if found.largest_difference == 0.0:
        return f"equal bit for bit{over}"
    return f"{percent(found.largest_difference)} at step {found.largest_at}{over}"


def ends_lower(row: Row) -> str:
    """In how many pairs of the same seed a row's last loss is below that of the reference."""
    pairs = row.differences
    return f"{sum(found.lower for found in pairs)} of {len(pairs)}" if pairs else "-"


CELLS: dict[str, Callable[[Row], str]] = {
    "run": lambda row: row.label,
    "seeds": lambda row: f"{len(row.entries)}{_unfinished(row)}",
    "steps": lambda row: f"{steps_done(row.entries[0].run)}{_unfinished(row)}",
    "last loss": lambda row: f"{np.median(row.last_losses):.5g}",
    "its range": _range,
    "accuracy": _accuracy,
    "steps/s": _speed,
    "ratio": lambda row: f"{row.differences[0].ratio:.4g}" if row.differences else "-",
    FIRST: first_difference,
    LARGEST: largest_difference,
    "ends\nlower": ends_lower,
    "folder": lambda row: row.entries[0].name,
}


def percent(relative: float) -> str:
    """A relative difference in two digits, in percent while that needs no exponent.

    >>> percent(0.0184), percent(3.2e-7), percent(12.0), percent(float("inf"))
    ('1.8 %', '3.2e-07', '1,200 %', 'inf')
    """
    return f"{float(f'{100 * relative:.2g}'):,g} %" if 1e-4 <= relative < 1e3 else f"{relative:.2g}"

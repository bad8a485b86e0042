"""A comparison as text for people: a title, a table, and why runs stopped."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from lab.comparing.labels import VALUE_ALONE, settings
from lab.comparing.numbers import Comparison, Row
from lab.recording.reading import RecordedRun

RIGHT_ALIGNED = ("last loss", "median of\nlast loss", "accuracy", "steps/s", "ratio of\nlast loss")
LINE_CHARACTERS = 80  # of running text


def table(comparison: Comparison, width: int | None = None) -> str:
    """The comparison as lines of text.

    One line a row; where rows have several seeds, a second table has one line a run. The folders of
    the runs, its last column, are left out where a line would be longer than `width` characters.
    """
    rows = comparison.rows
    lines = textwrap.wrap(title(comparison), LINE_CHARACTERS)
    if comparison.has_seeds:
        lines += [*_aligned(_spread(rows)), ""]
        rows = [Row(f"{r.label} seed={e.run.seed}", [e]) for r in rows for e in r.entries]
    columns = _each_run(rows, "ratio of\nlast loss" if comparison.has_seeds else "steps/s")
    if width is not None and len(max(_aligned(columns), key=len)) > width:
        del columns["folder"]
    lines += _aligned(columns)
    if comparison.tolerance:
        lines.append(f"equal: a relative difference of at most {comparison.tolerance:g}")
    for row in rows:
        if error := row.entries[0].run.error:
            lines.append(f"{row.label}: {error}")
    return "\n".join(lines)


def title(comparison: Comparison) -> str:
    """What is compared and what is the same for all, in one line."""
    runs = [entry.run for row in comparison.rows for entry in row.entries]
    by = ", ".join(key.rpartition(".")[2] for key in comparison.keys)
    values = {key: {str(settings(run).get(key)) for run in runs} for key in (*VALUE_ALONE, "seed")}
    values["steps"] = {f"{steps_done(run):,}" for run in runs}
    same = [f"{key} {value}" for key, (value, *others) in values.items() if not others]
    return f"Loss curves{by and ' by '}{by}; the same for all: {', '.join(same)}"


def _spread(rows: Sequence[Row]) -> dict[str, list[str]]:
    return {
        "run": [row.label for row in rows],
        "seeds": [f"{len(row.entries)}{_unfinished(row)}" for row in rows],
        "median of\nlast loss": [f"{np.median(row.last_losses):.4g}" for row in rows],
        "range": [f"{row.last_losses.min():.2g} to {row.last_losses.max():.2g}" for row in rows],
        "accuracy": [_accuracy(row) for row in rows],
        "first\ndifference": [first_difference(row) for row in rows],
        "ends\nlower": [ends_lower(row) for row in rows],
    }


def _each_run(rows: Sequence[Row], extra: str) -> dict[str, list[str]]:
    """The columns for rows of one run; `extra` is the name of one of them."""
    runs = [row.entries[0].run for row in rows]
    if extra == "steps/s":
        numbers = [f"{run.steps_per_second:,.0f}" if run.steps_per_second else "-" for run in runs]
    else:
        numbers = [f"{row.differences[0].ratio:.4g}" if row.differences else "-" for row in rows]
    return {
        "run": [row.label for row in rows],
        "steps": [f"{steps_done(row.entries[0].run):,}{_unfinished(row)}" for row in rows],
        "last loss": [f"{run.losses[-1]:.5g}" for run in runs],
        "accuracy": [_accuracy(row) for row in rows],
        extra: numbers,
        "first\ndifference": [first_difference(row) for row in rows],
        "largest relative\ndifference": [largest_difference(row) for row in rows],
        "folder": [row.entries[0].name for row in rows],
    }


def _aligned(columns: Mapping[str, Sequence[str]]) -> list[str]:
    """Lines of text; a column that says nothing but `-` is left out."""
    cells = []
    for title, column in columns.items():
        head = ("\n" + title).split("\n")[-2:]
        size = max(map(len, (*head, *column)))
        pad = str.rjust if title in RIGHT_ALIGNED else str.ljust
        if set(column) != {"-"}:
            cells.append([pad(cell, size) for cell in (*head, "-" * size, *column)])
    return ["  ".join(line).rstrip() for line in zip(*cells, strict=True)]


def steps_done(run: RecordedRun) -> int:
    """The number of steps, of which the curve may hold only every tenth."""
    return int(run.steps[-1]) + 1


def status(run: RecordedRun) -> str:
    """The status of a run. One that is still in progress looks like one that was killed."""
    return "unfinished" if run.status == "running" else run.status


def _unfinished(row: Row) -> str:
    counts = Counter(status(entry.run) for entry in row.entries if entry.run.status != "finished")
    alone = len(row.entries) == 1
    return "".join(f" {word}" if alone else f", {n} {word}" for word, n in counts.items())


def _accuracy(row: Row) -> str:
    """The median over the seeds."""
    shares = [e.run.test_accuracy for e in row.entries if e.run.test_accuracy is not None]
    return f"{np.median(shares):.1%}" if shares else "-"


def first_difference(row: Row) -> str:
    """The step, of several seeds the range of steps, at which a row differs from the reference."""
    steps = [found.first_step for found in row.differences if found.first_step is not None]
    never = len(row.differences) - len(steps)
    if not steps:
        return "never" if never else "-"
    up_to = f" to {max(steps)}" if min(steps) < max(steps) else ""
    return f"step {min(steps)}{up_to}" + (f", {never} never" if never else "")


def largest_difference(row: Row) -> str:
    """The largest relative difference over all seeds, and its step; or why there is none."""
    if not row.differences:
        reason = row.entries[0].not_comparable
        return f"not comparable: {reason}" if reason else "the reference"
    found = max(row.differences, key=lambda found: found.largest)
    over = "" if found.complete else f" (up to step {found.steps[-1]})"
    if found.largest == 0.0:
        return f"equal bit for bit{over}"
    return f"{percent(found.largest)} at step {found.largest_at}{over}"


def ends_lower(row: Row) -> str:
    """In how many pairs of the same seed a row's last loss is below that of the reference."""
    pairs = row.differences
    return f"{sum(found.lower for found in pairs)} of {len(pairs)}" if pairs else "-"


def percent(relative: float) -> str:
    """A relative difference in two digits, in percent while that needs no exponent.

    >>> percent(0.0184), percent(3.2e-7), percent(12.0), percent(float("inf"))
    ('1.8 %', '3.2e-07', '1,200 %', 'inf')
    """
    return f"{float(f'{100 * relative:.2g}'):,g} %" if 1e-4 <= relative < 1e3 else f"{relative:.2g}"


def terminal_width() -> int | None:
    """Characters in a line of the terminal; None where standard output is not a terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None

"""The numbers of a comparison: rows, pairs of the same seed, first and largest differences."""

from __future__ import annotations

import csv
import math
import statistics

import numpy as np
import pytest

from lab.comparing.numbers import Comparison, Difference
from lab.errors import UserError

INF, NAN = math.inf, math.nan


def test_the_same_numbers_never_differ(run):
    found = Difference(run("a"), run("b"))
    assert (found.first_difference, found.largest_difference, found.largest_at) == (None, 0.0, 0)
    assert (found.ratio, found.lower, found.complete) == (1.0, False, True)


def test_one_last_bit_is_a_difference(run):
    found = Difference(run("a", [3.0, np.nextafter(2.0, 3.0).item(), 1.5]), run("b", [3.0, 2.0, 1]))
    assert found.first_difference == 1
    assert (found.largest_difference, found.largest_at, found.ratio) == (0.5, 2, 1.5)


def test_a_tolerance_moves_the_first_difference(run):
    a, b = run("a", [1.0, 1.01, 1.5]), run("b", [1.0, 1.0, 1.0])
    assert [Difference(a, b, t).first_difference for t in (0.0, 0.1, 0.5)] == [1, 2, None]


@pytest.mark.parametrize(
    ("losses", "reference", "first_step", "largest", "lower"),
    [
        ([1.0, NAN], [1.0, NAN], None, 0.0, False),
        ([1.0, INF], [1.0, INF], None, 0.0, False),
        ([1.0, NAN], [1.0, 2.0], 1, INF, False),
        ([1.0, 2.0], [1.0, INF], 1, INF, True),
        ([1.0, 2.0], [1.0, NAN], 1, INF, True),
        ([1.0, -INF], [1.0, INF], 1, INF, True),
        ([1.0, 1.0], [1.0, 0.0], 1, INF, False),
        ([0.0, 0.0], [0.0, 0.0], None, 0.0, False),
        ([1.0, -3.0], [1.0, -2.0], 1, 0.5, True),
    ],
)
def test_losses_that_are_not_finite_or_not_positive(
    run, losses, reference, first_step, largest, lower
):
    a, b = run("a", losses, status="diverged"), run("b", reference, status="diverged")
    found = Difference(a, b)
    assert (found.first_difference, found.largest_difference, found.lower) == (
        first_step,
        largest,
        lower,
    )


def test_curves_of_different_lengths_are_compared_over_the_steps_that_both_have(run):
    long, short = run("a", [3.0, 2.0, 1.0]), run("b", [3.0, 2.5], status="interrupted")
    found = Difference(short, long)
    assert found.steps.tolist() == [0, 1]
    assert (found.ratio, found.lower, found.complete) == (1.25, False, False)


def test_runs_that_differ_by_nothing_but_the_seed_are_one_row(run):
    runs = [
        run(f"{function}_{seed}", [3.0 + seed, last], seed=seed, function=function)
        for function, lasts in (("relu", [1.0, 2.0, 4.0]), ("myrelu", [1.1, 2.0, 3.0]))
        for seed, last in enumerate(lasts)
    ]
    comparison = Comparison(runs)
    relu, myrelu = comparison.rows
    assert (relu.label, myrelu.label) == ("relu", "myrelu")
    assert comparison.reference is relu
    assert [entry.run.summary.seed for entry in myrelu.entries] == [0, 1, 2]
    assert [found.first_difference for found in myrelu.differences] == [1, None, 1]
    assert [found.ratio for found in myrelu.differences] == [1.1, 1.0, 0.75]
    assert [found.lower for found in myrelu.differences] == [False, False, True]
    assert relu.differences == []


def test_a_repeated_seed_starts_another_row(run):
    runs = [run("a"), run("b"), run("c", seed=1), run("d", seed=1), run("e")]
    comparison = Comparison(runs)
    assert [[entry.name for entry in row.entries] for row in comparison.rows] == [
        ["a", "c"],
        ["b", "d"],
        ["e"],
    ]
    assert [row.label for row in comparison.rows] == ["myrelu", "myrelu (2)", "e"]


def test_a_seed_without_a_partner_is_not_compared(run):
    comparison = Comparison([run("a"), run("b", seed=1, function="relu")])
    (entry,) = comparison.rows[1].entries
    assert (entry.difference, entry.not_comparable) == (None, "other seed")
    assert comparison.rows[1].label == "relu seed=1"


def test_how_a_run_was_watched_makes_no_row(run):
    watched = [
        run(f"{i}", seed=i, config={"log_every": i + 1, "progress": i == 0, "resume": "x" * i})
        for i in range(2)
    ]
    assert len(Comparison(watched).rows) == 1


def test_another_function_optimizer_lr_dtype_or_device_is_comparable(run):
    other = run("b", function="x", optimizer="y", lr=0.1, dtype="float32", device="cuda")
    assert Comparison([run("a"), other]).rows[1].differences


def test_the_reference_is_builtin_else_the_first_else_what_is_asked_for(run, tmp_path):
    a, b, c = run("a"), run("s/b", function="relu"), run("c", lr=0.1)
    assert Comparison([a, b, c]).reference.entries[0].name == "a"
    builtin = Comparison([a, b, run("d", function="builtin")]).reference
    assert builtin.entries[0].name == "d"
    for wanted in ("s/b", str(tmp_path / "s/b"), "b", "relu"):
        assert Comparison([a, b, c], wanted).reference.entries[0].name == "s/b"
    assert Comparison([a, b, c], "myrelu lr=0.1").reference.entries[0].name == "c"
    with pytest.raises(UserError, match="fits 2 rows"):
        Comparison([c, run("e", lr=0.2), b], "myrelu")
    with pytest.raises(UserError, match="fits 0 rows"):
        Comparison([a, b], "nothing")


def test_a_builtin_run_of_one_step_is_not_the_reference(run):
    short = run("a", [3.0], function="builtin", status="interrupted")
    assert Comparison([short, run("b"), run("c")]).reference.entries[0].name == "b"
    longer = run("d", [3.0, 2.0], function="builtin", status="interrupted", lr=0.1)
    assert Comparison([short, run("e"), longer]).reference.entries[0].name == "d"


def test_three_functions_and_five_seeds_against_the_csv_files(run, tmp_path):
    chance = np.random.default_rng(0)
    functions = ("relu", "myrelu", "mistake")
    same = {seed: chance.random(20) for seed in range(5)}
    runs = []
    for function in functions:
        for seed in range(5):
            losses = same[seed].copy()
            if function != "relu":
                losses[3 + 2 * seed :] *= 1 + 0.1 * chance.standard_normal(17 - 2 * seed)
            runs.append(run(f"{function}_{seed}", losses.tolist(), function=function, seed=seed))
    rows = {row.label: row for row in Comparison(runs).rows}
    assert list(rows) == list(functions)

    def curve(function, seed):
        with (tmp_path / f"{function}_{seed}/curve.csv").open() as file:
            return [float(record["loss"]) for record in csv.DictReader(file)]

    for function in functions:
        curves = [curve(function, seed) for seed in range(5)]
        lasts = [losses[-1] for losses in curves]
        row = rows[function]
        assert statistics.median(row.last_losses) == statistics.median(lasts)
        assert (min(row.last_losses), max(row.last_losses)) == (min(lasts), max(lasts))
        if function == "relu":
            continue
        assert len(row.differences) == 5
        for seed, found in enumerate(row.differences):
            pairs = list(zip(curves[seed], curve("relu", seed), strict=True))
            assert found.first_difference == next(i for i, (a, b) in enumerate(pairs) if a != b)
            assert found.largest_difference == max(abs(a - b) / b for a, b in pairs)
            assert found.ratio == pairs[-1][0] / pairs[-1][1]
            assert found.lower == (pairs[-1][0] < pairs[-1][1])

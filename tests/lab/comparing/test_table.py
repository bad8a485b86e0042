"""The table of a comparison, and its JSON and CSV."""

from __future__ import annotations

import csv
import json
import math

import pytest

from lab.comparing.numbers import Comparison
from lab.comparing.report import as_csv, as_json
from lab.comparing.selection import select
from lab.comparing.table import table
from lab.recording.curve import start_curve
from lab.recording.reading import read_run
from lab.recording.summary import Summary

INF, NAN = math.inf, math.nan


def cells(text):
    return [" ".join(line.split()) for line in text.splitlines()]


@pytest.fixture
def mixed(run):
    return Comparison(
        [
            run("0_builtin_manual_sgd_cpu", function="builtin"),
            run("1_myrelu_manual_sgd_cpu"),
            run("2_relu_manual_sgd_cpu", [3.0, 2.5, 2.0], function="relu"),
            run("3_x", [3.0, INF], status="diverged", lr=9, error="loss is inf at step 1"),
            run("4_x", [3.0], status="running", steps_per_second=None, lr=2),
            run("5_x", seed=1, lr=3),
        ]
    )


def test_the_whole_table(mixed):
    first, *rest = cells(table(mixed))
    assert first.startswith("Loss curves by function, seed, lr, compared with builtin lr=1e-06; ")
    told = rest[rest.index("first largest relative") :]
    assert told[1] == "run steps last loss steps/s difference difference folder"
    assert told[3:] == [
        "builtin lr=1e-06 3 1 1,234 - the reference 0_builtin_manual_sgd_cpu",
        "myrelu lr=1e-06 3 1 1,234 never equal bit for bit 1_myrelu_manual_sgd_cpu",
        "relu lr=1e-06 3 2 1,234 step 1 100 % at step 2 2_relu_manual_sgd_cpu",
        "myrelu lr=9 2 diverged inf 1,234 step 1 inf at step 1 (up to step 1) 3_x",
        "myrelu lr=2 1 unfinished 3 - never equal bit for bit (up to step 0) 4_x",
        "myrelu seed=1 lr=3 3 1 1,234 - not comparable: other seed 5_x",
        "myrelu lr=9: loss is inf at step 1",
    ]


def test_the_table_of_several_seeds(run):
    runs = [
        run(f"{function}_{seed}", [3.0, last], function=function, seed=seed, **more)
        for function, lasts in (("relu", [1.0, 2.0, 4.0]), ("myrelu", [1.1, 2.0, 3.0]))
        for seed, last in enumerate(lasts)
        for more in [{"status": "interrupted"} if (function, seed) == ("relu", 2) else {}]
    ]
    told = cells(table(Comparison(runs)))
    assert told[3:] == [
        "run seeds last loss its range difference difference lower",
        told[4],
        "relu 3, 1 interrupted 2 1 to 4 - the reference -",
        "myrelu 3 2 1.1 to 3 step 1, 1 never 25 % at step 1 1 of 3",
        "",
        "first largest relative",
        "run steps last loss ratio difference difference folder",
        told[10],
        "relu seed=0 2 1 - - the reference relu_0",
        "relu seed=1 2 2 - - the reference relu_1",
        "relu seed=2 2 interrupted 4 - - the reference relu_2",
        "myrelu seed=0 2 1.1 1.1 step 1 10 % at step 1 myrelu_0",
        "myrelu seed=1 2 2 1 never equal bit for bit myrelu_1",
        "myrelu seed=2 2 3 0.75 step 1 25 % at step 1 myrelu_2",
    ]


def test_a_diverged_seed_counts_as_infinite(run):
    last = {0: 1.0, 1: 2.0, 2: NAN}
    runs = [run(f"{i}", [3.0, last[i]], seed=i, status="diverged") for i in range(3)]
    assert "3, 3 diverged 2 1 to inf" in " ".join(table(Comparison(runs)).split())


def test_the_accuracy_is_a_column_where_there_is_one(run):
    assert "accuracy" not in table(Comparison([run("a")]))
    runs = [run("b", test_accuracy=0.9756), run("c", lr=0.1), run("d", test_accuracy=0.5, seed=1)]
    told = cells(table(Comparison(runs)))
    assert "accuracy" in told[3]
    assert " 73.8% " in told[5]
    assert told[6].startswith("lr=0.1 1 1 - ")


@pytest.mark.parametrize("seeds", [1, 5])
def test_columns_are_left_out_where_they_make_a_line_too_long(run, seeds):
    runs = [
        run(f"{i}_{function}", [3.0, 2.0, 1.0 + i], function=function, seed=seed)
        for i, function in enumerate(("relu", "myrelu", "mistake_no_mask"))
        for seed in ([0], range(5))[seeds > 1]
    ] if seeds == 1 else [
        run(f"{function}_{seed}", [3e7, 2.0, 3.0287e-05 * (1 + seed)], function=function, seed=seed)
        for function in ("relu", "myrelu", "mistake_no_mask")
        for seed in range(5)
    ]  # fmt: skip
    whole, narrow = table(Comparison(runs)), table(Comparison(runs), 80)
    assert "folder" in whole
    assert max(map(len, narrow.splitlines())) <= 80
    assert "folder" not in narrow
    assert table(Comparison(runs), 200) == whole


def test_many_runs_of_several_seeds_have_no_line_each(run):
    runs = [run(f"{i}", seed=i) for i in range(40)]
    told = table(Comparison(runs)).splitlines()
    assert len(told) < 10
    assert told[-1].startswith("40 runs")


def test_json_and_csv_keep_every_digit(run):
    a = run("a", [0.1 + 0.2, 1e-300])
    b = run("b", [0.3, NAN], status="diverged", lr=0.1)
    failed = run("c", [], status="failed", error="no")
    others = [run("d", data="digits")]
    selection = select([a, b, failed, *others])
    comparison = Comparison(selection.runs)
    told = json.loads(as_json(comparison, selection, []), parse_constant=pytest.fail)
    assert told["runs"][0]["first_loss"] == 0.1 + 0.2
    assert told["runs"][1]["final_loss"] == "nan"
    assert told["runs"][1]["largest_difference"] == "inf"
    assert told["runs"][1]["ratio"] == "inf"
    assert told["failed"] == [{"path": str(failed.folder), "error": "no"}]
    assert told["other_problems"] == [{"runs": 1, "data": "digits"}]
    rows = list(csv.DictReader(as_csv(comparison).splitlines()))
    assert float(rows[0]["first_loss"]) == 0.1 + 0.2
    assert (rows[0]["first_difference"], rows[1]["first_difference"]) == ("", "0")


def test_steps_are_counted_beside_points(tmp_path, run):
    summary = Summary(
        "relu", "manual_sgd", "two_layer_net", "random", "cpu", "float64", 0, steps=11,
        status="finished", config={"log_every": 10, "data": {"samples": 64}},
    )  # fmt: skip
    (tmp_path / "a").mkdir()
    start_curve(tmp_path / "a", summary, [(0, 3.0), (10, 1.0)])
    every_tenth = read_run(tmp_path / "a")
    whole = run("b", [3.0, *[2.0] * 9, 1.0, 0.5])
    comparison = Comparison([every_tenth, whole])
    told = json.loads(as_json(comparison, select([every_tenth]), []))
    assert [(r["steps"], r["points"]) for r in told["runs"]] == [(11, 2), (12, 12)]
    assert told["reference"] == "a"
    assert "equal bit for bit (up to step 10)" in table(comparison)

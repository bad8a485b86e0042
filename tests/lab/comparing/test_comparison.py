"""The numbers of a comparison, its table and its picture."""

from __future__ import annotations

import csv
import json
import math

import numpy as np
import pytest

from lab.comparing.labels import labels
from lab.comparing.numbers import compare, difference
from lab.comparing.picture import draw, figure_of
from lab.comparing.table import as_csv, as_json, table
from lab.errors import UserError
from lab.recording.reading import read_run
from tests.recorded import write_run

INF, NAN = math.inf, math.nan


@pytest.fixture
def run(tmp_path):
    def make(name, losses=(3.0, 2.0, 1.0), **changes):
        return read_run(write_run(tmp_path / name, losses, **changes))

    return make


def test_the_same_numbers_never_differ(run):
    found = difference(run("a"), run("b"))
    assert (found.first_step, found.largest, found.largest_at) == (None, 0.0, 0)


def test_one_last_bit_is_a_difference(run):
    found = difference(run("a", [3.0, np.nextafter(2.0, 3.0).item(), 1.5]), run("b", [3.0, 2.0, 1]))
    assert found.first_step == 1
    assert (found.largest, found.largest_at) == (0.5, 2)


def test_a_tolerance_moves_the_first_difference(run):
    a, b = run("a", [1.0, 1.01, 1.5]), run("b", [1.0, 1.0, 1.0])
    assert [difference(a, b, t).first_step for t in (0.0, 0.1, 0.5)] == [1, 2, None]


@pytest.mark.parametrize(
    ("losses", "reference", "first_step", "largest"),
    [
        ([1.0, NAN], [1.0, NAN], None, 0.0),
        ([1.0, INF], [1.0, INF], None, 0.0),
        ([1.0, NAN], [1.0, 2.0], 1, INF),
        ([1.0, 2.0], [1.0, INF], 1, INF),
        ([1.0, -INF], [1.0, INF], 1, INF),
        ([1.0, 1.0], [1.0, 0.0], 1, INF),
        ([0.0, 0.0], [0.0, 0.0], None, 0.0),
    ],
)
def test_losses_that_are_not_finite_or_zero(run, losses, reference, first_step, largest):
    a, b = run("a", losses, status="diverged"), run("b", reference, status="diverged")
    found = difference(a, b)
    assert (found.first_step, found.largest) == (first_step, largest)


def test_curves_of_different_lengths_are_compared_over_the_steps_that_both_have(run):
    long, short = run("a", [3.0, 2.0, 1.0]), run("b", [3.0, 2.0], status="interrupted")
    assert difference(short, long).steps.tolist() == [0, 1]
    text = table(compare([long, short]))
    assert "equal bit for bit (up to step 1)" in text


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"seed": 1}, "other seed"),
        ({"config": {"data": {"samples": 65}}}, "other data"),
        ({"config": {}, "data": "digits"}, "other data"),
        ({"seed": 1, "config": {}, "data": "digits"}, "other data and seed"),
        ({"losses": [], "status": "failed"}, "no step"),
    ],
)
def test_another_problem_is_not_comparable(run, changes, reason):
    reference, other = run("a"), run("b", **changes)
    assert difference(other, reference).not_comparable == reason
    assert f"not comparable: {reason}" in table(compare([reference, other]))


def test_another_function_optimizer_lr_dtype_or_device_is_comparable(run):
    other = run("b", function="x", optimizer="y", lr=0.1, dtype="float32", device="cuda")
    assert difference(other, run("a")).not_comparable is None


def test_the_reference_is_builtin_else_the_first_else_what_is_asked_for(run, tmp_path):
    a, b, c = run("a"), run("s/b", function="relu"), run("c")
    assert compare([a, b, c]).reference.name == "a"
    assert compare([a, b, run("d", function="builtin")]).reference.name == "d"
    failed = run("e", [], function="builtin", status="failed")
    assert compare([failed, a]).reference.name == "a"
    assert compare([failed]).reference.name == "e"
    for wanted in ("s/b", str(tmp_path / "s/b"), "b", "relu"):
        assert compare([a, b, c], wanted).reference.name == "s/b"
    with pytest.raises(UserError, match="fits 2 runs"):
        compare([a, b, c], "myrelu")
    with pytest.raises(UserError, match="fits 0 runs"):
        compare([a, b], "nothing")


def test_the_reference_is_one_that_most_runs_can_be_compared_with(run):
    digits = {"config": {}, "data": "digits"}
    first, second = run("s/a", function="builtin", **digits), run("s/b", **digits)
    assert compare([first, second, run("t/a")]).reference.name == "s/a"
    official = [run("o/a", function="relu"), run("o/b"), run("o/c", function="builtin", seed=1)]
    third = run("o/d", function="linearfunction")
    runs = [first, second, *official, third]
    assert compare(runs).reference.name == "o/a"


def test_a_builtin_run_of_one_step_is_not_the_reference(run):
    short = run("a", [3.0], function="builtin", status="interrupted")
    assert compare([short, run("b"), run("c")]).reference.name == "b"
    longer = run("d", [3.0, 2.0], function="builtin", status="interrupted")
    assert compare([short, run("e"), longer]).reference.name == "d"


def test_labels_say_only_what_differs(run):
    def said(*changes):
        said.calls += 1
        runs = [run(f"{said.calls}/{i}", **change) for i, change in enumerate(changes)]
        return labels(runs, [str(i) for i in range(len(runs))])

    said.calls = 0
    assert said({"function": "relu"}, {"function": "myrelu"}) == ["relu", "myrelu"]
    assert said({"lr": 0.1}, {"lr": 1e-6}) == ["lr=0.1", "lr=1e-06"]
    assert said({"seed": 0, "device": "cuda"}, {"seed": 1}) == ["cuda seed=0", "cpu seed=1"]
    # adam brings its lr with it; only where two runs of adam differ in lr it is said
    adam = {"optimizer": "adam", "lr": 0.1, "config": {"optimizer": {"lr": 0.1}}}
    other = {"optimizer": "adam", "lr": 0.2, "config": {"optimizer": {"lr": 0.2}}}
    assert said(adam, {"config": {"optimizer": {"lr": 1e-6}}}) == ["adam", "manual_sgd"]
    assert said(adam, other) == ["lr=0.1", "lr=0.2"]
    assert said({}, {}) == ["0", "1"]
    assert said({"function": "a"}, {}, {}) == ["a", "myrelu (1)", "myrelu (2)"]
    # a model takes its layers from the function and its sizes from the data
    relu = {"model": {"activation": {"_target_": "torch.relu"}}, "function": {}}
    tanh = {"model": {"activation": {"_target_": "torch.tanh"}}, "function": {}}
    assert said({"function": "a", "config": relu}, {"config": tanh}) == ["a", "myrelu"]
    sizes = [{"data": {"features": n}, "model": {"features": n}} for n in (5, 10)]
    assert said(*({"config": config} for config in sizes)) == ["features=5", "features=10"]
    assert said({"config": {"flush_seconds": 2}}, {"config": {"flush_seconds": 3}}) == ["0", "1"]


@pytest.fixture
def mixed(run):
    return compare(
        [
            run("0_builtin_manual_sgd_cpu", function="builtin"),
            run("1_myrelu_manual_sgd_cpu"),
            run("2_relu_manual_sgd_cpu", [3.0, 2.5, 2.0], function="relu"),
            run("3_x", [3.0, INF], status="diverged", lr=9, error="loss is inf at step 1"),
            run("4_x", [3.0], status="running", steps_per_second=None, lr=2),
            run("5_x", seed=1),
        ]
    )


def test_the_whole_table(mixed):
    told = [" ".join(line.split()) for line in table(mixed).splitlines()]
    assert told[0] == "run steps last loss steps/s first difference largest difference folder"
    assert told[2:] == [
        "builtin seed=0 lr=1e-06 3 1 1,234 - the reference 0_builtin_manual_sgd_cpu",
        "myrelu seed=0 lr=1e-06 3 1 1,234 never equal bit for bit 1_myrelu_manual_sgd_cpu",
        "relu seed=0 lr=1e-06 3 2 1,234 step 1 100 % at step 2 2_relu_manual_sgd_cpu",
        "myrelu seed=0 lr=9 2 diverged inf 1,234 step 1 inf at step 1 (up to step 1) 3_x",
        "myrelu seed=0 lr=2 1 unfinished 3 - never equal bit for bit (up to step 0) 4_x",
        "myrelu seed=1 lr=1e-06 3 1 1,234 - not comparable: other seed 5_x",
        "myrelu seed=0 lr=9: loss is inf at step 1",
    ]


def test_the_accuracy_is_a_column_where_there_is_one(run):
    assert "accuracy" not in table(compare([run("a")]))
    header, _, first, second = table(compare([run("b", test_accuracy=0.9756), run("c")])).split(
        "\n"
    )
    assert "  accuracy  " in header
    assert "  97.6%  " in first
    assert "  -  " in second


def test_folders_are_left_out_where_they_make_a_line_too_long(mixed):
    whole, narrow = table(mixed), table(mixed, 110)
    assert max(map(len, narrow.splitlines())) <= 110
    assert "2_relu_manual_sgd_cpu" in whole
    assert "2_relu_manual_sgd_cpu" not in narrow
    assert table(mixed, 200) == whole


def test_a_run_without_a_step_makes_no_difference_to_the_labels_of_the_others(run):
    whole = {"optimizer": {"lr": 0.1}, "model": {"features": 1000}}
    failed = {"optimizer": {"lr": "${lr}"}, "model": {"features": "${data.features}"}}
    runs = [
        run("a", config=whole),
        run("b", function="relu", config=whole),
        run("c", function="no", losses=[], status="failed", error="no such file", config=failed),
    ]
    assert labels(runs, ["a", "b", "2_no"]) == ["myrelu", "relu", "2_no"]
    assert "\nc: no such file" in table(compare(runs), 60)


def test_json_and_csv_keep_every_digit(run):
    a = run("a", [0.1 + 0.2, 1e-300])
    b = run("b", [0.3, NAN], status="diverged")
    comparison = compare([a, b])
    told = json.loads(as_json(comparison, []), parse_constant=pytest.fail)
    assert told["runs"][0]["first_loss"] == 0.1 + 0.2
    assert told["runs"][1]["final_loss"] == "nan"
    assert told["runs"][1]["largest_difference"] == "inf"
    rows = list(csv.DictReader(as_csv(comparison).splitlines()))
    assert float(rows[0]["first_loss"]) == 0.1 + 0.2
    assert rows[1]["first_difference"] == "0"


@pytest.mark.parametrize("count", [1, 2, 50])
def test_every_run_has_a_curve_and_a_name_in_the_legend(run, count):
    figure = figure_of(compare([run(f"{i}", lr=i) for i in range(count)]))
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert len(set(texts)) == count
    assert len(figure.axes[0].lines) == count


def test_the_picture_marks_the_first_difference(run):
    figure = figure_of(compare([run("a"), run("b", [3.0, 2.5, 1.0])]))
    losses, differences = figure.axes
    assert (losses.get_yscale(), differences.get_yscale()) == ("log", "log")
    assert [line.get_xdata() for line in differences.lines if line.get_marker() == "^"] == [[1]]


@pytest.mark.parametrize("losses", [[INF], [NAN], [0.0], [-1.0, -2.0], [1e308, 5e-324], []])
def test_any_losses_can_be_drawn(run, tmp_path, losses):
    comparison = compare([run("a", losses, status="diverged"), run("b")])
    draw(comparison, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_a_picture_that_cannot_be_written_is_the_users_mistake(run, tmp_path):
    comparison = compare([run("a")])
    with pytest.raises(UserError, match=r"picture\.xyz"):
        draw(comparison, tmp_path / "picture.xyz")
    with pytest.raises(UserError, match="No such file"):
        draw(comparison, tmp_path / "none/picture.png")

"""The numbers of a comparison, its table at every width, and its picture."""

from __future__ import annotations

import csv
import json
import math

import numpy as np
import pytest

from lab.comparing.comparison import (
    as_csv,
    as_json,
    compare,
    difference,
    labels,
    one_problem,
    table,
)
from lab.comparing.picture import FEW, NAMED_RUNS, draw, figure_of
from lab.errors import UserError
from lab.recording.reading import read_run
from tests.recorded import write_run

INF, NAN = math.inf, math.nan


@pytest.fixture
def run(tmp_path):
    def make(name, losses=(3.0, 2.0, 1.0), **changes):
        return read_run(write_run(tmp_path / name, losses, **changes))

    return make


def test_the_same_numbers_never_part(run):
    found = difference(run("a"), run("b"))
    assert (found.parts_at, found.largest, found.largest_at) == (None, 0.0, 0)


def test_one_last_bit_is_a_difference(run):
    found = difference(run("a", [3.0, np.nextafter(2.0, 3.0).item(), 1.5]), run("b", [3.0, 2.0, 1]))
    assert found.parts_at == 1
    assert (found.largest, found.largest_at) == (0.5, 2)


def test_a_tolerance_moves_the_step_at_which_they_part(run):
    a, b = run("a", [1.0, 1.01, 1.5]), run("b", [1.0, 1.0, 1.0])
    assert [difference(a, b, t).parts_at for t in (0.0, 0.1, 0.5)] == [1, 2, None]


@pytest.mark.parametrize(
    ("losses", "reference", "parts_at", "largest"),
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
def test_losses_that_are_not_finite_or_zero(run, losses, reference, parts_at, largest):
    a, b = run("a", losses, status="diverged"), run("b", reference, status="diverged")
    found = difference(a, b)
    assert (found.parts_at, found.largest) == (parts_at, largest)


def test_curves_of_different_lengths_are_compared_over_the_steps_that_both_have(run):
    long, short = run("a", [3.0, 2.0, 1.0]), run("b", [3.0, 2.0], status="interrupted")
    assert difference(short, long).steps.tolist() == [0, 1]
    text = table(compare([long, short]))
    assert "equal bit for bit (2 steps)" in text


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
    with pytest.raises(UserError, match="2 runs go by it"):
        compare([a, b, c], "myrelu")
    with pytest.raises(UserError, match="none of the runs compared: a, s/b"):
        compare([a, b], "nothing")


def test_the_reference_is_one_that_most_runs_can_be_compared_with(run):
    digits = {"config": {}, "data": "digits"}
    first, second = run("s/a", function="builtin", **digits), run("s/b", **digits)
    assert compare([first, second, run("t/a")]).reference.name == "s/a"
    official = [run("o/a", function="relu"), run("o/b"), run("o/c", function="builtin", seed=1)]
    third = run("o/d", function="linearfunction")
    runs = [first, second, *official, third]
    assert compare(runs).reference.name == "o/a"
    assert one_problem(compare(runs)).name == "s"
    assert one_problem(compare([first, second, official[0]])) is None


def test_the_reference_is_the_builtin_with_the_most_steps_in_common_and_more_than_one(run):
    short = run("a", [3.0], function="builtin", status="interrupted")
    others = [run("b"), run("c")]
    assert compare([short, *others]).reference.name == "b"
    longer = run("d", [3.0, 2.0], function="builtin", status="interrupted")
    assert compare([short, *others, longer]).reference.name == "d"
    assert compare([short, *others, longer, run("e", function="builtin")]).reference.name == "e"


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
            run("2_relu_manual_sgd_cpu_with_a_rather_long_name", [3.0, 2.5, 2.0], function="relu"),
            run("3_x", [3.0, INF], status="diverged", error="loss is inf at step 1: try less"),
            run("4_x", [3.0], status="running", steps_per_second=None),
            run("5_x", seed=1),
        ]
    )


def test_the_whole_table(mixed):
    told = [" ".join(line.split()) for line in table(mixed).splitlines()]
    assert told[0] == (
        "name function optimizer device steps status first loss last loss steps/s parts at "
        "largest difference"
    )
    assert told[2:] == [
        "0_builtin_manual_sgd_cpu builtin manual_sgd cpu 3 finished 3 1 1,234 - the reference",
        "1_myrelu_manual_sgd_cpu myrelu manual_sgd cpu 3 finished 3 1 1,234 never "
        "equal bit for bit",
        "2_relu_manual_sgd_cpu_with_a_rather_long_name relu manual_sgd cpu 3 finished 3 2 1,234 1 "
        "1 at 2",
        "3_x myrelu manual_sgd cpu 2 diverged 3 inf 1,234 1 inf at 1 (2 steps)",
        "4_x myrelu manual_sgd cpu 1 unfinished 3 3 - never equal bit for bit (1 step)",
        "5_x myrelu manual_sgd cpu 3 finished 3 1 1,234 - not comparable: other seed",
        "3_x: loss is inf at step 1: try less",
    ]


def test_the_accuracy_is_a_column_where_there_is_one(run):
    assert "accuracy" not in table(compare([run("a")]))
    header, _, first, second = table(compare([run("b", test_accuracy=0.9756), run("c")])).split(
        "\n"
    )
    assert "  accuracy  " in header
    assert "  97.6%  " in first
    assert "  -  " in second


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 300])
def test_no_line_is_wider_than_the_terminal(mixed, width):
    lines = table(mixed, width).splitlines()
    assert max(map(len, lines)) <= width
    assert "parts at" in table(mixed, max(width, 80))


def test_at_80_columns_what_all_runs_share_is_said_once(mixed):
    first, header, *_ = table(mixed, 80).splitlines()
    assert first.startswith("every run: optimizer manual_sgd, device cpu")
    assert {"name", "status", "last", "parts", "largest"} <= set(header.split())


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


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("{}_a_folder_with_a_long_name", "a_function_with_a_long_name_{}"),
        ("a_folder_with_a_long_name_{}", "one"),
        ("a_folder_with_{}_in_the_middle_of_a_long_name", "a_function_with_{}_in_the_middle_of_it"),
    ],
)
def test_no_two_runs_look_alike_when_cut(run, name, function):
    runs = [
        run(f"{name.format(i)}_{'x' * 60}", function=function.format(i) + "y" * 60)
        for i in range(30)
    ]
    comparison = compare(runs)
    for width in (40, 60, 80):
        lines = table(comparison, width).splitlines()
        first = [line.split("  ")[0] for line in lines[-30:]]
        assert len(set(first)) == 30, first
    texts = [text.get_text() for text in figure_of(comparison).legends[0].get_texts()]
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize("width", [40, 60, 80])
def test_what_all_runs_share_is_said_whole(run, width):
    runs = [run(f"{i}_{'x' * 60}", lr=i, optimizer="an_optimizer", seed=i % 2) for i in range(3)]
    above, _ = table(compare(runs), width).split("\nname")
    assert max(map(len, above.splitlines())) <= width
    assert " ".join(above.split()).startswith("every run: optimizer an_optimizer, device cpu")
    assert " ".join(above.split()).endswith("first loss 3, function myrelu")


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
    assert rows[1]["parts_at"] == "0"


@pytest.mark.parametrize("count", [1, 2, len(FEW) + 1, 50])
def test_the_legend_stays_short(run, count):
    figure = figure_of(compare([run(f"{i}", lr=i) for i in range(count)]))
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert len(texts) == min(count, NAMED_RUNS)
    assert len(figure.axes[0].lines) == count


def test_the_picture_marks_where_curves_part(run):
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

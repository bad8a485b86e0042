"""Which runs are compared: one problem, filters, the last ones."""

from __future__ import annotations

import os

import pytest

from lab.comparing.selection import filtered, latest, select
from lab.errors import UserError

SIZES = {"features": 64, "hidden": 100, "bias": False, "init": "he"}


def names(runs):
    return [run.folder.name for run in runs]


def with_model(**changes):
    layers = {"activation": {"_target_": "torch.clamp", "min": 0, "_partial_": True}}
    return {"config": {"data": {"samples": 64}, "model": SIZES | layers | changes}}


@pytest.mark.parametrize(
    "changes",
    [
        {"config": {"data": {"samples": 65}}},
        {"data": "digits"},
        with_model(hidden=99),
        with_model(bias=True),
    ],
)
def test_another_problem_is_left_out_and_can_be_asked_for(run, changes):
    common = with_model() if "model" in changes.get("config", {}) else {}
    runs = [run("a", **common), run("b", **common, function="relu"), run("c", **changes)]
    selection = select(runs)
    assert names(selection.runs) == ["a", "b"]
    ((settings, others),) = selection.others
    assert names(others) == ["c"]
    assert names(filtered(runs, settings)) == ["c"]


def test_another_class_of_the_same_sizes_is_compared(run):
    """`model=exercise_network` has no bias to choose; it computes the two-layer network."""
    one_function = with_model()
    one_function["config"]["model"].pop("bias", None)
    runs = [run("a", **with_model(bias=False)), run("b", model="exercise_network", **one_function)]
    assert names(select(runs).runs) == ["a", "b"]


def test_the_rest_of_the_config_is_no_problem(run):
    runs = [
        run("a", **with_model(), seed=1),
        run("b", **with_model(init="normal"), function="x", optimizer="y", dtype="z", device="d"),
        run("c", **with_model(activation={"_target_": "torch.relu"}), lr=3.0),
        run("d", [3.0], **with_model()),
    ]
    assert names(select(runs).runs) == ["a", "b", "c", "d"]


def test_each_of_several_problems_has_filters_that_select_it_alone(run):
    runs = [
        run(f"{data}{samples}{i}", data=data, config={"data": {"samples": samples}})
        for data in ("x", "y")
        for samples in (1, 2)
        for i in range(samples)
    ]
    runs.append(run("old", data="x", config={}))
    selection = select(runs)
    assert [len(others) for _, others in selection.others] == [2, 1, 1, 1]
    for settings, others in selection.others:
        assert filtered(runs, settings) == others


def test_the_problem_of_the_reference_is_compared(run):
    runs = [run("a"), run("b"), run("c", data="digits", function="relu")]
    assert names(select(runs, "c").runs) == ["c"]
    assert names(select(runs, "relu").runs) == ["c"]
    assert names(select(runs, "myrelu").runs) == ["a", "b"]
    assert names(select(runs, "nothing").runs) == ["a", "b"]


def test_runs_without_a_step_are_set_aside(run):
    failed = run("a", [], status="failed", error="no", seed="x", config={"data": "what"})
    selection = select([failed, run("b")])
    assert (names(selection.runs), names(selection.failed)) == (["b"], ["a"])
    assert select([failed]).runs == []


@pytest.mark.parametrize(
    ("key", "value", "kept"),
    [
        ("function", "relu", ["b"]),
        ("optimizer.lr", "0.1", ["b"]),
        ("lr", "1e-06", ["a", "c"]),
        ("lr", "1.0e-6", ["a", "c"]),
        ("lr", "0.10", ["b"]),
        ("seed", "1", ["c"]),
        ("data", "random", ["a", "b", "c"]),
        ("status", "diverged", ["c"]),
        ("bias", "true", ["c"]),
        ("bias", "null", ["a", "b"]),
    ],
)
def test_filters(run, key, value, kept):
    runs = [
        run("a"),
        run("b", function="relu", lr=0.1),
        run("c", seed=1, status="diverged",
            config={"optimizer": {"lr": 1e-6}, "model": {"bias": True}}),
    ]  # fmt: skip
    assert names(filtered(runs, [(key, value)])) == kept


def test_filters_hold_together_and_name_what_there_is(run):
    runs = [run("a"), run("b", function="relu")]
    assert filtered(runs, [("function", "relu"), ("seed", "0")]) == runs[1:]
    with pytest.raises(UserError, match="function=nn fits no run; function is myrelu, relu"):
        filtered(runs, [("function", "nn")])
    with pytest.raises(UserError, match="no run has the key lrr"):
        filtered(runs, [("lrr", "1")])


def test_the_last_are_those_written_last_in_the_order_of_their_names(run):
    runs = [run(name) for name in "abc"]
    for age, one in zip((1, 3, 2), runs, strict=True):
        os.utime(one.folder / "summary.json", (1e9 - age, 1e9 - age))
    assert names(latest(runs, 2)) == ["a", "c"]
    assert names(latest(runs, 9)) == ["a", "b", "c"]

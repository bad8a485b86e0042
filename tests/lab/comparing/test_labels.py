"""What rows are called."""

from __future__ import annotations

import pytest

from lab.comparing.numbers import Comparison

ADAM = {"optimizer": "adam", "config": {"optimizer": {"lr": 0.1}}}
RELU = {"model": {"activation": {"_target_": "torch.relu"}}, "function": {"layout": "in_out"}}
TANH = {"model": {"activation": {"_target_": "torch.tanh"}}, "function": {"layout": "in_out"}}


@pytest.mark.parametrize(
    ("changes", "labels"),
    [
        ([{"function": "relu"}, {"function": "myrelu"}], ["relu", "myrelu"]),
        ([{"lr": 0.1}, {"lr": 1e-6}], ["lr=0.1", "lr=1e-06"]),
        ([{"seed": 0, "device": "cuda"}, {"seed": 1}], ["cuda seed=0", "cpu seed=1"]),
        # Adam brings its lr with it. It is said only where two runs of adam differ in lr.
        ([ADAM, {"config": {"optimizer": {"lr": 1e-6}}}], ["adam", "manual_sgd"]),
        ([ADAM, ADAM | {"config": {"optimizer": {"lr": 0.2}}}], ["lr=0.1", "lr=0.2"]),
        ([{"lr": 0.1}, {"lr": 0.1}], ["0", "1"]),
        ([{"function": "a"}, {}, {}], ["a", "myrelu", "myrelu (2)"]),
        # The layers of a model come from the function.
        ([{"function": "a", "config": RELU}, {"config": TANH}], ["a", "myrelu"]),
        ([{"config": {"flush_seconds": 2}}, {"config": {"flush_seconds": 3}}], ["0", "1"]),
        # What most runs share is in the title; of the other settings only unusual ones are said.
        ([{"function": "a"}, {}, {"lr": 0.1}], ["a", "myrelu", "myrelu lr=0.1"]),
        ([{"config": {"compile": True}}, {"config": {"compile": False}}],
         ["compile=true", "compile=false"]),
        # A run of an older edition, without the key, is not set apart by it.
        ([{"config": {"threads": "auto"}}, {"config": {}}], ["0", "1"]),
        ([{"function": "a$b"}, {"function": "c"}], ["a$b", "c"]),
        # What was typed is said, whatever choice could have set it, and where one run has none.
        ([ADAM | {"overrides": ["optimizer=adam", "optimizer.lr=0.1"]}, {}],
         ["adam lr=0.1", "manual_sgd lr=1e-06"]),
        ([{"config": {"optimizer": {"lr": 0.1, "amsgrad": True}},
           "overrides": ["+optimizer.amsgrad=true"]},
          {"config": {"optimizer": {"lr": 0.1}}}], ["amsgrad=true", "1"]),
        ([{"model": "exercise_network"}, {"function": "relu"}],
         ["myrelu exercise_network", "relu two_layer_net"]),
    ],
)  # fmt: skip
def test_a_label_says_what_differs(run, changes, labels):
    runs = [run(f"{i}", **change) for i, change in enumerate(changes)]
    assert [row.label for row in Comparison(runs).rows] == labels

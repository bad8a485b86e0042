"""The rules of the config: each refusal names the key, the value and what is allowed."""

from __future__ import annotations

import pytest
from conftest import composed, config_of

from lab.composing.keys import RULES
from lab.errors import UserError


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("steps=5.0", "steps=5.0 is a float; write steps=5"),
        ("steps=-1", "steps=-1 is not valid; use a whole number from 1"),
        ("steps=0", "steps=0 is not valid; use a whole number from 1"),
        ("steps=true", "steps=true is not valid; use a whole number from 1"),
        ("steps=100000000000", "steps=100000000000 is not valid; use a whole number from 1"),
        ("threads=0", "threads=0 is not valid; use auto, or a whole number from 1"),
        ("threads=two", "threads=two is not valid; use auto"),
        ("~steps", "~steps is not possible: a run needs it"),
        ("steps=null", "steps=null is not valid; use a whole number"),
        ("seed=-1", "seed=-1 is not valid; use a whole number from 0"),
        ("seed=0.5", "seed=0.5 is not valid; use a whole number from 0"),
        ("optimizer.lr=-1", "optimizer.lr=-1 is not valid; use a finite number of at least 0"),
        ("optimizer.lr=nan", "optimizer.lr=nan is not valid; use a finite number"),
        ("optimizer.lr=inf", "optimizer.lr=inf is not valid; use a finite number"),
        ("optimizer.lr='1e-6'", "optimizer.lr=1e-6 is not valid; use a finite number"),
        ("device=None", "device=None is not a device; use cpu, cuda, cuda:N, mps or auto"),
        ("device=gpu", "device=gpu is not a device; use cpu, cuda, cuda:N, mps or auto"),
        ("device=meta", "device=meta is not a device; use cpu, cuda, cuda:N, mps or auto"),
        ("device=cpu:3", "device=cpu:3 is not a device; use cpu, cuda, cuda:N, mps or auto"),
        ("device=3", "device=3 is not valid; use cpu, cuda, cuda:N, mps or auto"),
        ("dtype=int8", "dtype=int8 is not valid; use float32 or float64"),
        ("data.samples=0", "data.samples=0 is not valid; use a whole number from 1"),
        ("data.features=-3", "data.features=-3 is not valid; use a whole number from 1"),
        (
            "data.features=20000000",
            "data.samples=64 and data.features=20000000 make a tensor of 1.3e+09",
        ),
        ("model.hidden=0", "model.hidden=0 is not valid; use a whole number from 1"),
        ("model.bias=maybe", "model.bias=maybe is not valid; use true or false"),
        ("model.init=xavier", "model.init=xavier is not valid; use normal or he"),
        ("log_every=0", "log_every=0 is not valid; use a whole number from 1"),
        ("flush_seconds=0", "flush_seconds=0 is not valid; use a finite number above 0"),
        ("checkpoint_every=-1", "checkpoint_every=-1 is not valid; use a whole number from 0"),
        ("progress=sometimes", "progress=sometimes is not valid; use true, false or null"),
        ("compile=1", "compile=1 is not valid; use true or false"),
        ("+stesp=3", "stesp is not a key of the config; did you mean steps?"),
        ("+function.x=3", "function.x is not a key"),
        ("~model", "model=null is not valid; use a file in conf/model/"),
        ("model.hidden=${data.nope}", "model.hidden is not valid: "),
        ("function.layout=out_in", "function.layout can't be changed"),
        ("resume=''", "resume= is not valid; use a run folder, or null"),
        ("data=nothing", "model=two_layer_net does not fit data=nothing"),
    ],
)
def test_refused(override, says):
    with pytest.raises(UserError) as refusal:
        config_of(override)
    assert says in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_defaults_are_those_of_the_readme():
    config = config_of()
    assert (config.steps, config.seed, config.device, config.dtype) == (500, 0, "cpu", "float32")
    assert (config.threads, config.log_every, config.resume) == ("auto", 1, None)
    assert (config.data["samples"], config.data["features"], config.data["targets"]) == (
        64,
        1000,
        10,
    )
    assert (config.model["hidden"], config.model["bias"], config.model["init"]) == (
        100, False, "normal",
    )  # fmt: skip
    assert config.optimizer["lr"] == 1e-6
    assert config.choices == {
        "function": "myrelu", "model": "two_layer_net", "data": "random", "optimizer": "manual_sgd",
    }  # fmt: skip


def test_every_rule_is_about_a_key_that_exists():
    cfg, _ = composed("optimizer=sgd")
    for key in RULES:
        section, _, name = key.rpartition(".")
        assert name in (cfg[section] if section else cfg), key


def test_a_checkpoint_file_stands_for_its_run():
    assert config_of("resume=outputs/run/checkpoint.pt").resume == "outputs/run"


def test_momentum_is_a_number():
    with pytest.raises(UserError, match=r"optimizer\.momentum=abc is not valid"):
        config_of("optimizer=sgd", "optimizer.momentum=abc")

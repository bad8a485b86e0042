"""The rules of the config: each refusal names the key, the value and what is allowed."""

from __future__ import annotations

import pytest
import torch
from conftest import composed

from lab.composing.config import RULES, build, check_function, checked
from lab.errors import UserError
from models import Point, TwoLayerNet


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("steps=5.0", "steps=5.0: a whole number from 1"),
        ("steps=-1", "steps=-1: a whole number from 1"),
        ("steps=0", "steps=0: a whole number from 1"),
        ("steps=true", "steps=true: a whole number from 1"),
        ("steps=100000000000", "steps=100000000000: a whole number from 1"),
        ("steps=null", "steps=null: a whole number"),
        ("seed=-1", "seed=-1: a whole number from 0"),
        ("seed=0.5", "seed=0.5: a whole number from 0"),
        ("optimizer.lr=-1", "optimizer.lr=-1: a finite number of at least 0"),
        ("optimizer.lr=nan", "optimizer.lr=nan: a finite number"),
        ("optimizer.lr=inf", "optimizer.lr=inf: a finite number"),
        ("optimizer.lr='1e-6'", "optimizer.lr=1e-6: a finite number"),
        ("device=None", "device=None: cpu, cuda, cuda:N, mps or auto"),
        ("device=gpu", "device=gpu: cpu, cuda, cuda:N, mps or auto"),
        ("device=meta", "device=meta: cpu, cuda, cuda:N, mps or auto"),
        ("device=cpu:3", "device=cpu:3: cpu, cuda, cuda:N, mps or auto"),
        ("device=3", "device=3: cpu, cuda, cuda:N, mps or auto"),
        ("dtype=int8", "dtype=int8: float32 or float64"),
        ("data.samples=0", "data.samples=0: a whole number from 1"),
        ("data.features=-3", "data.features=-3: a whole number from 1"),
        ("data.features=20000000", "data.samples=64, data.features=20000000: a tensor of 1.3e+09"),
        ("model.hidden=0", "model.hidden=0: a whole number from 1"),
        ("model.bias=maybe", "model.bias=maybe: true or false"),
        ("model.init=xavier", "model.init=xavier: normal or he"),
        ("log_every=0", "log_every=0: a whole number from 1"),
        ("flush_seconds=0", "flush_seconds=0: a finite number above 0"),
        ("checkpoint_every=-1", "checkpoint_every=-1: a whole number from 0"),
        ("progress=sometimes", "progress=sometimes: true, false or null"),
        ("compile=1", "compile=1: true or false"),
        ("+stesp=3", "stesp: no such key; did you mean steps?"),
        ("+function.x=3", "function.x: no such key"),
        ("~model", "model=null: one of point, two_layer_net"),
        ("model.hidden=${data.nope}", "model.hidden: "),
        ("function.layout=x", "function.layout=x: out_in or in_out"),
        ("resume=''", "resume=: a run folder, or null"),
        ("data=nothing", "data=nothing: this model needs data=random or data=digits"),
    ],
)
def test_refused(override, says):
    with pytest.raises(UserError) as refusal:
        checked(composed(override)[0])
    assert says in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_defaults_are_those_of_the_readme():
    config = checked(composed()[0])
    assert {
        key: config[key] for key in ("steps", "seed", "device", "dtype", "log_every")
    } == {"steps": 500, "seed": 0, "device": "cpu", "dtype": "float32", "log_every": 1}  # fmt: skip
    assert (config["data"]["samples"], config["data"]["features"]) == (64, 1000)
    assert (config["model"]["hidden"], config["data"]["targets"]) == (100, 10)
    assert (config["model"]["bias"], config["model"]["init"]) == (False, "normal")
    assert config["optimizer"]["lr"] == 1e-6


def test_every_rule_is_about_a_key_that_exists():
    config = checked(composed("optimizer=sgd")[0])
    for key in RULES:
        section, _, name = key.rpartition(".")
        assert name in (config[section] if section else config), key


@pytest.mark.parametrize(
    ("override", "group", "says"),
    [
        ("function.activation._target_=nopkg.Nope", "model", "No module named 'nopkg'"),
        ("+data.foo=2", "data", "unexpected keyword argument 'foo'"),
        ("data=digits", "data", None),
    ],
)
def test_build(override, group, says):
    config = checked(composed(override)[0])
    if says is None:
        assert build(config, group).x.shape == (1437, 64)
        return
    with pytest.raises(UserError) as refusal:
        build(config, group)
    assert str(refusal.value).startswith(("function.activation: ", f"{group}: "))
    assert says in str(refusal.value)


def test_an_import_error_inside_a_users_module_is_the_one_shown(tmp_path, monkeypatch):
    (tmp_path / "half_written.py").write_text("import no_such_package\nSwish = None\n")
    monkeypatch.syspath_prepend(tmp_path)
    config = checked(composed("function.activation._target_=half_written.Swish")[0])
    with pytest.raises(UserError, match="no_such_package"):
        build(config, "model")


def test_momentum_is_a_number():
    with pytest.raises(UserError, match=r"optimizer\.momentum=abc: a finite number of at least 0"):
        checked(composed("optimizer=sgd", "optimizer.momentum=abc")[0])


def test_options_of_an_optimizer_reach_it():
    config = checked(composed("optimizer=adam", "+optimizer.betas=[0.5,0.9]")[0])
    adam = build(config, "optimizer", [torch.zeros(1, requires_grad=True)])
    assert adam.defaults["betas"] == (0.5, 0.9)
    config = checked(composed("+optimizer.nope=1")[0])
    with pytest.raises(UserError, match=r"optimizer: .*'nope'"):
        build(config, "optimizer", [])


@pytest.mark.parametrize("activation", [lambda x: x.sum(), lambda x, y: x, lambda x: 3])
def test_no_activation(activation):
    net = TwoLayerNet(
        3, 2, 1, bias=False, init="normal", linear=torch.nn.Linear, layout="out_in",
        activation=activation,
    )  # fmt: skip
    with pytest.raises(UserError, match="function=mine: no activation for a network"):
        check_function(net, "mine")


def test_no_surface():
    with pytest.raises(UserError, match="function=mine: no surface for model=point"):
        check_function(Point(1.0, 2.0, function=torch.relu), "mine")
    check_function(Point(1.0, 2.0, function=torch.mul), "mine")

"""From a config to parts: made in order, refused in words, threads by the rule."""

from __future__ import annotations

import pytest
import torch
from conftest import config_of

import lab.parts
from lab.errors import UserError, users_lines
from lab.parts import build, check_fits, make_parts, threads_for
from models import Point, TwoLayerNet


@pytest.mark.parametrize(
    ("override", "group", "says"),
    [
        ("function.activation._target_=nopkg.Nope", "model", "No module named 'nopkg'"),
        ("+data.foo=2", "data", "unexpected keyword argument 'foo'"),
        ("data=digits", "data", None),
    ],
)
def test_build(override, group, says):
    config = config_of(override)
    if says is None:
        assert build(config, group).x.shape == (1437, 64)
        return
    with pytest.raises(UserError) as refusal:
        build(config, group)
    assert str(refusal.value).startswith(("function.activation", group))
    assert says in str(refusal.value)


def test_an_import_error_inside_a_users_module_is_the_one_shown(tmp_path, monkeypatch):
    (tmp_path / "half_written.py").write_text("import no_such_package\nSwish = None\n")
    monkeypatch.syspath_prepend(tmp_path)
    config = config_of("function.activation._target_=half_written.Swish")
    with pytest.raises(ModuleNotFoundError, match="no_such_package") as caught:
        build(config, "model")
    assert "half_written.py" in users_lines(caught.value)


def test_options_of_an_optimizer_reach_it():
    config = config_of("optimizer=adam", "+optimizer.betas=[0.5,0.9]")
    adam = build(config, "optimizer", [torch.zeros(1, requires_grad=True)])
    assert adam.defaults["betas"] == (0.5, 0.9)
    config = config_of("+optimizer.nope=1")
    with pytest.raises(UserError, match=r"optimizer: .*'nope'"):
        build(config, "optimizer", [])


@pytest.mark.parametrize("activation", [lambda x: x.sum(), lambda x, y: x, lambda x: 3])
def test_no_activation(activation):
    net = TwoLayerNet(
        3, 2, 1, bias=False, init="normal", linear=torch.nn.Linear, layout="out_in",
        activation=activation,
    )  # fmt: skip
    with pytest.raises(UserError, match="function=mine does not fit: the activation"):
        check_fits(net, "mine")


def test_no_surface():
    with pytest.raises(UserError, match="function=mine does not fit: the surface of model=point"):
        check_fits(Point(1.0, 2.0, function=torch.relu), "mine")
    check_fits(Point(1.0, 2.0, function=torch.mul), "mine")


def test_the_same_parts_as_train(run_in):
    """`make_parts` makes what train.py makes, from the same random numbers."""
    run = run_in("steps=1", "optimizer.lr=0")
    data, model, optimizer = make_parts(run.config)
    saved = torch.load(run.folder / "weights.pt")
    for name, weight in model.state_dict().items():
        assert torch.equal(weight, saved[name])
    loss = data.loss(model(data.x), data.y)
    assert loss.item() == run.summary.final_loss
    assert optimizer.lr == 0


@pytest.mark.parametrize(
    ("overrides", "threads"),
    [
        ([], 1),
        (["data.samples=4096", "model.hidden=1000"], 7),
        (["model=point", "data=nothing", "function=sqrt_reciprocal_square"], 1),
        (["threads=3"], 3),
    ],
)
def test_threads(monkeypatch, overrides, threads):
    monkeypatch.setattr(lab.parts, "PYTORCHS_THREADS", 7)
    config = config_of(*overrides)
    data, model, _ = make_parts(config)
    assert threads_for(config, data, model.parameters()) == threads

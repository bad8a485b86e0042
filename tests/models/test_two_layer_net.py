"""TwoLayerNet: the same numbers at the start, whatever the layers are."""

from __future__ import annotations

import copy
import math
from functools import partial

import pytest
import torch

from functions import LinearFunction, LinearFunctionInOut, MyReLU
from models import Linear, TwoLayerNet, mm

LAYERS = {
    "mm": (partial(Linear, function=mm, layout="in_out"), "in_out"),
    "in_out": (partial(Linear, function=LinearFunctionInOut.apply, layout="in_out"), "in_out"),
    "out_in": (partial(Linear, function=LinearFunction.apply), "out_in"),
    "nn": (torch.nn.Linear, "out_in"),
}


def net(kind: str, init: str = "normal", bias: bool = True, hidden: int = 6) -> TwoLayerNet:
    linear, layout = LAYERS[kind]
    torch.manual_seed(3)
    return TwoLayerNet(
        6, hidden, 2, bias=bias, init=init, linear=linear, layout=layout, activation=MyReLU.apply
    )


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", LAYERS)
def test_starts_from_the_numbers_of_a_plain_script(kind, bias):
    # features == hidden: the shape of the first weight does not tell its layout.
    model = net(kind, bias=bias)
    torch.manual_seed(3)
    w1, w2 = torch.randn(6, 6), torch.randn(6, 2)
    weights = [model.linear1.weight, model.linear2.weight]
    if LAYERS[kind][1] == "out_in":
        weights = [weight.t() for weight in weights]
    assert torch.equal(weights[0], w1)
    assert torch.equal(weights[1], w2)
    if bias:
        assert not model.linear1.bias.any()
        assert not model.linear2.bias.any()
    x = torch.randn(5, 6)
    torch.testing.assert_close(model(x), x.mm(w1).clamp(min=0).mm(w2))


def test_he_keeps_the_variance():
    model = net("mm", init="he", hidden=5000)
    assert model.linear1.weight.std().item() == pytest.approx(math.sqrt(2 / 6), rel=0.02)
    assert model.linear2.weight.std().item() == pytest.approx(math.sqrt(2 / 5000), rel=0.02)


def test_deepcopy_trains_on_its_own():
    model = net("out_in")
    twin = copy.deepcopy(model)
    with torch.no_grad():
        twin.linear1.weight.zero_()
    assert model.linear1.weight.any()


@pytest.mark.parametrize(("name", "value"), [("init", "xavier"), ("layout", "sideways")])
def test_unknown_words(name, value):
    options = {"bias": True, "init": "he", "linear": torch.nn.Linear, "layout": "out_in"}
    options |= {"activation": torch.relu, name: value}
    with pytest.raises(ValueError, match=f"{name}={value} is not valid"):
        TwoLayerNet(3, 2, 1, **options)

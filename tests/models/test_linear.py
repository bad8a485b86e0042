"""Linear: parameters, layouts, and what print shows."""

from __future__ import annotations

import copy
import math

import pytest
import torch

from functions import LinearFunction, LinearFunctionInOut
from models import Linear, mm

CASES = [(LinearFunction.apply, "out_in"), (LinearFunctionInOut.apply, "in_out"), (mm, "in_out")]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("function", "layout"), CASES)
def test_agrees_with_nn_linear(device, function, layout, bias):
    ours = Linear(4, 3, bias, function=function, layout=layout).to(device, torch.float64)
    theirs = torch.nn.Linear(4, 3, bias).to(device, torch.float64)
    weight = ours.weight if layout == "out_in" else ours.weight.t()
    with torch.no_grad():
        theirs.weight.copy_(weight)
        if bias:
            theirs.bias.copy_(ours.bias)
    x = torch.randn(5, 4, dtype=torch.float64, device=device)
    for layer in (ours, theirs):
        layer(x).pow(2).sum().backward()
    torch.testing.assert_close(ours(x), theirs(x))
    grad = ours.weight.grad if layout == "out_in" else ours.weight.grad.t()
    torch.testing.assert_close(grad, theirs.weight.grad)
    if bias:
        torch.testing.assert_close(ours.bias.grad, theirs.bias.grad)


def test_without_bias_the_name_is_registered_as_none():
    layer = Linear(4, 3, bias=False, function=mm, layout="in_out")
    assert layer.bias is None
    assert list(layer.state_dict()) == ["weight"]
    assert "bias" in layer._parameters


def test_initialisation_is_that_of_nn_linear():
    torch.manual_seed(0)
    layer = Linear(100, 200, function=LinearFunction.apply)
    bound = 1 / math.sqrt(100)
    for parameter in layer.parameters():
        assert parameter.abs().max() <= bound
        assert parameter.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.1)


def test_copies_and_prints():
    layer = Linear(4, 3, function=LinearFunction.apply)
    twin = copy.deepcopy(layer)
    assert torch.equal(twin.weight, layer.weight)
    assert twin.weight is not layer.weight
    assert repr(layer) == "Linear(in_features=4, out_features=3, bias=True, layout=out_in)"


def test_unknown_layout():
    with pytest.raises(ValueError, match="layout=sideways is not valid"):
        Linear(4, 3, function=mm, layout="sideways")

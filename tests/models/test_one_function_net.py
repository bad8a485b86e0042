"""OneFunctionNet: the weights of TwoLayerNet, handed to a single Function."""

from functools import partial

import pytest
import torch

from models import Linear, OneFunctionNet, TwoLayerNet, mm


def by_hand(x, w1, w2):
    return x.mm(w1).clamp(min=0).mm(w2)


@pytest.mark.parametrize("init", ["normal", "he"])
def test_it_starts_as_the_two_layer_net_does(init):
    torch.manual_seed(3)
    layers = TwoLayerNet(
        6,
        5,
        2,
        bias=False,
        init=init,
        linear=partial(Linear, function=mm, layout="in_out"),
        layout="in_out",
        activation=torch.relu,
    )
    torch.manual_seed(3)
    net = OneFunctionNet(6, 5, 2, init=init, network=by_hand)
    x = torch.randn(4, 6)
    ours, theirs = dict(net.named_parameters()), dict(layers.named_parameters())
    assert list(ours) == list(theirs) == ["linear1.weight", "linear2.weight"]
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    assert torch.equal(net(x), layers(x))


def test_it_refuses_an_unknown_init():
    with pytest.raises(ValueError, match="init=zero"):
        OneFunctionNet(6, 5, 2, init="zero", network=by_hand)

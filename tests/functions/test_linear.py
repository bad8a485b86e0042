"""Both layouts against `F.linear`, the one of LinearFunctionInOut with its weight transposed."""

import weakref

import pytest
import torch
from torch.nn.functional import linear

from functions import LinearFunction, LinearFunctionInOut


def in_out(input, weight, bias=None):
    return linear(input, weight.t(), bias)


LAYOUTS = [
    pytest.param(LinearFunction.apply, linear, False, id="out_in"),
    pytest.param(LinearFunctionInOut.apply, in_out, True, id="in_out"),
]


def parameters(in_features, out_features, transposed, **how):
    weight = torch.randn(out_features, in_features, **how)
    weight = weight.t().contiguous() if transposed else weight
    return weight.requires_grad_(), torch.randn(out_features, **how).requires_grad_()


@pytest.mark.parametrize(("ours", "theirs", "transposed"), LAYOUTS)
@pytest.mark.parametrize("lead", [(), (5,), (5, 4), (0,), (2, 0, 4)], ids=str)
@pytest.mark.parametrize("bias_is", ["given", "none", "left out"])
def test_matches_pytorch(ours, theirs, transposed, lead, bias_is, device):
    torch.manual_seed(0)
    how = {"dtype": torch.float64, "device": device}
    x = torch.randn(*lead, 3, **how, requires_grad=True)
    weight, bias = parameters(3, 2, transposed, **how)
    args = {"given": (x, weight, bias), "none": (x, weight, None), "left out": (x, weight)}[bias_is]
    leaves = [arg for arg in args if arg is not None]
    results = []
    for function in (ours, theirs):
        y = function(*args)
        results.append((y, *torch.autograd.grad(y.sin().sum(), leaves)))
    for mine, reference in zip(*results, strict=True):
        torch.testing.assert_close(mine, reference)


@pytest.mark.parametrize(("ours", "theirs", "transposed"), LAYOUTS)
def test_strided_input(ours, theirs, transposed, device):
    torch.manual_seed(0)
    how = {"dtype": torch.float64, "device": device}
    x = torch.randn(3, 5, 4, **how).transpose(0, 2).requires_grad_()
    weight, bias = parameters(3, 2, transposed, **how)
    grads = [
        torch.autograd.grad(function(x, weight, bias).sin().sum(), (x, weight, bias))
        for function in (ours, theirs)
    ]
    torch.testing.assert_close(*grads)


@pytest.mark.parametrize("ours", [LinearFunction, LinearFunctionInOut])
@pytest.mark.parametrize("needed", [(0,), (1,), (2,), (0, 1), (1, 2), (0, 1, 2)])
def test_computes_only_the_gradients_that_are_needed(ours, needed):
    shapes = [(5, 3), (2, 3) if ours is LinearFunction else (3, 2), (2,)]
    args = [torch.randn(shape, requires_grad=i in needed) for i, shape in enumerate(shapes)]
    y = ours.apply(*args)
    returned = y.grad_fn.apply(torch.ones_like(y))
    assert tuple(i for i, grad in enumerate(returned) if grad is not None) == needed


@pytest.mark.parametrize("with_input", [True, False])
def test_in_out_gives_the_bits_of_mm(with_input, device):
    torch.manual_seed(0)
    x = torch.randn(64, 1000, device=device, requires_grad=with_input)
    weight = torch.randn(1000, 100, device=device, requires_grad=True)
    leaves = [x, weight] if with_input else [weight]
    results = []
    for y in (LinearFunctionInOut.apply(x, weight), x.mm(weight)):
        results.append((y, *torch.autograd.grad((y**2).sum(), leaves)))
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))


def test_out_in_gives_the_bits_of_nn_linear(device):
    torch.manual_seed(0)
    x = torch.randn(64, 100, device=device, requires_grad=True)
    weight = torch.randn(10, 100, device=device, requires_grad=True)
    results = []
    for y in (LinearFunction.apply(x, weight), linear(x, weight)):
        results.append((y, *torch.autograd.grad((y**2).sum(), (x, weight))))
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))


@pytest.mark.parametrize(("ours", "theirs", "transposed"), LAYOUTS)
def test_gradcheck_at_many_features(ours, theirs, transposed, device):
    torch.manual_seed(0)
    x = torch.randn(20, 20, dtype=torch.float64, device=device, requires_grad=True)
    weight, _ = parameters(20, 30, transposed, dtype=torch.float64, device=device)
    assert torch.autograd.gradcheck(ours, (x, weight), eps=1e-6, atol=1e-4)


def test_memory_is_flat_over_1000_steps():
    x = torch.randn(128, 64)
    weight, bias = parameters(64, 128, False)
    outputs = []

    def step():
        output = LinearFunction.apply(x, weight, bias)
        outputs.append(weakref.ref(output))
        output.sum().backward()

    for _ in range(1000):
        step()
    assert not any(output() is not None for output in outputs)

import pytest
import torch

from functions import MyReLU


@pytest.mark.parametrize("shape", [(), (5,), (3, 4), (2, 3, 4), (0, 4)])
def test_values_and_gradients_are_those_of_clamp(shape, device):
    torch.manual_seed(0)
    x = torch.randn(shape, dtype=torch.float64, device=device, requires_grad=True)
    grad = torch.randn(shape, dtype=torch.float64, device=device)
    ours, theirs = MyReLU.apply(x), x.clamp(min=0)
    assert torch.equal(ours, theirs)
    assert torch.equal(*(torch.autograd.grad(y, x, grad)[0] for y in (ours, theirs)))


def test_gradients_are_those_of_clamp_in_float32_at_both_zeros(device):
    x = torch.tensor([-1.0, -0.0, 0.0, 1.0] * 2, device=device, requires_grad=True)
    grad = torch.tensor([2.0, -2.0] * 4, device=device)
    ours, theirs = (torch.autograd.grad(y, x, grad)[0] for y in (MyReLU.apply(x), x.clamp(min=0)))
    assert torch.equal(ours, theirs)


def test_passes_the_gradient_at_zero_where_relu_stops_it():
    x = torch.zeros(1, requires_grad=True)
    (ours,) = torch.autograd.grad(MyReLU.apply(x), x)
    (relu,) = torch.autograd.grad(torch.relu(x), x)
    assert (ours.item(), relu.item()) == (1.0, 0.0)


def test_does_not_touch_what_it_is_handed():
    x = torch.tensor([-1.0, 2.0], requires_grad=True)
    grad = torch.ones(2)
    MyReLU.apply(x).backward(grad)
    assert grad.tolist() == [1.0, 1.0]
    assert x.tolist() == [-1.0, 2.0]

"""ManualSGD: the update of the tutorial, in place."""

from __future__ import annotations

import torch

from optimizers import ManualSGD


def test_bits_of_the_update_of_the_tutorial(device):
    torch.manual_seed(0)
    weight = torch.randn(50, 40, device=device, requires_grad=True)
    weight.grad = torch.randn(50, 40, device=device)
    wanted = weight.detach() - 1e-3 * weight.grad
    place = weight.data_ptr()
    ManualSGD([weight], lr=1e-3).step()
    assert torch.equal(weight, wanted)
    assert weight.data_ptr() == place
    assert weight.is_leaf and weight.requires_grad


def test_agrees_with_torch_sgd_in_float64():
    ours, theirs = (torch.ones(3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    for weight, kind in ((ours, ManualSGD), (theirs, torch.optim.SGD)):
        optimizer = kind([weight], lr=0.1)
        for _ in range(10):
            optimizer.zero_grad()
            (weight**4).sum().backward()
            optimizer.step()
    torch.testing.assert_close(ours, theirs, rtol=1e-14, atol=0)


def test_a_parameter_without_gradient_stays():
    weight = torch.ones(3, requires_grad=True)
    ManualSGD([weight], lr=1.0).step()
    assert weight.tolist() == [1, 1, 1]


def test_state_is_lr():
    optimizer = ManualSGD([], lr=0.1)
    optimizer.load_state_dict({"lr": 0.2})
    assert optimizer.state_dict() == {"lr": 0.2}

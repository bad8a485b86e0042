"""The data sets: sizes, dtypes, and what they draw."""

from __future__ import annotations

import math

import pytest
import torch

from datasets import digits, nothing, random_regression, sine


def test_random_regression_draws_x_then_y():
    torch.manual_seed(5)
    data = random_regression(samples=4, features=3, targets=2)
    torch.manual_seed(5)
    assert torch.equal(data.x, torch.randn(4, 3))
    assert torch.equal(data.y, torch.randn(4, 2))
    assert data.x_test is None
    output = torch.randn(4, 2, dtype=torch.float64)
    y = data.y.double()
    torch.testing.assert_close(data.loss(output, y), (output - y).pow(2).sum())


def test_digits_are_all_there_and_split_alike_for_every_seed():
    torch.manual_seed(1)
    first = digits(samples=1437, features=64, targets=10)
    torch.manual_seed(2)
    again = digits(samples=1437, features=64, targets=10)
    assert torch.equal(first.x, again.x)
    assert first.x.shape == (1437, 64) and first.x_test.shape == (360, 64)
    assert first.x.min() == 0 and first.x.max() == 1
    assert first.y.dtype == torch.int64
    assert torch.bincount(torch.cat([first.y, first.y_test])).sum() == 1797


def test_digits_draw_nothing():
    torch.manual_seed(1)
    wanted = torch.randn(1)
    torch.manual_seed(1)
    digits(samples=10, features=64, targets=10)
    assert torch.equal(torch.randn(1), wanted)


@pytest.mark.parametrize(
    ("sizes", "says"),
    [((1797, 64, 10), "data.samples=1797 is not valid"), ((5, 63, 10), "data.features=63")],
)
def test_digits_refuse_other_sizes(sizes, says):
    with pytest.raises(ValueError, match=says):
        digits(*sizes)


def test_to_leaves_classes_whole(device):
    data = digits(samples=10, features=64, targets=10).to(torch.device(device), torch.float64)
    assert data.x.dtype == torch.float64 and data.y.dtype == torch.int64
    assert data.x.device.type == data.y_test.device.type == device


def test_nothing_returns_the_output():
    data = nothing().to(torch.device("cpu"), torch.float64)
    assert data.x is None
    assert data.loss(torch.tensor(2.5), None).item() == 2.5


def test_sine_is_one_period_with_both_ends():
    data = sine(samples=2000)
    assert data.x.shape == data.y.shape == (2000,)
    assert (data.x[0].item(), data.x[-1].item()) == pytest.approx((-math.pi, math.pi))
    torch.testing.assert_close(data.x.diff(), torch.full((1999,), 2 * math.pi / 1999))
    assert torch.equal(data.y, torch.sin(data.x))
    assert data.x_test is None

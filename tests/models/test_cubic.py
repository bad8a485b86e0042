"""Cubic: four scalars around an activation."""

from __future__ import annotations

import pytest
import torch

from functions import LegendrePolynomial3
from models import Cubic

START = {"a": 0.0, "b": -1.0, "c": 0.0, "d": 0.3}


def test_starts_from_the_given_numbers_in_the_order_of_the_formula():
    model = Cubic(**START, activation=torch.sin)
    assert {name: weight.item() for name, weight in model.named_parameters()} == pytest.approx(
        START
    )
    assert all(weight.shape == () for weight in model.parameters())


def test_value_and_gradients_are_those_of_the_formula(device):
    model = Cubic(0.5, -1.0, 0.25, 0.3, activation=LegendrePolynomial3.apply)
    model.to(device, torch.float64)
    a, b, c, d = (
        torch.tensor(value, dtype=torch.float64, device=device, requires_grad=True)
        for value in (weight.item() for weight in model.parameters())
    )
    x = torch.linspace(-3, 3, 7, dtype=torch.float64, device=device)
    z = c + d * x
    formula = a + b * (5 * z**3 - 3 * z) / 2
    torch.testing.assert_close(model(x), formula)
    ours = torch.autograd.grad(model(x).sin().sum(), list(model.parameters()))
    theirs = torch.autograd.grad(formula.sin().sum(), [a, b, c, d])
    torch.testing.assert_close(ours, theirs)

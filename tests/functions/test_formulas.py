"""The Functions made of PyTorch's own operations, against autograd through the same formula."""

import pytest
import torch

from functions import LegendrePolynomial3, SqrtReciprocalSquare, SumSqrt, Template

FORMULAS = {
    LegendrePolynomial3: (lambda x: (5 * x**3 - 3 * x) / 2, 1),
    SqrtReciprocalSquare: (lambda x, y: x.sqrt() + 1 / x + 2 * y**2, 2),
    SumSqrt: (lambda x: (x**2 - 1).sqrt().sum(), 1),
    Template: (lambda x: x**3, 1),
}


@pytest.mark.parametrize("function", FORMULAS)
@pytest.mark.parametrize("shape", [(), (5,), (2, 3, 4), (0, 4)], ids=str)
def test_matches_autograd_to_second_order(function, shape, device):
    formula, count = FORMULAS[function]
    torch.manual_seed(0)
    args = [
        (torch.rand(shape, dtype=torch.float64, device=device) + 1.5).requires_grad_()
        for _ in range(count)
    ]
    results = []
    for f in (function.apply, formula):
        z = f(*args)
        first = torch.autograd.grad(z.sum(), args, create_graph=True)
        second = torch.autograd.grad(sum(g.sin().sum() for g in first), args)
        results.append((z, *first, *second))
    for mine, reference in zip(*results, strict=True):
        torch.testing.assert_close(mine, reference)


@pytest.mark.parametrize("value", [1.0, -1.0, 0.5, float("nan")])
def test_sum_sqrt_refuses_what_is_outside_its_domain(value):
    with pytest.raises(ValueError, match=rf"\|x\| > 1 everywhere; got x = {value:g}"):
        SumSqrt.apply(torch.tensor([2.0, value]))

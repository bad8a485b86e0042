"""The activations that are not PyTorch's formulas: NumPy, black boxes, surrogates."""

import copy
import pickle
from functools import partial

import pytest
import torch
from torch.nn.functional import softplus

from functions import BlackBox, BorrowedGradient, MyReLU, NumpySoftplus, SignSTE

SHAPES = [(), (5,), (2, 3, 4), (0, 4)]


def gradient(function, x):
    y = function(x)
    return y, *torch.autograd.grad(y.sin().sum(), x)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (NumpySoftplus.apply, softplus),
        (partial(BlackBox.apply, torch.tanh), torch.tanh),
        (partial(BorrowedGradient.apply, torch.tanh, torch.tanh), torch.tanh),
    ],
    ids=["numpy", "black box", "borrowed"],
)
def test_matches_pytorch(ours, theirs, shape, device):
    torch.manual_seed(0)
    x = torch.randn(shape, dtype=torch.float64, device=device, requires_grad=True)
    torch.testing.assert_close(gradient(ours, x), gradient(theirs, x), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_numpy_softplus_returns_to_dtype_and_device(dtype, device):
    x = torch.tensor([-800.0, 0.0, 800.0], dtype=dtype, device=device, requires_grad=True)
    y, grad = gradient(NumpySoftplus.apply, x)
    assert (y.dtype, y.device) == (x.dtype, x.device) == (grad.dtype, grad.device)
    assert y[[0, 2]].tolist() == [0.0, 800.0]  # neither overflows
    assert grad[0] == 0


@pytest.mark.parametrize("function", [NumpySoftplus.apply, partial(BlackBox.apply, torch.exp)])
def test_a_second_derivative_is_refused(function):
    x = torch.ones(2, requires_grad=True)
    (first,) = torch.autograd.grad((function(x) ** 2).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.sum().backward()


def test_black_box_takes_what_autograd_can_not_see():
    def through_python(x):
        return torch.tensor([value**2 for value in x.tolist()], dtype=x.dtype)

    x = torch.tensor([1.0, -3.0], dtype=torch.float64, requires_grad=True)
    BlackBox.apply(through_python, x).sum().backward()
    torch.testing.assert_close(x.grad, torch.tensor([2.0, -6.0], dtype=torch.float64))


def test_black_box_in_float32_is_good_to_four_digits():
    x = torch.tensor([-2.0, 0.1, 300.0], requires_grad=True)
    BlackBox.apply(torch.square, x).sum().backward()
    torch.testing.assert_close(x.grad, 2 * x.detach(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_surrogates_take_their_gradient_from_the_stand_in(shape, device):
    torch.manual_seed(0)
    x = (2 * torch.randn(shape, dtype=torch.float64, device=device)).requires_grad_()
    grad = torch.randn(shape, dtype=torch.float64, device=device)
    ste, hardtanh = SignSTE.apply(x), x.clamp(-1, 1)
    borrowed, tanh = BorrowedGradient.apply(torch.sign, torch.tanh, x), x.tanh()
    assert torch.equal(ste, x.sign())
    assert torch.equal(borrowed, x.sign())
    for ours, theirs in ((ste, hardtanh), (borrowed, tanh)):
        torch.testing.assert_close(*(torch.autograd.grad(y, x, grad)[0] for y in (ours, theirs)))


def test_a_partial_of_apply_can_be_copied_and_pickled():
    function = partial(BorrowedGradient.apply, torch.sign, torch.tanh)
    x = torch.tensor([0.5])
    for other in (copy.deepcopy(function), pickle.loads(pickle.dumps(function))):
        assert torch.equal(other(x), function(x))
    assert pickle.loads(pickle.dumps(MyReLU.apply))(x) == x

"""numerical_gradient: (f(x + eps) - f(x - eps)) / (2 eps), for one element of x after another.

Derivation. For one element, by Taylor's formula

    f(x + eps) = f(x) + eps f'(x) + eps^2/2 f''(x) + eps^3/6 f'''(x) + ...
    f(x - eps) = f(x) - eps f'(x) + eps^2/2 f''(x) - eps^3/6 f'''(x) + ...

In the difference f(x) and f'' cancel. Divided by 2 eps it is f'(x), with an error of about
eps^2/6 f'''(x). With one step alone, f'' would stay: an error of eps/2 f''(x).
"""

from collections.abc import Callable

import torch
from torch import Tensor

HINTS = (
    "Loop over the elements of x. For each one make a fresh copy of x, change that one element of "
    "the copy, and call the function: once with +eps, once with -eps.",
    "`gradient = torch.zeros_like(x)`, then `for i in range(x.numel()):`. With `x.flatten()` you "
    "can count through the elements of any shape, and `.reshape(x.shape)` goes back.",
)


def numerical_gradient(function: Callable[[Tensor], Tensor], x: Tensor, eps: float) -> Tensor:
    slopes = []
    for i in range(x.numel()):
        step = torch.zeros_like(x).flatten()
        step[i] = eps
        step = step.reshape(x.shape)
        slopes.append((function(x + step) - function(x - step)) / (2 * eps))
    return torch.stack(slopes).reshape(x.shape)


# The steps are large, so that a formula with a larger error gives visibly other numbers.
def sample_inputs() -> list[tuple]:
    return [
        (_cubes, torch.tensor([-1.0, 0.0, 2.0]), 0.1),
        (_exp_of_neighbours, torch.randn(2, 3), 0.01),
        (_cubes, torch.tensor([[1.5]]), 1e-3),
    ]


def _cubes(x: Tensor) -> Tensor:
    return (x**3).sum()


def _exp_of_neighbours(x: Tensor) -> Tensor:
    return (x.exp() * x.roll(1, dims=-1)).sum()


def _moved(x: Tensor, i: int, shift: float) -> Tensor:
    flat = x.clone().flatten()
    flat[i] += shift
    return flat.reshape(x.shape)


def numerical_gradient_one_side(function: Callable, x: Tensor, eps: float) -> Tensor:
    """This steps to one side only, so its error shrinks with eps and not with eps^2. Take one step
    up and one step down, and divide by the distance between them, 2 eps."""
    here = function(x)
    slopes = [(function(_moved(x, i, eps)) - here) / eps for i in range(x.numel())]
    return torch.stack(slopes).reshape(x.shape)


def numerical_gradient_divided_by_eps(function: Callable, x: Tensor, eps: float) -> Tensor:
    """This is twice the gradient. The two points are 2 eps apart, so divide by 2 eps; in Python
    that needs parentheses, (2 * eps)."""
    return 2 * numerical_gradient(function, x, eps)


def numerical_gradient_precedence(function: Callable, x: Tensor, eps: float) -> Tensor:
    """Python reads a / 2 * eps as (a / 2) * eps, so this multiplies by eps. Write / (2 * eps)."""
    return numerical_gradient(function, x, eps) * eps**2


def numerical_gradient_not_divided(function: Callable, x: Tensor, eps: float) -> Tensor:
    """This returns how much the value changes, not how fast. Divide the difference by 2 eps."""
    return numerical_gradient(function, x, eps) * 2 * eps


def numerical_gradient_all_at_once(function: Callable, x: Tensor, eps: float) -> Tensor:
    """This moves all elements of x at once, so every element gets the sum of all slopes. Move one
    element at a time, in a loop."""
    slope = (function(x + eps) - function(x - eps)) / (2 * eps)
    return torch.full_like(x, slope.item())


def numerical_gradient_one_number(function: Callable, x: Tensor, eps: float) -> Tensor:
    """This moves all elements of x at once and returns a single number. Return one number for each
    element: move one element at a time, in a loop."""
    return (function(x + eps) - function(x - eps)) / (2 * eps)


def numerical_gradient_without_copies(function: Callable, x: Tensor, eps: float) -> Tensor:
    """The steps up and down change the same tensor and cancel, so each difference is 0. An
    assignment makes no copy: write x.clone() for each of the two."""
    return torch.zeros_like(x)


def numerical_gradient_by_rows(function: Callable, x: Tensor, eps: float) -> Tensor:
    """x[i] is a whole row where x has two dimensions, so this moves all its elements at once. Move
    one element at a time: x.numel() says how many there are."""
    slopes = torch.zeros_like(x)
    for i in range(len(x)):
        step = torch.zeros_like(x)
        step[i] = eps
        slopes[i] = (function(x + step) - function(x - step)) / (2 * eps)
    return slopes


def numerical_gradient_by_autograd(function: Callable, x: Tensor, eps: float) -> Tensor:
    """This is the derivative itself, as autograd or a step much smaller than eps gives it. A
    numerical gradient must not rely on any backward: use the formula, with a step of eps."""
    leaf = x.detach().clone().requires_grad_()
    (gradient,) = torch.autograd.grad(function(leaf), leaf)
    return gradient


def numerical_gradient_not_moved_back(function: Callable, x: Tensor, eps: float) -> Tensor:
    """Each element stays moved while the next ones are tried. Start from a fresh copy of x for each
    element, or move it back."""
    flat, slopes = x.clone().flatten(), []
    for i in range(x.numel()):
        flat[i] += eps
        up = function(flat.reshape(x.shape).clone())
        flat[i] -= 2 * eps
        down = function(flat.reshape(x.shape).clone())
        slopes.append((up - down) / (2 * eps))
    return torch.stack(slopes).reshape(x.shape)


def numerical_gradient_sign(function: Callable, x: Tensor, eps: float) -> Tensor:
    """The sign is flipped: subtract the value after the step down from the value after the step
    up."""
    return -numerical_gradient(function, x, eps)

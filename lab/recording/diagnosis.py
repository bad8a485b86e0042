"""What is wrong with a training: parameters without a gradient, numbers that are not finite."""

from __future__ import annotations

import math

from torch import nn

from lab.errors import UserError


class Diverged(UserError):
    """A loss, a gradient or a weight is not finite."""

    exit_code = 1


class NoGradient(UserError):
    """The backward pass reached no parameter, or not all of them."""

    exit_code = 1


def zero_gradients(model: nn.Module) -> list[str]:
    """Names of the parameters whose gradient is zero everywhere.

    Raises:
        NoGradient: the backward pass did not reach a parameter.
    """
    gradients = {name: p.grad for name, p in model.named_parameters() if p.requires_grad}
    if missing := [name for name, grad in gradients.items() if grad is None]:
        raise NoGradient(
            f"no gradient reached {', '.join(missing)}; a backward returns None there, or an "
            "output was detached"
        )
    return [name for name, grad in gradients.items() if grad is not None and not grad.any()]


def nonfinite(model: nn.Module, gradients: bool) -> list[str]:
    """Names of the parameters that hold inf or nan, or whose gradients do."""
    tensors = [(name, p.grad if gradients else p) for name, p in model.named_parameters()]
    return [name for name, tensor in tensors if tensor is not None and not tensor.isfinite().all()]


def why_diverged(
    what: str, gradients: list[str], first: float | None, last: float | None, lr: float | None
) -> Diverged:
    """The error for a training that can't continue, with what the numbers show.

    Args:
        what: the number that is not finite, and its step.
        gradients: names of the parameters whose gradient was not finite just before that.
        first, last: the first loss and the last finite one; None if no loss was recorded.
        lr: the learning rate, or None.

    >>> print(why_diverged("the loss at step 4 is inf", [], 2.0, 5e22, 1e-5))
    diverged: the loss at step 4 is inf; the last finite loss was 5e+22; try a smaller learning \
rate, optimizer.lr=1.0e-06
    """
    words = [f"diverged: {what}"]
    if last is not None:
        words.append(f"the last finite loss was {last:.6g}")
    words += [f"the gradient of {name} is not finite" for name in gradients]
    # A rate that is too large makes the loss grow first.
    if gradients and first is not None and last is not None and last <= 10 * first:
        words.append("the loss was finite, so check backward for a division by 0 or an overflow")
    elif first is None or not math.isfinite(first):
        words.append("no update was made before it, so check forward and the data")
    elif lr:
        words.append(f"try a smaller learning rate, optimizer.lr={lr / 10:.1e}")
    return Diverged("; ".join(words))

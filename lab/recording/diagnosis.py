"""What is wrong with a training: parameters without a gradient, numbers that are not finite."""

from __future__ import annotations

from torch import nn

from lab.errors import UserError


class Diverged(UserError):
    """A loss, a gradient or a weight is not finite."""

    exit_code = 1


class NoGradient(UserError):
    """The backward pass reached no parameter, or not all of them."""

    exit_code = 1


def without_gradient(model: nn.Module) -> list[str]:
    """Names of the parameters that the backward pass did not reach."""
    return [
        name
        for name, parameter in model.named_parameters()
        if parameter.requires_grad and parameter.grad is None
    ]


def with_zero_gradient(model: nn.Module) -> list[str]:
    """Names of the parameters whose gradient is zero everywhere."""
    return [
        name
        for name, parameter in model.named_parameters()
        if parameter.grad is not None and not parameter.grad.any()
    ]


def nonfinite_gradients(model: nn.Module) -> list[str]:
    """Names of the parameters whose gradient holds inf or nan."""
    return [
        name
        for name, parameter in model.named_parameters()
        if parameter.grad is not None and not parameter.grad.isfinite().all()
    ]


def nonfinite_weights(model: nn.Module) -> list[str]:
    """Names of the parameters that hold inf or nan."""
    return [name for name, weight in model.named_parameters() if not weight.isfinite().all()]


def why_diverged(
    what: str, gradients: list[str], losses: list[float], lr: float | None
) -> Diverged:
    """The error for a training that can't continue, with what the numbers show.

    Args:
        what: the number that is not finite, and its step.
        gradients: names of the parameters whose gradient was not finite just before that.
        losses: the first loss and the last finite one; empty where there is none.
        lr: the learning rate, or None.

    >>> print(why_diverged("the loss at step 4 is inf", [], [2.0, 5e22], 1e-5))
    diverged: the loss at step 4 is inf; the last finite loss was 5e+22; try a smaller learning \
rate, optimizer.lr=1.0e-06
    """
    words = [f"diverged: {what}"]
    if losses:
        words.append(f"the last finite loss was {losses[-1]:.6g}")
    words += [f"the gradient of {name} is not finite" for name in gradients]
    # A rate that is too large makes the loss grow first.
    if gradients and losses and losses[-1] <= 10 * losses[0]:
        words.append("the loss was finite, so check backward for a division by 0 or an overflow")
    elif lr:
        words.append(f"try a smaller learning rate, optimizer.lr={lr / 10:.1e}")
    return Diverged("; ".join(words))

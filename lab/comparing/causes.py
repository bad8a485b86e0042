"""From two results that differ to the cause; only a cause that the numbers prove is named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from lab.comparing.replay import Operation, Result, Training, equal, pairs, unequal
from lab.graph import called, function_of, users_line

MACHINE = ("dtype", "device", "threads")
MOST_EPS = 1000  # of the largest element: more is no rounding error of a sum at these sizes
# In float64 a rounding error is 2^29 times as small as in float32; a real difference is as large.
ROUNDING = 2.0**20
MOST_SLOPES = 100  # elements whose derivative is estimated


@dataclass(frozen=True)
class Difference:
    """The first results that differ in two trainings; all that were computed before are equal.

    Attributes:
        kind: start, forward, backward or update.
        a, b: the results, of the same name.
        settings: what differs between the runs, key to the values of both.
    """

    kind: str
    step: int
    a: Result
    b: Result
    trainings: tuple[Training, Training]
    settings: Mapping[str, tuple[Any, Any]]


def cause(found: Difference) -> str:
    """The cause of a difference in a few sentences."""
    sections: tuple[str, ...] = ("function", "model")
    if found.kind == "start":
        sections = ("seed", *sections) if found.a.wrt else ("seed", "data")
        text = f"other numbers at the start: {_said(found, sections)}."
    elif found.kind == "update":
        text, sections = _update(found), ("optimizer",)
    elif text := _machine(found):
        sections = MACHINE
    else:
        text = _activation(found) or _rounding(found) or _operation(found)
    rest = [key for key in found.settings if key.partition(".")[0] not in sections]
    return text + (f"\nOther settings differ too: {_said(found, rest)}." if rest else "")


def maker(result: Result, training: Training) -> str:
    """Who computed a result: the user's Functions with file and line, else PyTorch's."""
    if result.operation.name == "optimizer":
        return _call(training.config.optimizer)
    method = "forward" if result.wrt == "output" else "backward"
    lines = {called(node): users_line(node, method) for node in result.operation.nodes}
    users = [f"{name} ({line})" for name, line in lines.items() if line]
    return ", ".join(users or lines)


def went_in(found: Difference, at: tuple[int, ...]) -> str:
    """From which numbers one element was computed, the same in both runs; "" if unknown."""
    result, operation, training = found.a, found.a.operation, found.trainings[0]
    if operation.name == "optimizer":
        here = at[::-1] if result.transposed else at
        grad = training.parameters[result.wrt].grad
        assert grad is not None
        return f"weight {training.before[result.wrt][here]:.9g}, gradient {grad[here]:.9g}"
    if operation.name == "activation":
        grad_output = f", grad_output {operation.grad_output[at]:.9g}"
        return f"input {operation.input[at]:.9g}{grad_output if result.wrt == 'input' else ''}"
    if not operation.name.startswith("linear"):
        return ""
    return {
        "output": f"row {at[0]} of the input, column {at[-1]} of the weight",
        "input": f"row {at[0]} of grad_output, row {at[-1]} of the weight",
        "weight": f"column {at[0]} of the input, column {at[-1]} of grad_output",
        "bias": f"column {at[-1]} of grad_output",
    }[result.wrt]


def _said(found: Difference, keys: Sequence[str]) -> str:
    """The settings that differ and are, or belong to, one of the keys."""
    return ", ".join(
        f"{key}={a} and {key}={b}"
        for key, (a, b) in found.settings.items()
        if key in keys or key.partition(".")[0] in keys
    )


def _call(optimizer: Mapping[str, Any]) -> str:
    """An optimizer's config as one would call it, such as `optimizers.ManualSGD(lr=1e-06)`."""
    arguments = [f"{key}={value}" for key, value in optimizer.items() if not key.startswith("_")]
    return f"{optimizer['_target_']}({', '.join(arguments)})"


def _machine(found: Difference) -> str:
    """Do the same numbers come out where the second run uses the first run's settings?"""
    first, second = found.trainings
    names = [name for name in MACHINE if getattr(first, name) != getattr(second, name)]
    if not names or not equal(found.b.again(*first.machine), found.a.tensor):
        return ""
    said = [f"{name}={getattr(t, name)}" for name in names for t in found.trainings]
    return f"{' and '.join(said)}. With the same {' and '.join(names)} the results are equal."


def _activation(found: Difference) -> str:
    """Is each gradient that an activation returned a derivative of its forward?

    At a kink, each number from the slope on the left to the slope on the right is valid.
    """
    operation, sides, kink = found.a.operation, (found.a, found.b), ""
    if (operation.name, found.a.wrt) != ("activation", "input"):
        return ""
    for at in unequal(found.a.tensor, found.b.tensor).nonzero()[:MOST_SLOPES].tolist():
        x, grad_output = operation.input[*at].item(), operation.grad_output[*at].item()
        if not grad_output or (slopes := _slopes(operation, at)) is None:
            return ""
        does = []
        for side in sides:
            factor = side.tensor[*at].item() / grad_output + 0.0
            words = {0.0: "stops grad_output", 1.0: "passes grad_output on"}
            what = words.get(factor, f"multiplies grad_output by {factor:.3g}")
            does.append(f"{called(side.operation.nodes[0])} {what}")
            if not min(slopes) - 1e-3 <= factor <= max(slopes) + 1e-3:
                return (
                    f"another backward. At an input of {x:.9g} the derivative of forward is "
                    f"{slopes[0]:.3g}, but {does[-1]}.{_check(side)}"
                )
        kink = kink or (
            f"a kink. At an input of exactly {x:.9g} the slope of forward is {slopes[0]:.3g} on "
            f"the left and {slopes[1]:.3g} on the right: {' and '.join(does)}. Both are valid."
        )
    return kink


def _slopes(operation: Operation, at: list[int]) -> tuple[float, float] | None:
    """The numerical derivatives of an activation on the left and on the right of one input.

    Returns:
        Both, in float64; None where they depend on the step size, so that they prove nothing.
    """
    x, grad_output = operation.input.cpu().double(), operation.grad_output.cpu().double()

    def slope(h: float) -> float:
        moved = x.clone()
        moved[*at] += h
        change = (operation.call(moved) - operation.call(x.clone())) * grad_output
        return (change.sum() / grad_output[*at]).item() / h + 0.0  # -0.0 + 0.0 is 0.0

    left, right = slope(-1e-9), slope(1e-9)
    steady = abs(left - slope(-1e-3)) + abs(right - slope(1e-3)) < 1e-2
    return (left, right) if steady else None


def _rounding(found: Difference) -> str:
    """Do the two operations compute the same in float64, from the same numbers?"""
    exact, trainings = _in_float64(found), found.trainings
    here, in_float64 = _largest_difference(found), _largest_difference(exact)
    is_float64 = "float64" in [training.dtype for training in trainings]
    if not _agree(exact) or (not is_float64 and in_float64 > here / ROUNDING):
        return ""
    # At a kink inside the operation the two also agree in float64, where no input is exactly 0.
    size = found.a.tensor.abs().max().item()
    if here > MOST_EPS * torch.finfo(found.a.tensor.dtype).eps * size:
        return ""
    linear = found.a.operation.name.startswith("linear")
    what = "the same products and add them up in another order" if linear else "the same function"
    at = unequal(found.a.tensor, found.b.tensor).nonzero()[0].tolist()
    x, y = found.a.tensor[*at], found.b.tensor[*at]
    units = round(((x - y).abs() / unit_in_the_last_place(torch.maximum(x.abs(), y.abs()))).item())
    apart = f"{units} unit{'' if units == 1 else 's'} in the last place apart"
    text = f"rounding. Both compute {what}. The two values are {apart}"
    text += "." if is_float64 else f"; in float64 the largest difference is {in_float64:.2g}."
    for a, b in pairs(trainings[0].results, trainings[1].results):
        # A forward that rounds differently must not hide a wrong backward.
        later = _in_float64(replace(found, kind="backward", a=a, b=b))
        if not _agree(later):
            why = _activation(later) or _operation(later)
            return f"{text} That is not all: {a.name} differs by more than rounding, due to {why}"
    return text


def _in_float64(found: Difference) -> Difference:
    """The two results as both operations compute them in float64 from the first run's numbers."""
    given = {name: getattr(found.a.operation, name) for name in ("input", "grad_output")}
    sides = [
        replace(side, operation=replace(side.operation, **given)) for side in (found.a, found.b)
    ]
    a, b = (replace(side, tensor=side.again("float64", "cpu", 1)) for side in sides)
    return replace(found, a=a, b=b)


def _agree(exact: Difference) -> bool:
    """Whether two results in float64 are equal, but for rounding."""
    return _largest_difference(exact) <= 1e-12 * exact.a.tensor.abs().max().item()


def _largest_difference(found: Difference) -> float:
    return (found.a.tensor.cpu().double() - found.b.tensor.cpu().double()).abs().max().item()


def _operation(found: Difference) -> str:
    a, b = found.a, found.b
    names = [[called(node) for node in side.operation.nodes] for side in (a, b)]
    if names[0] != names[1]:
        given = "input" if found.kind == "forward" else "grad_output"
        return (
            f"another {found.kind}. From the same {given} {names[0][0]} and {names[1][0]} compute "
            f"different numbers.{_check(a, b)}"
        )
    machine = found.trainings[0].machine
    if not equal(a.again(*machine), a.again(*machine)):
        return f"chance: {names[0][0]} gives other numbers when it is repeated."
    return f"the settings {_said(found, ('function', 'model'))}."


def _check(*sides: Result) -> str:
    """How to check the user's Functions among the operations."""
    nodes = [node for side in sides for node in side.operation.nodes]
    functions = dict.fromkeys(function for node in nodes if (function := function_of(node)))
    return "".join(f"\n  try: python check.py {f.__module__}.{f.__qualname__}" for f in functions)


def _update(found: Difference) -> str:
    optimizers = [training.config.optimizer for training in found.trainings]
    differ = [
        f"{key}={optimizers[0].get(key, 'none')} and {key}={optimizers[1].get(key, 'none')}"
        for key in {**optimizers[0], **optimizers[1]}
        if key != "_target_" and (optimizers[0].get(key) or 0) != (optimizers[1].get(key) or 0)
    ]
    if _is_rounding(found):
        text = "to 2 units in the last place, both compute weight - lr * gradient"
        if differ:
            return f"the update. In this step, {text}, but the optimizers have {', '.join(differ)}."
        return f"rounding. {text.capitalize()}."
    same = optimizers[0]["_target_"] == optimizers[1]["_target_"]
    what = ", ".join(differ) if same else " and ".join(map(_call, optimizers))
    return f"the update. The weights and gradients are equal, but not the optimizers: {what}."


def _is_rounding(found: Difference) -> bool:
    """Whether two updates are `weight - lr * gradient` with the same lr, but for rounding."""
    lr, name = found.trainings[0].config.optimizer.get("lr", 0), found.a.wrt
    for training in found.trainings:
        before, weight = training.before[name].cpu(), training.parameters[name]
        assert weight.grad is not None
        updated, grad = weight.detach().cpu(), weight.grad.cpu()
        plain = before.double() - lr * grad.double()
        unit = unit_in_the_last_place(torch.maximum(updated.abs(), before.abs()))
        if ((updated - plain).abs() > 2 * unit).any():
            return False
    return True


def unit_in_the_last_place(x: Tensor) -> Tensor:
    """The distance from |x| to the next larger number of its dtype.

    >>> unit_in_the_last_place(torch.tensor([1.0, -1000.0])).tolist()
    [1.1920928955078125e-07, 6.103515625e-05]
    """
    return torch.nextafter(x.abs(), torch.full_like(x, torch.inf)) - x.abs()

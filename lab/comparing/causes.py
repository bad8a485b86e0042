"""From two results that differ to the cause; only a cause that the numbers prove is named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lab.comparing.replay import Operation, Result, Training, equal, pairs, unequal
from lab.graph import called, function_of, users_line

MOST_EPS = 1000  # of the largest element: more is no rounding error of a sum at these sizes
# In float64 a rounding error is 2^29 times as small as in float32; a real difference is as large.
ROUNDING = 2.0**20
MOST_SLOPES = 100  # elements whose derivative is estimated
MOST_CURVED = 1e-2  # change of a slope over a step of 1e-3, where forward is smooth


@dataclass(frozen=True)
class Difference:
    """The first results that differ in two trainings; all that were computed before are equal.

    Attributes:
        kind: start, forward, backward or update.
        a, b: the results, of the same name.
        settings: what differs between the runs, key to the values of both.
    """

    kind: str
    a: Result
    b: Result
    trainings: tuple[Training, Training]
    settings: Mapping[str, tuple[Any, Any]]


def cause(found: Difference) -> str:
    """The cause of a difference in a few sentences."""
    sections: Sequence[str] = ("function", "model")
    if found.kind == "start":
        sections = ("seed", *sections) if found.a.wrt else ("seed", "data")
        text = f"different numbers at the start: {_said(found, sections)}."
    elif found.kind == "update":
        text, sections = _update(found), ("optimizer",)
    elif text := _machine(found):
        sections = tuple(found.trainings[0].machine)
    else:
        text = _activation(found)
        if not text and (text := _rounding(found)):
            sections = ("function",)  # rounding is no reason to hide a setting of the model
        text = text or _operation(found)
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
    """From which numbers an activation or an optimizer computed one element, the same in both runs.

    Returns:
        "" for any other operation: it computes an element from a whole row or column.
    """
    result, operation, training = found.a, found.a.operation, found.trainings[0]
    if operation.name == "optimizer":
        here = at[::-1] if result.transposed else at
        grad = training.parameters[result.wrt].grad
        assert grad is not None
        return f"weight {training.before[result.wrt][here]:.9g}, gradient {grad[here]:.9g}"
    if operation.name == "activation":
        numbers = f"input {operation.input[at]:.9g}"
        if result.wrt == "output":
            return numbers
        return f"{numbers}, grad_output {operation.grad_output[at]:.9g}"
    return ""


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
    first, second = (training.machine for training in found.trainings)
    names = [name for name in first if first[name] != second[name]]
    if not names or not equal(found.b.again(**first), found.a.tensor):
        return ""
    said = [f"{name}={machine[name]}" for name in names for machine in (first, second)]
    return f"{' and '.join(said)}. With the same {' and '.join(names)} the results are equal."


def _activation(found: Difference) -> str:
    """Is each gradient that an activation returned a derivative of its forward?

    At a kink, each number from the slope on the left to the slope on the right is valid.
    """
    operation, kink = found.a.operation, ""
    if (operation.name, found.a.wrt) != ("activation", "input"):
        return ""
    for at in _farthest(found.a.tensor, found.b.tensor):
        x, grad_output = operation.input[*at].item(), operation.grad_output[*at].item()
        if not grad_output or (slopes := _slopes(operation, at)) is None:
            return ""
        bends = abs(slopes[0] - slopes[1]) > MOST_CURVED
        slack = 1e-4 * max(map(abs, slopes)) + 1e-6  # how exact the slopes are
        slope = f"the derivative of forward is {slopes[0]:.5g}"
        if bends:
            slope = (
                f"the slope of forward is {slopes[0]:.3g} on the left and {slopes[1]:.3g} on the "
                "right"
            )
        does = []
        for side in (found.a, found.b):
            factor = side.tensor[*at].item() / grad_output + 0.0
            words = {0.0: "stops grad_output", 1.0: "passes grad_output on"}
            what = words.get(factor, f"multiplies grad_output by {factor:.5g}")
            does.append(f"{called(side.operation.nodes[0])} {what}")
            if not min(slopes) - slack <= factor <= max(slopes) + slack:
                where = f"At an input of {x:.9g} {slope}, but {does[-1]}."
                return f"a different backward. {where}{_check(side)}"
        if not bends:
            return ""  # both are the derivative, as far as differences of forward can tell
        where = f"At an input of exactly {x:.9g} {slope}: {' and '.join(does)}."
        kink = kink or f"a kink. {where} Both are valid."
    return kink


def _farthest(a: Tensor, b: Tensor) -> list[list[int]]:
    """The indices of the elements that differ most, at most `MOST_SLOPES`."""
    differs = unequal(a, b)
    apart = (a.cpu().double() - b.cpu().double()).abs().nan_to_num(torch.inf, torch.inf)
    order = apart[differs].argsort(descending=True, stable=True)[:MOST_SLOPES]
    return differs.nonzero()[order].tolist()


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
    steady = abs(left - slope(-1e-3)) + abs(right - slope(1e-3)) < MOST_CURVED
    return (left, right) if steady else None


def _rounding(found: Difference) -> str:
    """Do the two operations compute the same in float64, from the same numbers?"""
    a, b, exact = found.a.tensor, found.b.tensor, _in_float64(found)
    here, in_float64 = _largest_difference(found), _largest_difference(exact)
    is_float64 = "float64" in [training.config.dtype for training in found.trainings]
    if not _agree(exact) or (not is_float64 and in_float64 > here / ROUNDING):
        return ""
    # At a kink inside the operation the two also agree in float64, where no input is exactly 0.
    if here > MOST_EPS * torch.finfo(a.dtype).eps * a.abs().max().item():
        return ""
    linear = found.a.operation.name.startswith("linear")
    what = "the same sums of products, in a different order or precision"
    what = what if linear else "the same function"
    at = unequal(a, b).nonzero()[0].tolist()
    units = round(((a[*at] - b[*at]).abs() / _unit(a[*at], b[*at])).item())
    apart = f"{units} unit{'' if units == 1 else 's'} in the last place apart"
    text = f"rounding. Both compute {what}. The two values are {apart}"
    text += "." if is_float64 else f"; in float64 the largest difference is {in_float64:.2g}."
    for one, other in pairs(*found.trainings):
        # A forward that rounds differently must not hide a wrong backward.
        kind = "forward" if one.wrt == "output" else "backward"
        later = _in_float64(replace(found, kind=kind, a=one, b=other))
        if not _agree(later):
            why = _activation(later) or _operation(later)
            return f"{text} That is not all: {one.name} differs by more than rounding, due to {why}"
    return text


def _in_float64(found: Difference) -> Difference:
    """The two results as both operations compute them in float64 from the first run's numbers."""
    given = found.a.operation
    a, b = (
        replace(side, tensor=side.again("float64", "cpu", 1, given)) for side in (found.a, found.b)
    )
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
        first, second = (
            ", ".join(dict.fromkeys(name for name in mine if name not in others) or mine)
            for mine, others in (names, names[::-1])
        )
        said = "" if "function" in found.settings else _said(found, ("model",))
        return (
            f"a different {found.kind}. From the same {given}, {first} in one run and {second} in "
            f"the other compute different numbers{said and f': {said}'}.{_check(a, b)}"
        )
    machine = found.trainings[0].machine
    if not equal(a.again(**machine), a.again(**machine)):
        return f"chance: {names[0][0]} gives different numbers when it is repeated."
    return f"the settings {_said(found, ('function', 'model'))}."


def _check(*sides: Result) -> str:
    """How to check the user's Functions among the operations."""
    nodes = [node for side in sides for node in side.operation.nodes]
    functions = dict.fromkeys(function for node in nodes if (function := function_of(node)))
    return "".join(f"\n  try: python check.py {f.__module__}.{f.__qualname__}" for f in functions)


def _update(found: Difference) -> str:
    first, second = (training.config.optimizer for training in found.trainings)
    differ = ", ".join(
        f"{key}={first.get(key, 'none')} and {key}={second.get(key, 'none')}"
        for key in first | second
        if key != "_target_" and (first.get(key) or 0) != (second.get(key) or 0)
    )
    if all(_is_plain(found.a.wrt, training, first.get("lr", 0)) for training in found.trainings):
        text = "to 2 units in the last place, both compute weight - lr * gradient"
        if differ:
            return f"the update. In this step, {text}, but the optimizers have {differ}."
        return f"rounding. {text.capitalize()}."
    if first["_target_"] != second["_target_"]:
        differ = f"{_call(first)} and {_call(second)}"
    return f"the update. The weights and gradients are equal, but not the optimizers: {differ}."


def _is_plain(name: str, training: Training, lr: float) -> bool:
    """Whether the update of a parameter was `weight - lr * gradient`, but for rounding."""
    before, weight = training.before[name].cpu(), training.parameters[name]
    assert weight.grad is not None
    updated, grad = weight.detach().cpu(), weight.grad.cpu()
    difference = updated - (before.double() - lr * grad.double())
    return bool((difference.abs() <= 2 * _unit(updated, before)).all())


def _unit(x: Tensor, y: Tensor) -> Tensor:
    """The distance from the larger of |x| and |y| to the next number of its dtype."""
    return torch.as_tensor(np.spacing(torch.maximum(x.abs(), y.abs()).cpu().numpy()))

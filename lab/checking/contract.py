"""What PyTorch expects of forward and backward, before any number is looked at.

Can the target run as written? What does one call of forward and backward return, of which shape and
dtype, and which tensors does it edit?
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from lab.checking.numbers import broadcasts, equal_with_nan, gradients, random_grads, slopes_of
from lab.checking.probes import node_of, rounds_to_float32
from lab.checking.samples import (
    Case,
    can_need_grad,
    copied,
    has_setup_context,
    in_float32,
    is_function_class,
    parameters_of,
)
from lab.checking.users_code import Crash, users_code
from lab.checking.verdict import Finding, finding, say


def cannot_run(target: Any) -> Finding | None:
    """Why the target can't be checked as it is written, or None."""
    if isinstance(target, torch.autograd.Function):
        return finding("not static", "instance", name=type(target).__name__)
    if not is_function_class(target):
        return _no_function(target)
    base = torch.autograd.Function
    first = next(iter(parameters_of(target)), None)
    if has_setup_context(target) and first is not None and first.name == "ctx":
        return finding("crash", "ctx beside setup_context")
    if target.forward is base.forward:
        return finding("no forward")
    if target.backward is base.backward and target.vjp is base.vjp:
        return finding("no backward")
    surrogate = getattr(target, "surrogate", True)
    if surrogate is not True and not callable(surrogate):
        return finding("declaration", "surrogate is no function")
    return None


def _no_function(target: Any) -> Finding | None:
    owner = target if inspect.isclass(target) else type(target)
    if issubclass(owner, torch.nn.Module):
        advice = say("backward of a module") if "backward" in vars(owner) else ""
        return finding("no Function", "module", name=owner.__name__, advice=advice)
    if callable(target) and not inspect.isclass(target) and not inspect.isbuiltin(target):
        return None  # it may well apply one
    what = getattr(target, "__name__", f"an object of type {type(target).__name__}")
    return finding("no Function", what=what)


def decorators(target: Any) -> list[Finding]:
    """Notes on methods that PyTorch takes, though they are not written as it documents them."""
    notes = []
    for method in ("forward", "setup_context", "backward", "vjp"):
        found = inspect.getattr_static(target, method)
        if isinstance(getattr(found, "__wrapped__", None), staticmethod) and inspect.isfunction(
            found
        ):
            notes.append(finding("order of decorators", name=method))
        elif not isinstance(found, staticmethod | classmethod):
            notes.append(finding("no @staticmethod", name=method))
    return notes


def examine(case: Case) -> tuple[Case, list[Finding], list[Finding]]:
    """One forward and one backward, called as PyTorch calls them.

    Returns:
        The case as it can be checked (which outputs count, how precisely), what is wrong, notes.
    """
    case, notes = _in_its_precision(case)
    args = [copied(leaf) for leaf in case.leaves()]
    before = [_kept(arg) for arg in args]
    with users_code("in forward"):
        every = case.apply(*args)
    if found := _edits(args, before, case.names, "forward", every):
        return case, found, notes
    watched = tuple(i for i, y in enumerate(every) if can_need_grad(y) and y.requires_grad)
    case = replace(case, watched=watched)
    node: Any = node_of(case, every[watched[0]]) if watched else None
    if found := [_no_way_back(case, every)] if node is None else _about_outputs(case, every):
        return case, found, notes
    notes += _other_dtype(case)
    if case.is_precise and rounds_to_float32(case):
        case = case.coarse()
        notes.append(finding("float32 inside", who="forward"))
    handed: list[Any] = [_grad_like(y) for y in every]
    kept, results, before = ([_kept(v) for v in values] for values in (handed, every, args))
    returned: Any = None
    with users_code("in backward"):
        if is_function_class(case.target):
            with torch.no_grad():
                returned = node.apply(*handed)
        else:  # the node is somewhere inside, and what it returns is not seen
            outputs = [every[i] for i in watched]
            gradients(case, outputs, args, [handed[i] for i in watched], copy=False)
    found += _edits(handed, kept, ["grad_output"] * len(handed), "backward")
    found += _edits(args, before, case.names, "backward")
    found += _edits(every, results, ["the output"] * len(every), "backward")
    notes += _parameters_left_out(case)
    if is_function_class(case.target):
        case, more, others = _returned(case, returned)
        found, notes = found + more, notes + others
    return case, found, notes


def _kept(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def _grad_like(output: Any) -> Any:
    """What PyTorch would hand to backward: random for what can need a gradient, else zeros."""
    if can_need_grad(output):
        return random_grads([output])[0]
    return torch.zeros_like(output) if isinstance(output, torch.Tensor) else None


def _in_its_precision(case: Case) -> tuple[Case, list[Finding]]:
    """The case, in float32 where forward takes nothing else."""
    crashes = []
    for tried, notes in ((case, []), (case.in_float32(), [finding("only float32")])):
        try:
            with users_code("in forward"):
                tried.outputs(*tried.leaves())
        except Crash as crash:
            crashes.append(crash)
        else:
            return tried, notes
    raise crashes[0]


def _no_way_back(case: Case, every: tuple) -> Finding:
    """Why no output leads back to backward."""
    for name, arg in zip(case.names, case.args, strict=False):
        if isinstance(arg, list | tuple) and any(map(can_need_grad, arg)):
            return finding("tensors in a tuple", name=name)
    if all(output is None for output in every):
        return finding("no output", "forward returns None")
    if any(isinstance(output, list) for output in every):
        return finding("no output", "forward returns a list")
    if not any(map(can_need_grad, every)):
        return finding("no output", "no float output")
    return finding("bypassed", "" if is_function_class(case.target) else "no Function applied")


def _about_outputs(case: Case, every: tuple) -> list[Finding]:
    outputs = [every[i] for i in case.watched or ()]
    if not all(output.isfinite().all() for output in outputs):
        return [finding("not finite", "outside its domain")]
    dtypes = {arg.dtype for arg in case.args if can_need_grad(arg)}
    if outputs[0].dtype in dtypes or any(t.is_complex for t in (outputs[0].dtype, *dtypes)):
        return []
    given = case.args[case.floats[0]]
    return [finding("dtype", "dtype of output", got=_kind(outputs[0]), given=_kind(given))]


def _edits(
    tensors: Sequence, before: Sequence, names: Sequence[str], who: str, outputs: Sequence = ()
) -> list[Finding]:
    """The tensors that were changed in place, other than those that forward returns as dirty."""
    found = []
    for tensor, old, name in zip(tensors, before, names, strict=False):
        if not isinstance(tensor, torch.Tensor) or tensor.layout is not torch.strided:
            continue
        if not equal_with_nan(tensor, old) and not any(tensor is output for output in outputs):
            kind = "edits grad_output" if name == "grad_output" else "edits input"
            advice = say("mark_dirty" if who == "forward" else "clone", name=name)
            found.append(finding(kind, "edits", who=who, name=name, advice=advice))
    return found


def _returned(case: Case, returned: Any) -> tuple[Case, list[Finding], list[Finding]]:
    """The number, types, shapes and dtypes of the gradients that backward returns."""
    if isinstance(returned, list):
        return case, [finding("no tensor", "list of gradients")], []
    answers = returned if isinstance(returned, tuple) else (returned,)
    if returned is None:
        answers = (None,) * len(case.args)
    if unfit := _no_gradients(case, answers):
        return case, [unfit], []
    found: list[Finding] = []
    notes: list[Finding] = []
    passive = list(case.passive)
    for i in case.floats:
        name, shape = case.names[i], case.args[i].shape
        if answers[i] is not None:
            shapes = f"shape {tuple(answers[i].shape)} for {name} of shape {tuple(shape)}"
            if answers[i].shape != shape and broadcasts(shape, answers[i].shape):
                notes.append(finding("summed by PyTorch", shapes=shapes, name=name))
            else:
                found += _shape_and_dtype(case.args[i], name, answers[i], shapes)
        elif size := _numerical_size(case, i):
            if ((case.args[i] == 0) | (case.args[i].abs() == 1)).all():
                passive.append(i)
                notes.append(finding("mask", name=name))
                continue
            words = say("missing return" if returned is None else "declare no_gradient", name=name)
            found.append(finding("no gradient", name=name, size=size, advice=words))
    if not found and {*case.floats} <= {*passive}:
        found.append(finding("no gradient", "no gradient at all"))
    return replace(case, passive=tuple(passive)), found, notes


def _no_gradients(case: Case, answers: tuple) -> Finding | None:
    """What is wrong with their types or their number, or None."""
    names, expected, got = case.names[: len(case.args)], len(case.args), len(answers)
    for name, arg, gradient in zip(names, case.args, answers, strict=False):
        if gradient is not None and not isinstance(gradient, torch.Tensor):
            advice = say("list for one input") if isinstance(gradient, list | tuple) else ""
            return finding("no tensor", what=_short(gradient), name=name, advice=advice)
        if gradient is not None and not isinstance(arg, torch.Tensor):
            return finding("gradient for a number", name=name, value=_short(arg))
    if got < expected or any(gradient is not None for gradient in answers[expected:]):
        words = f"{got} gradient{'s' * (got != 1)}"
        return finding("number of gradients", got=words, expected=expected, names=", ".join(names))
    return None


def _shape_and_dtype(
    arg: torch.Tensor, name: str, gradient: torch.Tensor, shapes: str
) -> list[Finding]:
    if gradient.shape != arg.shape:
        transposed = gradient.shape == arg.shape[::-1]
        kind, key = ("transposed", "transposed shape") if transposed else ("shape", "shape")
        return [finding(kind, key, shapes=shapes)]
    if gradient.dtype == arg.dtype or gradient.is_complex() or arg.is_complex():
        return []
    got, given = _kind(gradient), _kind(arg)
    return [finding("dtype", "dtype of gradient", got=got, name=name, given=given)]


def _numerical_size(case: Case, position: int) -> float:
    """The largest numerical gradient for an input; 0 if it is rounding."""
    slopes = slopes_of(case, position)
    size = max(slopes.central[slopes.smooth].abs().tolist(), default=0.0)
    return size if size > case.atol else 0.0


def _parameters_left_out(case: Case) -> list[Finding]:
    """A note where a module is an argument: its parameters are no inputs of the Function."""
    notes = []
    for name, arg in zip(case.names, case.args, strict=False):
        if isinstance(arg, torch.nn.Module):
            left = [f"{name}.{key}" for key, value in arg.named_parameters() if value.grad is None]
            notes += [finding("parameters of a module", names=", ".join(left))] if left else []
    return notes


def _short(value: Any) -> str:
    """A number or a short text as it is; of anything else, its type."""
    text = repr(value)
    if isinstance(value, bool | int | float | complex | str) and len(text) <= 20:
        return text
    return f"a value of type {type(value).__name__}"


def _other_dtype(case: Case) -> list[Finding]:
    """A note where forward leaves the dtype or device of float32 inputs, as through NumPy."""
    given = case.args[case.floats[0]]
    if given.is_complex() or any(isinstance(arg, torch.nn.Module) for arg in case.args):
        return []
    try:
        with users_code("on float32 inputs", "float32"):
            output = case.outputs(*in_float32(case.args))[0]
    except Crash as crash:
        return [finding("fails in float32", told=crash.told)]
    if output.is_complex() or (output.dtype, output.device) == (torch.float32, given.device):
        return []
    return [finding("other dtype", given=_kind(given.float()), got=_kind(output))]


def _kind(tensor: torch.Tensor) -> str:
    where = "" if tensor.device.type == "cpu" else f" on {tensor.device}"
    return f"{str(tensor.dtype).removeprefix('torch.')}{where}"

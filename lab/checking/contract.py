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

from lab.checking.numbers import equal_with_nan, gradients, slopes_of
from lab.checking.probes import node_of, rounds_to_float32
from lab.checking.samples import (
    Case,
    can_need_grad,
    copied,
    is_function_class,
)
from lab.checking.users_code import Crash, users_code
from lab.checking.verdict import Finding


def cannot_run(target: Any) -> Finding | None:
    """Why the target can't be checked as it is written, or None."""
    if isinstance(target, torch.autograd.Function):
        name = type(target).__name__
        text = f"This is an instance of a Function. Use {name}.apply(x), never {name}()(x); the "
        return Finding("not static", text + "methods of a Function stand below @staticmethod.")
    if not is_function_class(target):
        return _no_function(target)
    base = torch.autograd.Function
    if target.forward is base.forward:
        return Finding("no forward", "There is no forward: nothing to differentiate.")
    if target.backward is base.backward and target.vjp is base.vjp:
        return Finding(
            "no backward",
            "There is no backward: add a static method backward(ctx, grad_output) that returns one "
            "gradient for each input of forward.",
        )
    surrogate = getattr(target, "surrogate", None)
    if surrogate is not None and surrogate is not True and not callable(surrogate):
        text = "surrogate must be a function, the one that backward differentiates, or True."
        return Finding("declaration", text)
    return None


def _no_function(target: Any) -> Finding | None:
    is_class, is_module = inspect.isclass(target), isinstance(target, torch.nn.Module)
    if is_module or (is_class and issubclass(target, torch.nn.Module)):
        owner = type(target) if is_module else target
        text = f"{owner.__name__} is a Module, no torch.autograd.Function."
        if "backward" in vars(owner):
            text += (
                " Autograd never calls the backward of a Module: it differentiates forward. Put "
                "forward and backward into a torch.autograd.Function, and call its .apply."
            )
        return Finding("no Function", f"{text} Check the Function that it calls.")
    has_signature = callable(target) and not is_class and not inspect.isbuiltin(target)
    if has_signature and not isinstance(target, int | float | str):
        return None  # it may well apply one
    what = getattr(target, "__name__", f"an object of type {type(target).__name__}")
    return Finding("no Function", f"{what} is no torch.autograd.Function.")


def decorators(target: Any) -> list[str]:
    """Notes on methods that PyTorch takes, though they are not written as it documents them."""
    notes = []
    for method in ("forward", "setup_context", "backward", "vjp"):
        found = inspect.getattr_static(target, method)
        if isinstance(found, staticmethod):
            continue
        if isinstance(getattr(found, "__wrapped__", None), staticmethod):
            notes.append(
                f"The decorators of {method} are in the wrong order: @staticmethod belongs above "
                "@once_differentiable."
            )
        elif not isinstance(found, classmethod):
            notes.append(
                f"{method} has no @staticmethod. .apply works without it; to call an instance does "
                "not."
            )
    return notes


def examine(case: Case) -> tuple[Case, list[Finding], list[str]]:
    """One forward and one backward, called as PyTorch calls them.

    Returns:
        The case as it can be checked (which outputs count, how precisely), what is wrong, notes.
    """
    case, notes = _in_its_precision(case)
    args = [copied(leaf) for leaf in case.leaves()]
    before = [_kept(arg) for arg in args]
    with users_code("in forward"):
        every = case.apply(*args)
    findings = _edits(args, before, case.names, "forward", every)
    if findings:
        return case, findings, notes
    case = replace(
        case,
        watched=tuple(i for i, y in enumerate(every) if can_need_grad(y) and y.requires_grad),
    )
    outputs = [every[i] for i in case.watched or ()]
    node = node_of(case, outputs[0]) if outputs else None
    if node is None:
        return case, [_no_way_back(case, every)], notes
    if not all(output.isfinite().all() for output in outputs):
        text = "forward gives inf or nan on these inputs: they lie outside its domain. "
        return case, [Finding("not finite", text + "Let sample_inputs() choose others.")], notes
    given = case.args[case.floats[0]]
    if outputs[0].dtype not in {arg.dtype for arg in case.args if can_need_grad(arg)} and not (
        given.is_complex() or outputs[0].is_complex()
    ):
        text = f"forward returns {_kind_of(outputs[0])} for {_kind_of(given)}. Keep the dtype of "
        return case, [Finding("dtype", text + "the input.")], notes
    notes += _other_dtype(case)
    if case.precision < 1e-10 and rounds_to_float32(case):
        case = case.coarse()
        notes.append("forward computes in float32 inside, so it was checked coarsely, to 2 %.")
    handed = [
        torch.randn_like(y) if can_need_grad(y) else torch.zeros_like(y)
        if isinstance(y, torch.Tensor) else None
        for y in every
    ]  # fmt: skip
    kept, results, before = (
        [_kept(g) for g in handed],
        [_kept(y) for y in every],
        list(map(_kept, args)),
    )
    with users_code("in backward"):
        if is_function_class(case.target):
            with torch.no_grad():
                returned = node.apply(*handed)
        else:  # the node is somewhere inside, and what it returns is not seen
            returned = None
            watched = case.watched or ()
            gradients(case, outputs, args, [handed[i] for i in watched], copy=False)
    findings += _edits(handed, kept, ["grad_output"] * len(handed), "backward")
    findings += _edits(args, before, case.names, "backward")
    findings += _edits(every, results, ["the output"] * len(every), "backward")
    notes += _parameters_left_out(case)
    if is_function_class(case.target):
        case, more, others = _returned(case, returned)
        findings, notes = findings + more, notes + others
    return case, findings, notes


def _kept(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def _in_its_precision(case: Case) -> tuple[Case, list[str]]:
    """The case, in float32 where forward takes nothing else."""
    try:
        with users_code("in forward"):
            case.outputs(*case.leaves())
    except Crash as crash:
        args = tuple(
            arg.float() if can_need_grad(arg) and not arg.is_complex() else arg for arg in case.args
        )
        single = replace(case, args=args).coarse()
        try:
            with users_code("in forward"):
                single.outputs(*single.leaves())
        except Crash:
            raise crash from None
        text = "forward takes only float32, so it was checked in float32, coarsely, to 2 %."
        return single, [text]
    return case, []


def _no_way_back(case: Case, every: tuple) -> Finding:
    """Why no output leads back to backward."""
    if any(isinstance(arg, list | tuple) and any(map(can_need_grad, arg)) for arg in case.args):
        names = [
            name
            for name, arg in zip(case.names, case.args, strict=False)
            if isinstance(arg, list | tuple)
        ]
        return Finding(
            "tensors in a tuple",
            f"Autograd does not look for tensors inside lists and tuples, so {names[0]} gets no "
            f"gradient and backward is never called. Write forward(ctx, *{names[0]}), and call "
            f".apply(*{names[0]}).",
        )
    if all(output is None for output in every):
        return Finding("no output", "forward returns None. Is its `return` missing?")
    if any(isinstance(output, list) for output in every):
        return Finding("no output", "forward returns a list. Return a tuple: a, b.")
    if not any(map(can_need_grad, every)):
        return Finding("no output", "forward returns no floating-point tensor to differentiate.")
    return Finding(
        "bypassed",
        "backward is never reached: the output does not come from .apply, or forward marks it as "
        "not differentiable. A forward that is called by hand, .forward(...), records nothing for "
        "this Function; call .apply(...).",
    )


def _edits(
    tensors: Sequence, before: Sequence, names: Sequence[str], who: str, outputs: Sequence = ()
) -> list[Finding]:
    """The tensors that were changed in place, other than those that forward returns as dirty."""
    findings = []
    for tensor, old, name in zip(tensors, before, names, strict=False):
        if not isinstance(tensor, torch.Tensor) or tensor.layout is not torch.strided:
            continue
        if equal_with_nan(tensor.detach(), old) or any(tensor is output for output in outputs):
            continue
        kind = "edits grad_output" if name == "grad_output" else "edits input"
        text = (
            f"{who} modifies {name} in place; other code shares that tensor and now sees changed "
            "values. "
        )
        if who == "forward":
            text += (
                f"If it is meant to work in place, call ctx.mark_dirty({name}) and return {name}. "
                "If not: "
            )
        text += (
            f"Work on {name}.clone(). `*=`, `{name}[mask] = ...` and methods that end in _ work in "
            "place."
        )
        findings.append(Finding(kind, text))
    return findings


def _returned(case: Case, returned: Any) -> tuple[Case, list[Finding], list[str]]:
    """The number, types, shapes and dtypes of the gradients that backward returns."""
    names, expected = case.names, len(case.args)
    if isinstance(returned, list):
        text = "backward returns a list. Return a tuple: one gradient for each input, with commas "
        return case, [Finding("no tensor", text + "between them and no brackets around them.")], []
    gave_none = returned is None
    returned = returned if isinstance(returned, tuple) else (returned,)
    for name, gradient in zip(names[:expected], returned, strict=False):
        if gradient is not None and not isinstance(gradient, torch.Tensor):
            text = f"backward returns {_shown(gradient)} for {name}. A gradient is a tensor of its "
            text += "input's shape, or None."
            if isinstance(gradient, list | tuple):
                text += " Return one for each input, with commas between them."
            return case, [Finding("no tensor", text)], []
    if gave_none:
        returned = (None,) * expected
    got = len(returned)
    if got < expected or any(gradient is not None for gradient in returned[expected:]):
        text = (
            f"backward returns {got} gradient{'s' * (got != 1)}, expected {expected}: one for each "
            f"input of forward ({', '.join(names[:expected])}), in that order, None for an input "
            "that has none."
        )
        return case, [Finding("number of gradients", text)], []
    for name, arg, gradient in zip(names, case.args, returned, strict=False):
        if gradient is not None and not isinstance(arg, torch.Tensor):
            text = f"backward returns a gradient for {name}, which is no tensor. Return None there."
            return case, [Finding("gradient for a number", text)], []
    findings: list[Finding] = []
    notes: list[str] = []
    passive = list(case.passive)
    for i in case.floats:
        arg, gradient, name = case.args[i], returned[i], names[i]
        if gradient is None:
            finding = _none_for(case, i, gave_none)
            if finding is None:
                continue
            if ((arg == 0) | (arg == 1)).all():
                passive.append(i)
                notes.append(
                    f"{name} gets no gradient, and holds only 0 and 1: a mask. Declare "
                    f'no_gradient = ("{name}",) to say so.'
                )
            else:
                findings.append(finding)
        elif gradient.shape != arg.shape:
            shapes = f"shape {tuple(gradient.shape)} for {name} of shape {tuple(arg.shape)}"
            if _sums_to(gradient.shape, arg.shape):
                notes.append(
                    f"backward returns a gradient of {shapes}. It works only because PyTorch sums "
                    f"it for you; sum it over the dimensions in which {name} was repeated."
                )
            elif gradient.shape == arg.shape[::-1]:
                text = f"backward returns a gradient of {shapes}: it is transposed."
                findings.append(Finding("transposed", text))
            else:
                text = f"backward returns a gradient of {shapes}. A gradient has its input's shape."
                findings.append(Finding("shape", text))
        elif gradient.dtype != arg.dtype and not (gradient.is_complex() or arg.is_complex()):
            text = (
                f"backward returns {_kind_of(gradient)} for {name} of {_kind_of(arg)}. Make new "
                f"tensors with torch.zeros_like({name}) or dtype={name}.dtype."
            )
            findings.append(Finding("dtype", text))
    if len(passive) == len(case.passive) + len(case.floats) and not findings:
        findings.append(Finding("no gradient", "backward returns no gradient for any input."))
    return replace(case, passive=tuple(passive)), findings, notes


def _none_for(case: Case, position: int, gave_none: bool) -> Finding | None:
    """What is wrong with None for this input; nothing where no output depends on it."""
    slopes = slopes_of(case, position)
    size = slopes.central[slopes.smooth].abs()
    if not (size > case.atol).any():
        return None
    name = case.names[position]
    text = f"backward returns None for {name}, on which the output depends: its numerical gradient "
    text += f"is as large as {size.max():.4g}. "
    if gave_none:
        return Finding("no gradient", text + "Is the `return` of backward missing?")
    text += f'Return it, or declare that there is none by design: no_gradient = ("{name}",).'
    return Finding("no gradient", text)


def _parameters_left_out(case: Case) -> list[str]:
    """A note where a module is an argument: its parameters are no inputs of the Function."""
    notes = []
    for name, arg in zip(case.names, case.args, strict=False):
        if isinstance(arg, torch.nn.Module):
            left = [key for key, value in arg.named_parameters() if value.grad is None]
            if left:
                notes.append(
                    f"{', '.join(f'{name}.{key}' for key in left)} cannot get a gradient through "
                    "this Function: a module's parameters are not among its inputs. Pass the "
                    "tensors as arguments."
                )
    return notes


def _shown(value: Any) -> str:
    """A number or a short text as it is; of anything else, its type."""
    text = repr(value)
    if isinstance(value, bool | int | float | complex | str) and len(text) <= 20:
        return text
    return f"a value of type {type(value).__name__}"


def _sums_to(shape: torch.Size, target: torch.Size) -> bool:
    try:
        return torch.broadcast_shapes(shape, target) == shape
    except RuntimeError:
        return False


def _other_dtype(case: Case) -> list[str]:
    """A note where forward leaves the dtype or device of float32 inputs, as through NumPy."""
    if any(isinstance(arg, torch.nn.Module) for arg in case.args):
        return []
    args = [
        arg.float() if can_need_grad(arg) and not arg.is_complex() else arg for arg in case.args
    ]
    try:
        with users_code("on float32 inputs", "float32"):
            output = case.outputs(*args)[0]
    except Crash as crash:
        return [f"With float32 inputs, it fails: {crash.told}"]
    given = args[case.floats[0]]
    if given.is_complex() or output.is_complex():
        return []
    if (output.dtype, output.device) == (given.dtype, given.device):
        return []
    return [
        f"Given {_kind_of(given)}, forward returns {_kind_of(output)}: make it the same, "
        "with .to(input)."
    ]


def _kind_of(tensor: torch.Tensor) -> str:
    where = "" if tensor.device.type == "cpu" else f" on {tensor.device}"
    return f"{str(tensor.dtype).removeprefix('torch.')}{where}"

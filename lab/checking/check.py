"""Is this backward the derivative of this forward? One verdict on one Function, in words.

PyTorch's `gradcheck` and `gradgradcheck` decide. What is added here is the choice of inputs, what
those two do not look at (edits, state, order of calls), and the explanation: which gradient is
wrong, where, by how much, and what the usual cause is.

A Function may declare, as static methods and attributes of its class, all of them optional:

    sample_inputs()    a list of tuples of arguments, where the formula is defined and smooth
    kink_inputs()      the same, where it is not differentiable
    surrogate(*args)   the function that backward is the derivative of, on purpose
    mistake = "kind"   wrong, on purpose; the kind of finding expected
"""

from __future__ import annotations

import inspect
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import torch

from lab.checking.probes import (
    distance_of_surrogate,
    first_derivative,
    first_look,
    kinks_of,
    not_deterministic,
    second_derivative,
    under_torch_func,
    used_twice,
)
from lab.checking.samples import Case, samples_of
from lab.checking.users_code import Crash
from lab.checking.verdict import Finding, Verdict
from lab.errors import UserError, one_line, users_lines


def check_function(
    target: Any, *, device: str = "cpu", seed: int = 0, eps: float = 1e-6, atol: float = 1e-4
) -> Verdict:
    """Check one Function and say what was found; a fault in the Function is told, never raised.

    Args:
        target: a subclass of `torch.autograd.Function`, or a callable that applies one.
        device: where the inputs lie.
        seed: of the random inputs.
        eps: step of the finite differences.
        atol: allowed difference between backward and the numerical gradient, beside 1e-3 of the
            latter.

    >>> from functions import MyReLU
    >>> verdict = check_function(MyReLU)
    >>> verdict.verdict, verdict.as_declared
    ('exact', True)
    >>> verdict.kinks[0].backward, verdict.kinks[0].relu
    (1.0, 0.0)
    """
    if getattr(target, "__name__", "") == "apply":
        target = getattr(target, "__self__", target)
    verdict = Verdict(getattr(target, "__name__", type(target).__name__))
    verdict.mistake = getattr(target, "mistake", None)
    if verdict.mistake is not None:
        verdict.declared = "wrong"
    elif hasattr(target, "surrogate"):
        verdict.declared = "surrogate"
    reason = _why_it_cannot_run(target)
    if reason:
        verdict.verdict = "cannot run"
        verdict.findings.append(reason)
        return verdict
    cuda = [torch.device(device)] if torch.device(device).type == "cuda" else []
    with torch.random.fork_rng(cuda), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the findings say it better
        torch.manual_seed(seed)
        try:
            _check(verdict, target, device, eps, atol)
        except Crash as crash:
            verdict.verdict = "cannot run" if crash.kind == "crash" else "wrong"
            verdict.findings.append(_explain_crash(crash))
            verdict.users_lines = users_lines(crash.error)
    return verdict


def attempt(check: Callable[..., Verdict], target: Any, **how: Any) -> Verdict:
    """`check(target, **how)`, or if that fails itself a verdict that says so, never as declared.

    So one target ends neither a table of many nor a watch; the verdict holds the whole traceback.

    Args:
        check: `check_function`, or `lab.course.grading.grade`.
        target: what it checks; its `__name__` or `name` is that of the verdict.
        how: for `check`.

    Raises:
        UserError: whatever `check` says of the command.

    >>> attempt(lambda target: 1 / 0, len).findings[0].text
    'The check itself failed, no verdict on this one: ZeroDivisionError: division by zero'
    """
    try:
        return check(target, **how)
    except UserError:
        raise
    except (Exception, SystemExit) as error:  # reported in full, and the exit code is not 0
        named = getattr(target, "name", type(target).__name__)
        text = f"The check itself failed, no verdict on this one: {one_line(error)}"
        lines = "".join(traceback.format_exception(error))
        return Verdict(
            getattr(target, "__name__", named),
            "cannot run",
            findings=[Finding("check failed", text)],
            users_lines=lines,
        )


def _check(verdict: Verdict, target: Any, device: str, eps: float, atol: float) -> None:
    """Run every check on every sample, and stop after the first sample that shows a fault."""
    cases = [Case(target, args, eps, atol) for args in samples_of(target, device)]
    if not hasattr(target, "sample_inputs") and len(cases) > 1:
        # Guessed shapes, and forward may take one that was never meant, as for a bias.
        meant = [c for c in cases if "shape" not in (f.kind for f in first_look(c, []))]
        cases = meant or cases
    verdict.inputs = [case.describe() for case in cases]
    for case in cases:
        verdict.findings += first_look(case, verdict.notes)
        if not verdict.findings:
            verdict.findings += not_deterministic(case)
        if verdict.findings and verdict.kinds != ["edits grad_output"]:
            break
        error, findings, kinks = first_derivative(case)
        verdict.largest_error = max(error, verdict.largest_error or 0.0)
        verdict.findings += findings
        verdict.kinks += kinks
        if kinks:
            verdict.verdict = "kink"
        if not findings:
            verdict.findings += used_twice(case)
        if not findings and not kinks:  # to second order it has a meaning only where the first is
            verdict.second_derivative, findings = second_derivative(case)
            verdict.findings += findings
        if verdict.findings:
            break
    if verdict.findings:
        verdict.verdict = "wrong"
    elif verdict.declared == "surrogate":
        verdict.verdict = "surrogate"
        verdict.largest_error, note = distance_of_surrogate(cases)
        verdict.notes.append(note)
    if verdict.largest_error is None:
        return  # backward could not be run
    more = kinks_of(target, cases[0], device)
    verdict.kinks += [kink for kink in more if kink not in verdict.kinks]
    verdict.vmap, verdict.vmap_reason, findings = under_torch_func(cases[0])
    if findings:
        verdict.verdict = "wrong"
        verdict.findings += findings


def _why_it_cannot_run(target: Any) -> Finding | None:
    if isinstance(target, torch.autograd.Function):
        return _not_static(type(target).__name__, "This is an instance of a Function.")
    if not inspect.isclass(target):
        if inspect.isfunction(target) or inspect.ismethod(target):
            return None  # it may well apply one
        what = getattr(target, "__name__", f"an object of type {type(target).__name__}")
        return Finding("no Function", f"{what} is no torch.autograd.Function.")
    if not issubclass(target, torch.autograd.Function):
        hint = " Check the Function that it calls." if issubclass(target, torch.nn.Module) else ""
        return Finding("no Function", f"{target.__name__} is no torch.autograd.Function.{hint}")
    base = torch.autograd.Function
    if target.forward is base.forward:
        return Finding("no forward", "There is no forward: nothing to differentiate.")
    if target.backward is base.backward and target.vjp is base.vjp:
        return Finding(
            "no backward",
            "There is no backward: add a static method backward(ctx, grad_output) that returns one "
            "gradient for each input of forward.",
        )
    for method in ("forward", "setup_context", "backward", "vjp"):
        if not isinstance(inspect.getattr_static(target, method), staticmethod):
            return _not_static(target.__name__, f"{method} is not static.")
    if hasattr(target, "surrogate") and not callable(target.surrogate):
        return Finding(
            "declaration", "surrogate: a function, the one that backward differentiates."
        )
    return None


def _not_static(name: str, what: str) -> Finding:
    return Finding(
        "not static",
        f"{what} The methods of a Function stand under @staticmethod, and it is used as "
        f"{name}.apply(x), never {name}()(x). PyTorch says 'legacy autograd function with "
        "non-static forward method' to both mistakes.",
    )


def _explain_crash(crash: Crash) -> Finding:
    message = str(crash.error).strip()
    if isinstance(crash.error, NotImplementedError) and not message:  # PyTorch's has one
        return Finding("not written", f"Not written yet: NotImplementedError, {crash.doing}.")
    if message.startswith("Legacy autograd function"):
        return _not_static("MyFunction", "A method is not static, or an instance is called.")
    if isinstance(crash.error, UserError):
        return Finding("declaration", message)
    return Finding(crash.kind, crash.told)

"""Whether an answer to an exercise is right, and if not, what is wrong with it, in words.

The solution holds all that grading needs: the right answer, on its class the declarations of
`lab.checking.check` (samples, kinks, surrogate), and below it, as subclasses, typical wrong
answers. The docstring of each is the sentence for a learner whose answer gives the same numbers.

A class that declares `second_derivative_wanted = True` accepts no `once_differentiable`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch

from lab.checking.check import check_function
from lab.checking.numbers import element_text, gradients
from lab.checking.samples import Case, declared_inputs
from lab.checking.targets import functions_in, module_of_file
from lab.checking.users_code import Crash, users_code
from lab.checking.verdict import Finding, Verdict
from lab.course.exercise import Exercise
from lab.errors import UserError, users_lines

DECLARATIONS = ("sample_inputs", "kink_inputs", "surrogate", "mistake")


def grade(exercise: Exercise, **how: Any) -> Verdict:
    """Check the learner's answer with `check_function`, and compare it with the solution.

    Args:
        exercise: the code in its file is run.
        how: device, seed, eps and atol of `check_function`.

    Returns:
        A verdict that is `as_declared` when the exercise is solved. Its `verdict` is "not started"
        where the file still raises NotImplementedError.

    Raises:
        UserError: there is no such file.
    """
    if not exercise.file.is_file():
        raise UserError(f"{exercise.file}: no such file")
    right, *mistakes = functions_in(module_of_file(exercise.solution))
    try:
        return _grade(_answer(exercise, right), right, mistakes, how)
    except Crash as crash:
        findings, lines = [Finding("crash", crash.told)], users_lines(crash.error)
        return Verdict(right.__name__, "cannot run", findings=findings, users_lines=lines)


def _answer(exercise: Exercise, right: Any) -> Any:
    """The learner's methods under the solution's declarations: nobody sets their own test."""
    with users_code("when the file is run"):
        defined = {function.__name__: function for function in _functions_of(exercise)}
        if right.__name__ not in defined:
            raise UserError(f"This file defines no torch.autograd.Function named {right.__name__}.")
    answer = defined[right.__name__]
    body = {name: value for name, value in vars(answer).items() if name not in DECLARATIONS}
    body |= {name: vars(right)[name] for name in DECLARATIONS if name in vars(right)}
    return type(answer.__name__, answer.__bases__, body)


def _functions_of(exercise: Exercise) -> list[type]:
    return functions_in(module_of_file(exercise.file))


def _grade(answer: Any, right: Any, mistakes: list[type], how: dict[str, Any]) -> Verdict:
    verdict = check_function(answer, **how)
    if verdict.kinds == ["not written"]:
        verdict.verdict = "not started"
    if verdict.verdict in ("not started", "cannot run"):
        return verdict
    device = how.get("device", "cpu")
    with torch.random.fork_rng([]):
        torch.manual_seed(how.get("seed", 0))
        samples = declared_inputs(right.sample_inputs, "sample_inputs()", device)
        kinks = []
        if hasattr(right, "kink_inputs"):
            kinks = declared_inputs(right.kink_inputs, "kink_inputs()", device)
    changed = _changed_forward(answer, right, samples)
    found = changed or verdict.findings or _missing(answer, right, verdict, samples, kinks)
    if not found:
        return verdict
    # One thing at a time: the first fault is often the cause of the others.
    first = found[0]
    typical = [] if changed else _recognised(answer, mistakes, samples + kinks)
    if typical:
        first = replace(first, text=first.text.removesuffix(first.hint).strip(), hint="")
    if changed or typical or len(found) > 1:
        verdict.users_lines = ""  # they belong to another finding
    verdict.verdict, verdict.findings = "wrong", [*typical, first]
    return verdict


def _changed_forward(answer: Any, right: Any, samples: list[tuple]) -> list[Finding]:
    for args in samples:
        (mine, after), (wanted, wanted_after) = (_call(f, args) for f in (answer, right))
        if not isinstance(mine, torch.Tensor):
            return [Finding("no tensor", "forward returns no tensor. Is a `return` missing?")]
        if mine.shape != wanted.shape or not torch.allclose(mine.to(wanted), wanted):
            text = "forward no longer computes the formula of the exercise."
            return [Finding("another forward", text)]
        if not all(map(torch.allclose, after, wanted_after)):
            text = (
                "forward returns the right numbers in a new tensor. This exercise asks you to "
                "write them into x, and to return x."
            )
            return [Finding("not in place", text)]
    return []


def _call(function: Any, args: tuple) -> tuple[Any, list[torch.Tensor]]:
    """What forward returns, and its arguments afterwards."""
    copies = [arg.clone() for arg in args]
    with users_code("in forward"):
        return function.apply(*copies), copies


def _waves(output: torch.Tensor) -> torch.Tensor:
    """A grad_output with both signs and many sizes, in no order."""
    return 2 * torch.arange(1, output.numel() + 1).to(output).sin().reshape(output.shape)


def _recognised(answer: Any, mistakes: list[type], inputs: list[tuple]) -> list[Finding]:
    """The typical wrong answer that gives the same numbers as this one on all inputs."""
    mine = [_numbers(answer, args) for args in inputs]
    if not any(mine):  # backward raises everywhere
        return []
    for mistake in mistakes:
        numbers = [_numbers(mistake, args) for args in inputs]
        if all(map(_close, mine, numbers)):
            kind = re.sub("(?<!^)([A-Z])", r" \1", mistake.__name__).lower()
            return [Finding(kind, " ".join((mistake.__doc__ or "").split()))]
    return []


def _close(some: list[torch.Tensor], others: list[torch.Tensor]) -> bool:
    return len(some) == len(others) and all(
        torch.allclose(a, b, equal_nan=True) for a, b in zip(some, others, strict=True)
    )


def _numbers(
    function: Any, args: tuple, grad_of: Callable[[torch.Tensor], torch.Tensor] = _waves
) -> list[torch.Tensor]:
    """The gradients for one grad_output; an empty list where backward raises."""
    case = Case(function, args, 0, 0)
    leaves = case.leaves()
    try:
        with users_code("in backward"):
            outputs = case.outputs(*leaves)
            return gradients(case, outputs, leaves, [grad_of(output) for output in outputs])
    except Crash:
        return []


def _missing(
    answer: Any, right: Any, verdict: Verdict, samples: list[tuple], kinks: list[tuple]
) -> list[Finding]:
    """What an answer with right gradients still lacks."""
    if verdict.verdict != "surrogate" and verdict.notes:
        return [Finding("not quite", note) for note in verdict.notes]
    if getattr(right, "second_derivative_wanted", False) and verdict.second_derivative != "right":
        end = "is refused" if verdict.second_derivative == "refused" else "raises an error"
        text = f"The first derivative is right. This exercise asks for the second too, and it {end}"
        return [Finding("second derivative", f"{text}.")]
    found = [finding for args in kinks for finding in _at_kink(answer, right, args)]
    for args in samples:
        found += _unneeded(Case(answer, args, 0, 0), Case(right, args, 0, 0))
    return found


def _at_kink(answer: Any, right: Any, args: tuple) -> list[Finding]:
    case = Case(answer, args, 0, 0)
    mine, wanted = (_numbers(function, args, torch.ones_like) for function in (answer, right))
    for position, a, b in zip(case.floats, mine, wanted, strict=True):
        differ = ~torch.isclose(a, b).flatten()
        if differ.any():
            i = int(differ.int().argmax())
            text = (
                f"At {element_text(case, position, i)}, a point without a derivative, backward "
                f"returns {a.flatten()[i]:.4g} for a grad_output of 1; this exercise asks for "
                f"{b.flatten()[i]:.4g}."
            )
            return [Finding("kink", text)]
    return []


def _unneeded(answer: Case, right: Case) -> list[Finding]:
    """A gradient that nobody needs, and that the solution therefore leaves out."""
    floats = answer.floats
    counts = range(1, len(floats))
    for needed in itertools.chain(*(itertools.combinations(floats, n) for n in counts)):
        with users_code("where not every input needs a gradient"):
            computed = _computed(answer, needed)
        for i in sorted(computed - _computed(right, needed)):
            names = " and ".join(answer.names[j] for j in needed)
            text = (
                f"The gradients are right. But where only {names} needs one, backward also "
                f"computes the gradient for {answer.names[i]}, which nobody uses. Return None "
                "there; check ctx.needs_input_grad."
            )
            return [Finding("unneeded gradient", text)]
    return []


def _computed(case: Case, needed: Sequence[int]) -> set[int]:
    """Positions for which backward returns a gradient."""
    (output,) = case.outputs(*case.leaves(needed))
    node: Any = output.grad_fn
    returned = node.apply(torch.ones_like(output))
    returned = returned if isinstance(returned, tuple) else (returned,)
    return {i for i, gradient in enumerate(returned) if gradient is not None}

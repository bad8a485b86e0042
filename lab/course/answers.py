"""Whether an answer is right, and if not, what is wrong with it. This runs the answer: in a child.

The solution holds all that is needed: the right answer, inputs to try it on, what the task asks for
beyond right gradients, and typical wrong answers. The docstring of a wrong answer is the sentence
for a learner whose answer gives the same numbers.
"""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from lab.checking.check import check_function
from lab.checking.numbers import gradients, index_text
from lab.checking.samples import Case, can_need_grad, declared_inputs
from lab.checking.targets import functions_in, module_of_file
from lab.checking.users_code import Crash, users_code
from lab.checking.verdict import Finding, Verdict
from lab.course.exercise import Exercise
from lab.errors import UserError, users_lines

DECLARATIONS = ("sample_inputs", "kink_inputs", "surrogate", "no_gradient", "mistake")


@dataclass(frozen=True)
class Task:
    """What a solution says about its exercise.

    Args:
        right: the right answer: a Function, or a plain function.
        mistakes: typical wrong answers.
        asks_for: what the task asks for beyond right values and gradients.
        samples: arguments to try an answer on, in float64.
        kinks: arguments where the gradient must be the solution's, though there is no derivative.
    """

    right: Any
    mistakes: list[Any]
    asks_for: tuple[str, ...]
    samples: list[tuple]
    kinks: list[tuple]

    @property
    def has_gradient(self) -> bool:
        return inspect.isclass(self.right) or "gradient" in self.asks_for


@dataclass(frozen=True)
class Question:
    """One thing in which an answer must agree with the solution.

    Args:
        kind: of the finding if it does not.
        text: the sentence then; `{}` stands for the first difference.
        doing: where the answer raises, if it does.
        numbers: the tensors to compare, from a Function or a plain function.
    """

    kind: str
    text: str
    doing: str
    numbers: Callable[[Any], list[Any]]


def judge(
    exercise: Exercise, secret: int, *, device: str = "cpu", seed: int = 0, **how: Any
) -> tuple[Verdict, list[float]]:
    """Check the learner's answer and compare it with the solution.

    Args:
        exercise: the code in its file is run.
        secret: for `numbers_for_proof`.
        device: where the inputs lie.
        seed: of the random inputs.
        how: eps and atol of `check_function`.

    Returns:
        A verdict that is `as_declared` when the exercise is solved, and then the numbers that prove
        it.
    """
    torch.set_num_threads(1)  # the tensors are small, and a class is graded on all cores
    task = task_of(exercise.solution, device, seed)
    try:
        answer = _answer(exercise, task)
        verdict = _judged(exercise.defines, answer, task, {"device": device, "seed": seed, **how})
        return verdict, numbers_for_proof(answer, task, secret) if verdict.as_declared else []
    except Crash as crash:
        findings, lines = [Finding(crash.kind, crash.told)], users_lines(crash.error)
        return Verdict(exercise.defines, "cannot run", findings=findings, users_lines=lines), []


def task_of(solution: Path, device: str, seed: int) -> Task:
    """Load a solution, and draw its samples."""
    module, name = module_of_file(solution), solution.stem[4:]
    right: Any
    declared: Any
    if hasattr(module, name):
        right, declared = getattr(module, name), module
        mistakes = [f for key, f in vars(module).items() if key.startswith(f"{name}_")]
    else:
        right, *mistakes = functions_in(module)
        declared = right
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        samples, kinks = (
            declared_inputs(getattr(declared, method), f"{method}()", device)
            if hasattr(declared, method)
            else []
            for method in ("sample_inputs", "kink_inputs")
        )
    return Task(right, mistakes, getattr(declared, "asks_for", ()), samples, kinks)


def numbers_for_proof(function: Any, task: Task, secret: int) -> list[float]:
    """Outputs or gradients on inputs that nobody could know beforehand.

    They prove a verdict: code that makes this process report a false one would have to compute
    right gradients all the same. The inputs are moved a little, away from every kink. An answer
    that fails in float64 is asked in float32.
    """

    def random_like(tensor: torch.Tensor) -> torch.Tensor:
        return torch.rand(tensor.shape, dtype=torch.float64).to(tensor)

    proof: list[float] = []
    for args in task.samples:
        numbers = None
        for dtype in (torch.float64, torch.float32):
            torch.manual_seed(secret + len(proof))
            moved = [arg + 1e-2 * random_like(arg) if can_need_grad(arg) else arg for arg in args]
            typed = _with_dtype(moved, dtype)
            question = partial(_gradients, typed, random_like)
            numbers = numbers or _tried(
                question if task.has_gradient else partial(_values, typed), function
            )
        proof += torch.cat([tensor.flatten() for tensor in numbers or []]).tolist()
    return proof


# ---- The answer ---------------------------------------------------------------------------------


def _answer(exercise: Exercise, task: Task) -> Any:
    """What the learner wrote, with the declarations of the solution: nobody sets their own test."""
    name = exercise.defines
    with users_code("when the file is run"):
        answer: Any = getattr(module_of_file(exercise.file), name, None)
    kind = "torch.autograd.Function" if inspect.isclass(task.right) else "function"
    if inspect.isclass(answer) and issubclass(answer, torch.nn.Module):
        text = f"{name} is an nn.Module. Write class {name}(torch.autograd.Function)."
        raise Crash(UserError(text), "when the file is run", "no Function")
    if not callable(answer) or inspect.isclass(answer) != inspect.isclass(task.right):
        text = f"This file defines no {kind} named {name}."
        raise Crash(UserError(text), "when the file is run", f"no {kind.rpartition('.')[2]}")
    if not inspect.isclass(answer):
        answer.sample_inputs = lambda: task.samples
        return answer
    for declaration in DECLARATIONS:
        for cls in answer.__mro__:
            if cls.__module__ == answer.__module__ and declaration in vars(cls):
                delattr(cls, declaration)
        if declaration in vars(task.right):
            setattr(answer, declaration, vars(task.right)[declaration])
    return answer


def _judged(name: str, answer: Any, task: Task, how: dict[str, Any]) -> Verdict:
    verdict = check_function(answer, **how) if task.has_gradient else Verdict(name)
    remark = ""
    if verdict.kinds == ["second derivative"] and not _asks_for_second(task):
        remark = f"This exercise does not ask for a second derivative. {verdict.findings[0].text}"
    elif single := _right_in_float32(answer, task, verdict):
        task = single
        verdict.second_derivative = _second_state(answer, task)
        remark = (
            "The gradients are right in float32, in which the networks here are trained. In "
            f"float64: {verdict.findings[0].text}"
        )
    if remark:
        verdict.notes.append(remark)
        verdict.verdict = "surrogate" if verdict.declared == "surrogate" else "exact"
        verdict.findings, verdict.users_lines = [], ""
    return _compared(answer, task, verdict)


def _asks_for_second(task: Task) -> bool:
    return not {"second_derivative", "once_differentiable"}.isdisjoint(task.asks_for)


def _right_in_float32(answer: Any, task: Task, verdict: Verdict) -> Task | None:
    """The task in float32, if an answer is right there and only a dtype stops it in float64."""
    stopped = verdict.verdict == "cannot run" or set(verdict.kinds) == {"dtype"}
    if not stopped or not task.has_gradient or "second_derivative" in task.asks_for:
        return None
    for question in [partial(_values, args) for args in task.samples]:
        mine = _tried(question, answer)
        if mine is None or _difference(mine, question(task.right)):
            return None
    samples, kinks = (
        [_with_dtype(args, torch.float32) for args in some] for some in (task.samples, task.kinks)
    )
    for question in [partial(_gradients, args, _waves) for args in samples + kinks]:
        if not _alike(_tried(question, answer), _tried(question, task.right)):
            return None
    return replace(task, samples=samples, kinks=kinks)


def _second_state(answer: Any, task: Task) -> str:
    """Whether backward leaves a graph, in the words of `Verdict.second_derivative`."""
    case = Case(answer, _copies(task.samples[0]), 0, 0)
    leaves = case.leaves()
    inputs = [leaves[i] for i in case.floats]
    try:
        with users_code("in a second backward"):
            outputs = case.outputs(*leaves)
            grads = [torch.ones_like(output).requires_grad_() for output in outputs]
            first = torch.autograd.grad(outputs, inputs, grads, create_graph=True)
    except Crash:
        return "raises"
    return "right" if any(g.requires_grad for g in first) else "no graph"


# ---- Beside the solution ------------------------------------------------------------------------


def _compared(answer: Any, task: Task, verdict: Verdict) -> Verdict:
    """The verdict, with what the comparison with the solution adds to it."""
    if "second_derivative" in task.asks_for:  # refusing it is no way out here
        for finding in verdict.findings:
            finding.text = re.sub(r", or refuse: @once_differentiable[^.]*", "", finding.text)
    ran = verdict.verdict != "cannot run"
    changed = _differences(_about_values(answer, task), answer, task) if ran else []
    found = changed or verdict.findings or _second_derivative(task, verdict)
    found = found or _differences(_about_gradients(answer, task), answer, task)
    typical = _recognised(answer, task) if found else []
    if not found or not (ran or typical):
        return verdict
    # One thing at a time: the first fault is often the cause of the others.
    first = replace(found[0], text=found[0].text.removesuffix(found[0].hint).strip(), hint="")
    if changed or typical or len(found) > 1:
        verdict.users_lines = ""  # they belong to another finding
    verdict.verdict = "wrong"
    verdict.findings = [*typical, first] if typical else found[:1]
    return verdict


def _differences(questions: Iterator[Question], answer: Any, task: Task) -> list[Finding]:
    """The first question in which the answer differs from the solution, as a finding."""
    for question in questions:
        with users_code(question.doing):
            mine = question.numbers(answer)
        if difference := _difference(mine, question.numbers(task.right)):
            return [Finding(question.kind, question.text.format(difference))]
    return []


def _difference(mine: list[Any], right: list[Any]) -> str:
    """What is different first, in words; an empty text if nothing is."""
    if len(mine) != len(right):
        return f"it returns {len(mine)} values, expected {len(right)}"
    for a, b in zip(mine, right, strict=True):
        if not isinstance(a, torch.Tensor):
            missing = " (is a `return` missing?)" * (a is None)
            return f"it returns {'None' if a is None else type(a).__name__}, no tensor{missing}"
        if a.shape != b.shape:
            return f"the result has shape {tuple(a.shape)}, expected {tuple(b.shape)}"
        if a.dtype != b.dtype:
            return f"the result has dtype {a.dtype}, expected {b.dtype}"
        wrong = ~_is_close(a, b).flatten()
        if wrong.any():
            i = int(wrong.int().argmax())
            which = f"element {index_text(a.shape, i)} of the result" if a.dim() else "the result"
            return f"{which} is {a.flatten()[i].item():.4g}, expected {b.flatten()[i].item():.4g}"
    return ""


def _second_derivative(task: Task, verdict: Verdict) -> list[Finding]:
    state = verdict.second_derivative
    if not _asks_for_second(task) or state == "right":
        return []
    text = "The first derivative is right. This exercise asks for the second, too, but "
    if "once_differentiable" in task.asks_for:
        if state == "refused":
            return []
        text = "The first derivative is right. The second can't be, so refuse it in plain words, "
        text += "with @once_differentiable on the line below @staticmethod; as it is, "
    text += {"refused": "backward refuses it.", "raises": "a second backward raises an error."}.get(
        state, "the result of backward has no graph to differentiate."
    )
    return [Finding("second derivative", text)]


def _about_values(answer: Any, task: Task) -> Iterator[Question]:
    who = "forward" if inspect.isclass(answer) else answer.__name__
    for args in task.samples:
        given = Case(answer, args, 0, 0).describe()
        text = f"{who} does not compute what the exercise asks for: for {given}, {{}}."
        yield Question("another forward", text, f"in {who}", partial(_values, args))
        if inspect.isclass(answer):
            text = (
                "forward returns the right numbers, but not in x. Write them into x and return x."
            )
            yield Question("not in place", text, f"in {who}", partial(_arguments_afterwards, args))


def _about_gradients(answer: Any, task: Task) -> Iterator[Question]:
    for args in task.kinks:
        text = "At a point without a derivative, backward gives another number than this exercise "
        text += "asks for: {}."
        yield Question("kink", text, "in backward", partial(_gradients, args, _waves))
    for args in task.samples if inspect.isclass(answer) else ():
        text = "A gradient has another shape than its input: {}. PyTorch sums it for you; in this "
        text += "course sum it in backward."
        yield Question("wrong shape", text, "in backward", partial(_shapes, args))
    for asked, args in itertools.product(task.asks_for, task.samples):
        case = Case(answer, args, 0, 0)
        if asked == "needs_input_grad":
            for needed in _subsets(case.floats):
                names = " and ".join(case.names[i] for i in needed)
                text = f"The gradients are right. But where only {names} needs one, backward also "
                text += "computes others, which nobody uses. Return None for them; check "
                text += "ctx.needs_input_grad."
                doing = f"where only {names} needs a gradient"
                yield Question("unneeded gradient", text, doing, partial(_computed, args, needed))
        elif asked == "jvp":
            text = "torch.func.jvp gives a wrong derivative along a tangent: {}."
            yield Question("wrong jvp", text, "under torch.func.jvp", partial(_jvp, args))
        elif asked == "vmap":
            for dim in (0, -1):
                name = f"torch.func.vmap with in_dims={dim}"
                text = f"{name} does not give the numbers of one call for each element: {{}}."
                yield Question("wrong vmap", text, f"under {name}", partial(_vmap, args, dim))
        elif asked == "fake":
            for dtype in (torch.float64, torch.float32):
                text = f"The fake does not fit the operator, for a tensor of {dtype}: {{}}."
                numbers = partial(_fake, _with_dtype(args, dtype))
                yield Question("wrong fake", text, "in the fake", numbers)


def _recognised(answer: Any, task: Task) -> list[Finding]:
    """The typical wrong answer that gives the same numbers as this one on all inputs."""
    mine = _all_numbers(answer, task)
    if not any(mine) or _all_alike(mine, _all_numbers(task.right, task)):
        return []
    for mistake in task.mistakes:
        if _all_alike(mine, _all_numbers(mistake, task)):
            name = mistake.__name__.removeprefix(f"{getattr(task.right, '__name__', '')}_")
            kind = re.sub("(?<!^)([A-Z])", r" \1", name).replace("_", " ").lower()
            return [Finding(kind, " ".join((mistake.__doc__ or "").split()))]
    return []


# ---- The numbers of a Function or a plain function ----------------------------------------------


def _all_numbers(function: Any, task: Task) -> list[list[Any] | None]:
    """All numbers by which one answer differs from another; None for what raises."""
    questions: list[Callable[[Any], list[Any]]] = []
    if task.has_gradient:
        questions += [partial(_gradients, args, _waves) for args in task.samples + task.kinks]
    else:
        questions += [partial(_values, args) for args in task.samples]
    questions += [question.numbers for question in _about_gradients(function, task)]
    return [_tried(question, function) for question in questions]


def _tried(question: Callable[[Any], list[Any]], function: Any) -> list[Any] | None:
    try:
        with users_code("when it is compared"):
            return question(function)
    except Crash:
        return None


def _all_alike(some: list[list[Any] | None], others: list[list[Any] | None]) -> bool:
    return len(some) == len(others) and all(map(_alike, some, others))


def _alike(some: list[Any] | None, others: list[Any] | None) -> bool:
    if some is None or others is None:
        return some is others
    return len(some) == len(others) and all(
        isinstance(a, torch.Tensor)
        and isinstance(b, torch.Tensor)
        and a.shape == b.shape
        and bool(_is_close(a, b.to(a)).all())
        for a, b in zip(some, others, strict=True)
    )


def _is_close(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    coarse = a.dtype == torch.float32
    return torch.isclose(a, b, *((1e-3, 1e-4) if coarse else (1e-5, 1e-8)), equal_nan=True)


def _values(args: tuple, function: Any) -> list[Any]:
    return _outputs(function, _copies(args))


def _arguments_afterwards(args: tuple, function: Any) -> list[Any]:
    copies = _copies(args)
    _outputs(function, copies)
    return [copy for copy in copies if isinstance(copy, torch.Tensor)]


def _gradients(
    args: tuple, grad_of: Callable[[torch.Tensor], torch.Tensor], function: Any
) -> list[Any]:
    case = Case(function, _copies(args), 0, 0)
    leaves = case.leaves()
    outputs = case.outputs(*leaves)
    grads = [n * grad_of(output) for n, output in enumerate(outputs, 1)]  # no two are alike
    return gradients(case, outputs, leaves, grads)


def _shapes(args: tuple, function: Any) -> list[Any]:
    """Zeros with the shapes of the gradients that backward itself returns."""
    case = Case(function, args, 0, 0)
    returned = _returned(case, case.floats)
    pairs = [(returned[i], args[i]) for i in case.floats]
    return [torch.zeros((arg if gradient is None else gradient).shape) for gradient, arg in pairs]


def _computed(args: tuple, needed: list[int], function: Any) -> list[Any]:
    """Whether backward returns a gradient, for each input."""
    case = Case(function, args, 0, 0)
    returned = _returned(case, needed)[: len(args)]
    return [torch.tensor([gradient is not None for gradient in returned])]


def _returned(case: Case, needed: list[int]) -> list[torch.Tensor | None]:
    """What backward itself returns, before PyTorch completes it."""
    outputs = _outputs(case.target, _copies(case.leaves(needed)))
    node: Any = next(output.grad_fn for output in outputs if can_need_grad(output))
    with torch.no_grad():  # as in a backward that is not to be differentiated
        returned = node.apply(*map(torch.ones_like, outputs))
    return list(returned if isinstance(returned, tuple) else (returned,))


def _jvp(args: tuple, function: Any) -> list[Any]:
    return [torch.func.jvp(function.apply, _copies(args), tuple(map(_waves, args)))[1]]


def _vmap(args: tuple, dim: int, function: Any) -> list[Any]:
    batches = [torch.stack([arg, 2 * arg, arg.flip(-1)], dim) for arg in args]
    return [torch.func.vmap(function.apply, in_dims=dim)(*batches)]


def _fake(args: tuple, function: Any) -> list[Any]:
    """What the function returns for tensors without numbers, filled with zeros."""
    with FakeTensorMode() as mode:
        fakes = [mode.from_tensor(arg) if isinstance(arg, torch.Tensor) else arg for arg in args]
        outputs = _outputs(function, fakes)
    return [torch.zeros(output.shape, dtype=output.dtype) for output in outputs]


def _outputs(function: Any, args: Any) -> list[Any]:
    returned = getattr(function, "apply", function)(*args)
    return list(returned) if isinstance(returned, tuple) else [returned]


def _waves(output: torch.Tensor) -> torch.Tensor:
    """Numbers of both signs and of many sizes, in no order."""
    return 2 * torch.arange(1, output.numel() + 1).to(output).sin().reshape(output.shape)


def _copies(args: Any) -> tuple:
    return tuple(arg.clone() if isinstance(arg, torch.Tensor) else arg for arg in args)


def _with_dtype(args: Any, dtype: torch.dtype) -> tuple:
    return tuple(arg.to(dtype) if can_need_grad(arg) else arg for arg in args)


def _subsets(floats: list[int]) -> list[list[int]]:
    """Every choice of some of the inputs, but not of all."""
    return [list(s) for n in range(1, len(floats)) for s in itertools.combinations(floats, n)]

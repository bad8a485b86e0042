"""Whether an answer is right, and if not, what is wrong with it. This runs the answer: in a child.

The solution holds all that is needed: the right answer, inputs to try it on, what the task asks for
beyond right gradients, and typical wrong answers. The docstring of a wrong answer is the sentence
for a learner whose answer gives the same numbers. All other sentences are in words.toml.
"""

from __future__ import annotations

import inspect
import itertools
import re
import tomllib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from lab.checking.check import check_function
from lab.checking.numbers import gradients, index_text
from lab.checking.samples import Case, can_need_grad, copied, in_float64
from lab.checking.targets import functions_in, module_of_file
from lab.checking.users_code import Crash, users_code
from lab.checking.verdict import Finding, Verdict, say
from lab.course.exercise import Exercise
from lab.errors import UserError, users_lines

DECLARATIONS = ("sample_inputs", "kink_inputs", "surrogate", "no_gradient", "mistake")
_WORDS: dict[str, str] = tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))


@dataclass(frozen=True)
class Task:
    """What a solution says about its exercise.

    Args:
        right: the right answer: a Function, or a plain function.
        mistakes: typical wrong answers.
        asks_for: what the task asks for beyond right values and gradients.
        samples: arguments to try an answer on, in float64.
        kinks: arguments at which forward has no derivative; the gradient must be the solution's.
    """

    right: Any
    mistakes: list[Any]
    asks_for: tuple[str, ...]
    samples: list[tuple]
    kinks: list[tuple]

    @property
    def has_gradient(self) -> bool:
        return inspect.isclass(self.right) or "gradient" in self.asks_for

    @property
    def asks_for_second(self) -> bool:
        return not {"second_derivative", "once_differentiable"}.isdisjoint(self.asks_for)


@dataclass(frozen=True)
class Question:
    """One thing in which an answer must agree with the solution.

    Args:
        kind: of the finding if it does not, and the key of its sentence in words.toml.
        doing: where the answer raises, if it does.
        numbers: the tensors to compare, from a Function or a plain function.
        words: what the sentence names, beside the first difference.
    """

    kind: str
    doing: str
    numbers: Callable[[Any], list[Any]]
    words: dict[str, Any]


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
            [in_float64(args, device) for args in getattr(declared, method, list)()]
            for method in ("sample_inputs", "kink_inputs")
        )
    return Task(right, mistakes, getattr(declared, "asks_for", ()), samples, kinks)


def numbers_for_proof(function: Any, task: Task, secret: int) -> list[float]:
    """Outputs or gradients on inputs that nobody could know beforehand.

    They prove a verdict: code that makes this process report a false one would have to compute
    right gradients all the same. The inputs are moved a little, away from every kink. An answer
    that fails in float64 is asked in float32.
    """

    def random_like(tensor: Tensor) -> Tensor:
        return torch.rand(tensor.shape, dtype=torch.float64).to(tensor)

    proof: list[float] = []
    for args in task.samples:
        numbers: list[Any] = []
        for dtype in (torch.float64, torch.float32):
            torch.manual_seed(secret + len(proof))
            moved = [arg + 1e-2 * random_like(arg) if can_need_grad(arg) else arg for arg in args]
            typed = _with_dtype(moved, dtype)
            numbers = numbers or _tried(_main_numbers(task, typed, random_like), function)
        proof += [n for tensor in numbers for n in tensor.flatten().tolist()]
    return proof


# ---- The answer ---------------------------------------------------------------------------------


def _answer(exercise: Exercise, task: Task) -> Any:
    """What the learner wrote, with the declarations of the solution: nobody sets their own test."""
    name = exercise.defines
    with users_code("when the file is run"):
        answer: Any = getattr(module_of_file(exercise.file), name, None)
    is_class = inspect.isclass(task.right)
    if not callable(answer) or inspect.isclass(answer) != is_class:
        kind = "no Function" if is_class else "no function"
        raise Crash(UserError(_WORDS[kind].format(name=name)), "when the file is run", kind)
    if not is_class:
        answer.sample_inputs = lambda: task.samples
        return answer
    for declaration in DECLARATIONS:
        for cls in answer.__mro__:
            if declaration in vars(cls):
                delattr(cls, declaration)
        if declaration in vars(task.right):
            setattr(answer, declaration, vars(task.right)[declaration])
    return answer


def _judged(name: str, answer: Any, task: Task, how: dict[str, Any]) -> Verdict:
    verdict = check_function(answer, **how) if task.has_gradient else Verdict(name)
    key = ""
    if verdict.kinds == ["second derivative"] and not task.asks_for_second:
        key = "second not asked for"
    elif single := _right_in_float32(answer, task, verdict):
        key, task = "right in float32", single
        graphs = _tried(partial(_graphs, task.samples[0]), answer)
        state = "no graph" if graphs else "raises"
        verdict.second_derivative = "right" if any(graphs) else state
    if key:
        verdict.notes.append(_WORDS[key].format(found=verdict.findings[0].text))
        verdict.verdict = "surrogate" if verdict.declared == "surrogate" else "exact"
        verdict.findings, verdict.users_lines = [], ""
    return _compared(answer, task, verdict)


def _right_in_float32(answer: Any, task: Task, verdict: Verdict) -> Task | None:
    """The task in float32, if an answer is right there and only a dtype stops it in float64."""
    stopped = verdict.verdict == "cannot run" or set(verdict.kinds) == {"dtype"}
    if not stopped or not task.has_gradient or "second_derivative" in task.asks_for:
        return None
    samples, kinks = (
        [_with_dtype(args, torch.float32) for args in some] for some in (task.samples, task.kinks)
    )
    for question in [
        *(partial(_values, args) for args in task.samples),
        *(partial(_gradients, args, _waves) for args in samples + kinks),
    ]:
        if _difference(_tried(question, answer), question(task.right)):
            return None
    return replace(task, samples=samples, kinks=kinks)


# ---- Beside the solution ------------------------------------------------------------------------


def _compared(answer: Any, task: Task, verdict: Verdict) -> Verdict:
    """The verdict, with what the comparison with the solution adds to it."""
    for finding in verdict.findings:  # an answer declares nothing: the solution does
        for part in ("text", "hint"):
            words = getattr(finding, part)
            for advice in ("declare surrogate", "declare no_gradient"):
                words = words.replace(say(advice, name=finding.about), "").strip()
            if "second_derivative" in task.asks_for:  # refusing it is not what this task asks for
                words = re.sub(r", or refuse: @once_differentiable[^.]*", "", words)
            setattr(finding, part, words)
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


def _second_derivative(task: Task, verdict: Verdict) -> list[Finding]:
    state = verdict.second_derivative
    may_refuse = "once_differentiable" in task.asks_for
    if not task.asks_for_second or state == "right" or (state == "refused" and may_refuse):
        return []
    what = _WORDS[state if state in ("refused", "raises") else "no graph"]
    key = "second to refuse" if may_refuse else "second asked for"
    return [Finding("second derivative", _WORDS[key].format(what=what))]


def _differences(questions: Iterator[Question], answer: Any, task: Task) -> list[Finding]:
    """The first question in which the answer differs from the solution, as a finding."""
    for question in questions:
        with users_code(question.doing):
            mine = question.numbers(answer)
        if difference := _difference(mine, question.numbers(task.right)):
            text = _WORDS[question.kind].format(difference=difference, **question.words)
            return [Finding(question.kind, text)]
    return []


def _difference(mine: list[Any], right: list[Any], any_dtype: bool = False) -> str:
    """What is different first, in words; an empty text if nothing is."""
    if len(mine) != len(right):
        return f"it returns {len(mine)} values, expected {len(right)}"
    for a, b in zip(mine, right, strict=True):
        if a is None:
            return "it returns None, not a tensor (is a `return` missing?)"
        if not isinstance(a, Tensor):
            return f"it returns {type(a).__name__}, not a tensor"
        if a.shape != b.shape:
            return f"the result has shape {tuple(a.shape)}, expected {tuple(b.shape)}"
        if a.dtype != b.dtype and not any_dtype:
            return f"the result has dtype {a.dtype}, expected {b.dtype}"
        wrong = ~_is_close(a, b).flatten()
        if wrong.any():
            i = int(wrong.int().argmax())
            which = f"element {index_text(a.shape, i)} of the result" if a.dim() else "the result"
            return f"{which} is {a.flatten()[i].item():.4g}, expected {b.flatten()[i].item():.4g}"
    return ""


def _about_values(answer: Any, task: Task) -> Iterator[Question]:
    who = "forward" if inspect.isclass(answer) else answer.__name__
    for args in task.samples:
        words = {"who": who, "given": Case(answer, args).describe()}
        kind = "another forward" if inspect.isclass(answer) else "another result"
        yield Question(kind, f"in {who}", partial(_values, args), words)
        if inspect.isclass(answer):
            yield Question("not in place", f"in {who}", partial(_edited, args), {})


def _about_gradients(answer: Any, task: Task) -> Iterator[Question]:
    for args in task.kinks:
        yield Question("kink", "in backward", partial(_gradients, args, _waves), {})
    for args in task.samples if inspect.isclass(answer) else ():
        case = Case(answer, args)
        for i in case.floats:
            words = {"name": case.names[i]}
            yield Question("shape", "in backward", partial(_shape, args, i), words)
    for asked, args in itertools.product(task.asks_for, task.samples):
        case = Case(answer, args)
        if asked == "needs_input_grad":
            for needed in _subsets(case.floats):
                names = " and ".join(case.names[i] for i in needed)
                doing, numbers = (
                    f"where only {names} needs a gradient",
                    partial(_shapes, args, needed),
                )
                yield Question("unneeded gradient", doing, numbers, {"names": names})
        elif asked == "jvp":
            yield Question("wrong jvp", "under torch.func.jvp", partial(_jvp, args), {})
        elif asked == "vmap":
            for dim in (0, -1):
                transform = f"torch.func.vmap with in_dims={dim}"
                numbers = partial(_vmap, args, dim)
                yield Question(
                    "wrong vmap", f"under {transform}", numbers, {"transform": transform}
                )
        elif asked == "fake":
            for dtype in (torch.float64, torch.float32):
                numbers = partial(_fake, _with_dtype(args, dtype))
                yield Question("wrong fake", "in the fake", numbers, {"dtype": dtype})


def _recognised(answer: Any, task: Task) -> list[Finding]:
    """The typical wrong answer that gives the same numbers as this one on all inputs."""
    mine = _all_numbers(answer, task)

    def is_like(other: Any) -> bool:
        pairs = zip(mine, _all_numbers(other, task), strict=True)
        return not any(_difference(a, b, any_dtype=True) for a, b in pairs)

    if not any(mine) or is_like(task.right):
        return []
    for mistake in filter(is_like, task.mistakes):
        name = mistake.__name__.removeprefix(f"{getattr(task.right, '__name__', '')}_")
        kind = re.sub("(?<!^)([A-Z])", r" \1", name).replace("_", " ").lower()
        return [Finding(kind, " ".join((mistake.__doc__ or "").split()))]
    return []


# ---- The numbers of a Function or a plain function ----------------------------------------------


def _all_numbers(function: Any, task: Task) -> list[list[Any]]:
    """All numbers by which one answer differs from another."""
    questions = [_main_numbers(task, args) for args in task.samples]
    about = [*_about_values(function, task), *_about_gradients(function, task)]
    questions += [q.numbers for q in about if q.kind != "unneeded gradient"]  # not of its numbers
    return [_tried(question, function) for question in questions]


def _tried(question: Callable[[Any], list[Any]], function: Any) -> list[Any]:
    """The numbers; an empty list if the function raises."""
    with suppress(Crash), users_code("when it is compared"):
        return question(function)
    return []


def _is_close(a: Tensor, b: Tensor) -> Tensor:
    coarse = a.dtype == torch.float32
    return torch.isclose(a, b.to(a), *((1e-3, 1e-4) if coarse else (1e-5, 1e-8)), equal_nan=True)


def _waves(output: Tensor) -> Tensor:
    """Numbers of both signs and of many sizes, in no order."""
    return 2 * torch.arange(1, output.numel() + 1).to(output).sin().reshape(output.shape)


def _main_numbers(
    task: Task, args: tuple, grad_of: Callable[[Tensor], Tensor] = _waves
) -> Callable[[Any], list[Any]]:
    """Gradients; the outputs where the task asks for no gradient."""
    return partial(_gradients, args, grad_of) if task.has_gradient else partial(_values, args)


def _values(args: tuple, function: Any) -> list[Any]:
    returned = getattr(function, "apply", function)(*map(copied, args))
    return list(returned) if isinstance(returned, tuple) else [returned]


def _edited(args: tuple, function: Any) -> list[Any]:
    """The tensors among the arguments as forward leaves them."""
    copies = tuple(map(copied, args))
    getattr(function, "apply", function)(*copies)
    return [copy for copy in copies if isinstance(copy, Tensor)]


def _gradients(args: tuple, grad_of: Callable[[Tensor], Tensor], function: Any) -> list[Any]:
    case = Case(function, args)
    leaves = case.leaves()
    outputs = case.outputs(*leaves)
    grads = [n * grad_of(output) for n, output in enumerate(outputs, 1)]  # no two are alike
    return gradients(case, outputs, leaves, grads)


def _graphs(args: tuple, function: Any) -> list[bool]:
    """Whether what backward returns can be differentiated again, for each input."""
    case = Case(function, args)
    leaves = case.leaves()
    outputs = case.outputs(*leaves)
    grads = [torch.ones_like(output).requires_grad_() for output in outputs]
    inputs = [leaves[i] for i in case.floats]
    return [g.requires_grad for g in torch.autograd.grad(outputs, inputs, grads, create_graph=True)]


def _shapes(args: tuple, needed: list[int], function: Any) -> list[Any]:
    """Zeros with the shapes of what backward itself returns; no element where that is None."""
    case = Case(function, args)
    outputs = _values(tuple(case.leaves(needed)), function)
    node: Any = next(output.grad_fn for output in outputs if can_need_grad(output))
    with torch.no_grad():  # as in a backward that is not to be differentiated
        returned = node.apply(*map(torch.ones_like, outputs))
    returned = returned if isinstance(returned, tuple) else (returned,)
    return [torch.zeros(0 if returned[i] is None else returned[i].shape) for i in case.floats]


def _shape(args: tuple, position: int, function: Any) -> list[Any]:
    """The same for one input, where all need a gradient."""
    floats = Case(function, args).floats
    return [_shapes(args, floats, function)[floats.index(position)]]


def _jvp(args: tuple, function: Any) -> list[Any]:
    copies = tuple(map(copied, args))
    return [torch.func.jvp(function.apply, copies, tuple(map(_waves, args)))[1]]


def _vmap(args: tuple, dim: int, function: Any) -> list[Any]:
    batches = [torch.stack([arg, 2 * arg, arg.flip(-1)], dim) for arg in args]
    return [torch.func.vmap(function.apply, in_dims=dim)(*batches)]


def _fake(args: tuple, function: Any) -> list[Any]:
    """What the function returns for tensors without numbers, filled with zeros."""
    with FakeTensorMode() as mode:
        fakes = [mode.from_tensor(arg) if isinstance(arg, Tensor) else arg for arg in args]
        returned = function(*fakes)
    outputs = returned if isinstance(returned, tuple) else (returned,)
    if any(output is fake for output in outputs for fake in fakes):
        raise Crash(UserError(_WORDS["fake is the input"]), "in the fake", "wrong fake")
    return [torch.zeros(output.shape, dtype=output.dtype) for output in outputs]


def _with_dtype(args: Any, dtype: torch.dtype) -> tuple:
    return tuple(arg.to(dtype) if can_need_grad(arg) else arg for arg in args)


def _subsets(floats: list[int]) -> list[list[int]]:
    """Every choice of some of the inputs, but not of all."""
    return [list(s) for n in range(1, len(floats)) for s in itertools.combinations(floats, n)]

"""The exercises: which there are, which are solved, and what is wrong with an answer, in words.

The learner's file holds the task, forward, and an empty backward. Its solution, of the same name in
exercises/solutions/, holds all that grading needs: the right answer, `HINT`, on the class the
declarations of `lab.checking.check` (samples, kinks, surrogate), and below it, as subclasses,
typical wrong answers, each with the sentence for the learner who gives it as its docstring.

A class that declares `second_derivative_wanted = True` accepts no `once_differentiable`.
"""

from __future__ import annotations

import difflib
import itertools
import os
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from lab import HOME
from lab.checking.check import attempt, check_function
from lab.checking.numbers import element_text, gradients
from lab.checking.samples import Case, declared_inputs
from lab.checking.targets import functions_in, module_of_file
from lab.checking.users_code import Crash, users_code
from lab.checking.verdict import Finding, Verdict
from lab.errors import UserError, users_lines

FOLDER = HOME / "exercises"
DECLARATIONS = ("sample_inputs", "kink_inputs", "surrogate", "mistake")


@dataclass(frozen=True)
class Exercise:
    """One exercise.

    Args:
        stem: the name of its file without the ending: `e03_relu`.
        file: the answer, which may lie anywhere.

    >>> exercise = Exercise("e03_relu", FOLDER / "e03_relu.py")
    >>> exercise.number, exercise.name
    (3, 'relu')
    """

    stem: str
    file: Path

    @property
    def number(self) -> int:
        return int(self.stem[1:3])

    @property
    def name(self) -> str:
        return self.stem[4:]

    @property
    def hint(self) -> str:
        return self._solution_module().HINT

    @property
    def trains(self) -> bool:
        """Whether it is a choice of `python train.py`."""
        return (HOME / f"conf/function/exercise_{self.name}.yaml").exists()

    def solution(self) -> tuple[type, list[type]]:
        """The right answer, and the typical wrong ones."""
        right, *mistakes = functions_in(self._solution_module())
        return right, mistakes

    def answer(self, name: str) -> type:
        """The Function of that name in the learner's file, as it is now.

        Raises:
            UserError: the file is not there.
            Crash: it can't be run, or does not define the Function.
        """
        if not self.file.is_file():
            raise UserError(f"{self.file}: no such file")
        with users_code("when the file is run"):
            for function in functions_in(module_of_file(self.file)):
                if function.__name__ == name:
                    return function
            raise UserError(f"There is no torch.autograd.Function of the name {name} in it.")

    def _solution_module(self) -> Any:
        return module_of_file(FOLDER / "solutions" / f"{self.stem}.py")


def every_exercise() -> list[Exercise]:
    """All of them, in their order."""
    return [Exercise(file.stem, file) for file in sorted(FOLDER.glob("e[0-9][0-9]_*.py"))]


def find_exercises(target: str) -> list[Exercise]:
    """The exercises that a target of check.py means; none if it means something else.

    Args:
        target: `exercises`, `exercises.relu`, `exercises.e03_relu`, or the path of a file whose
            name ends in `e03_relu.py`, wherever it lies.

    Raises:
        UserError: there is no such exercise; with the choices.

    >>> [exercise.stem for exercise in find_exercises("exercises.relu")]
    ['e03_relu']
    >>> find_exercises("MyReLU")
    []
    """
    course = every_exercise()
    if target.rstrip("/") == "exercises":
        return course
    if target.endswith(".py"):
        path = Path(target)
        return [replace(e, file=path) for e in course if path.stem.endswith(e.stem)]
    group, _, name = target.partition(".")
    if group != "exercises" or name.startswith("solutions"):
        return []
    name = name.partition(".")[0]
    found = [exercise for exercise in course if name in (exercise.name, exercise.stem)]
    if not found:
        names = [exercise.name for exercise in course]
        close = difflib.get_close_matches(name, names, n=1)
        said = f"Did you mean {close[0]}?" if close else f"Choices: {', '.join(names)}"
        raise UserError(f"{target}: no such exercise. {said}")
    return found


# ---- Grading ------------------------------------------------------------------------------------


def grade(exercise: Exercise, **how: Any) -> Verdict:
    """What `check_function` says of the learner's answer, and what the exercise asks for beyond.

    Args:
        exercise: runs the code in its file.
        how: device, seed, eps and atol of `check_function`.

    Returns:
        A verdict that is `as_declared` when the exercise is solved. Its `verdict` is "not begun"
        where the file still raises NotImplementedError.

    Raises:
        UserError: there is no such file.
    """
    right, mistakes = exercise.solution()
    try:
        return _grade(exercise.answer(right.__name__), right, mistakes, how)
    except Crash as crash:
        return Verdict(
            right.__name__,
            "cannot run",
            findings=[Finding("crash", crash.told)],
            users_lines=users_lines(crash.error),
        )


def _grade(answer: type, right: type, mistakes: list[type], how: dict[str, Any]) -> Verdict:
    answer = _declared_as(answer, right)
    verdict = check_function(answer, **how)
    if verdict.kinds == ["not written"]:
        verdict.verdict = "not begun"
    if verdict.verdict in ("not begun", "cannot run"):
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
        verdict.users_lines = ""  # they are of another one
    verdict.verdict, verdict.findings = "wrong", [*typical, first]
    return verdict


def _declared_as(answer: type, right: type) -> type:
    """The learner's methods under the solution's declarations: nobody sets their own test."""
    body = {name: value for name, value in vars(answer).items() if name not in DECLARATIONS}
    body |= {name: vars(right)[name] for name in DECLARATIONS if name in vars(right)}
    return type(answer.__name__, answer.__bases__, body)


def _changed_forward(answer: type, right: type, samples: list[tuple]) -> list[Finding]:
    for args in samples:
        (mine, after), (wanted, wanted_after) = (_call(f, args) for f in (answer, right))
        if not isinstance(mine, torch.Tensor):
            return [Finding("no tensor", "forward returns no tensor. Is its return missing?")]
        if mine.shape != wanted.shape or not torch.allclose(mine.to(wanted), wanted):
            text = "forward computes other numbers than the formula of the exercise."
            return [Finding("another forward", text)]
        if not all(map(torch.allclose, after, wanted_after)):
            text = (
                "forward returns the right numbers in a new tensor. It is to write them into the "
                "one that it was handed, and to return that."
            )
            return [Finding("not in place", text)]
    return []


def _call(function: type, args: tuple) -> tuple[Any, list[torch.Tensor]]:
    """What forward returns, and its arguments afterwards."""
    copies = [arg.clone() for arg in args]
    with users_code("in forward"):
        return function.apply(*copies), copies


def _waves(output: torch.Tensor) -> torch.Tensor:
    """Of both signs, of many sizes, and in no order."""
    return 2 * torch.arange(1, output.numel() + 1).to(output).sin().reshape(output.shape)


def _recognised(answer: type, mistakes: list[type], inputs: list[tuple]) -> list[Finding]:
    """The typical wrong answer that gives the same numbers as this one, wherever it runs at all."""
    mine = [_numbers(answer, args) for args in inputs]
    if not any(mine):  # the check has told why
        return []
    for mistake in mistakes:
        if all(map(_alike, mine, (_numbers(mistake, args) for args in inputs))):
            kind = re.sub("(?<!^)([A-Z])", r" \1", mistake.__name__).lower()
            return [Finding(kind, " ".join(mistake.__doc__.split()))]
    return []


def _alike(some: list[torch.Tensor], others: list[torch.Tensor]) -> bool:
    return len(some) == len(others) and all(
        torch.allclose(a, b, equal_nan=True) for a, b in zip(some, others, strict=True)
    )


def _numbers(
    function: type, args: tuple, grad_of: Callable[[torch.Tensor], torch.Tensor] = _waves
) -> list[torch.Tensor]:
    """The gradients for one grad_output, made from the output; none where backward raises."""
    case = Case(function, args, 0, 0)
    leaves = case.leaves()
    try:
        with users_code("in backward"):
            outputs = case.outputs(*leaves)
            return gradients(case, outputs, leaves, [grad_of(output) for output in outputs])
    except Crash:
        return []


def _missing(
    answer: type, right: type, verdict: Verdict, samples: list[tuple], kinks: list[tuple]
) -> list[Finding]:
    """What a right gradient still lacks beside the solution."""
    if verdict.verdict != "surrogate" and verdict.notes:
        return [Finding("not quite", note) for note in verdict.notes]
    if getattr(right, "second_derivative_wanted", False) and verdict.second_derivative != "right":
        text = "The first derivative is right. The second, which is asked for here, "
        said = "is refused" if verdict.second_derivative == "refused" else "raises an error"
        return [Finding("second derivative", f"{text}{said}.")]
    found = [finding for args in kinks for finding in _at_kink(answer, right, args)]
    for args in samples:
        found += _unneeded(Case(answer, args, 0, 0), Case(right, args, 0, 0))
    return found


def _at_kink(answer: type, right: type, args: tuple) -> list[Finding]:
    case = Case(answer, args, 0, 0)
    mine, wanted = (_numbers(function, args, torch.ones_like) for function in (answer, right))
    for position, a, b in zip(case.floats, mine, wanted, strict=True):
        differ = ~torch.isclose(a, b).flatten()
        if differ.any():
            i = int(differ.int().argmax())
            text = (
                f"At {element_text(case, position, i)}, a point without a derivative, backward "
                f"says "
                f"{a.flatten()[i]:.4g} for a grad_output of 1; this exercise asks for "
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
                f"The gradients are right. But where only {names} needs one, backward still "
                f"computes that for {answer.names[i]}, for nobody. Return None there; "
                "ctx.needs_input_grad tells."
            )
            return [Finding("unneeded gradient", text)]
    return []


def _computed(case: Case, needed: Sequence[int]) -> set[int]:
    """Positions for which backward returns a gradient."""
    (output,) = case.outputs(*case.leaves(needed))
    returned = output.grad_fn.apply(torch.ones_like(output))
    returned = returned if isinstance(returned, tuple) else (returned,)
    return {i for i, gradient in enumerate(returned) if gradient is not None}


# ---- What is seen -------------------------------------------------------------------------------


def report(exercise: Exercise, verdict: Verdict, width: int = 80) -> str:
    """The verdict for the learner, and what to do now."""
    paragraphs = [finding.text for finding in verdict.findings]
    ours = exercise.file.parent.resolve() == FOLDER.resolve()
    command = f"python check.py exercises.{exercise.name}"
    advice = []
    if verdict.as_declared:
        of = "its surrogate" if verdict.verdict == "surrogate" else "forward"
        paragraphs += [f"Backward is the derivative of {of}.", *map(str, verdict.kinks)]
        paragraphs += verdict.notes
        following = [other for other in every_exercise() if other.number > exercise.number]
        if ours and exercise.trains:
            advice.append(f"Train it:  python train.py function=exercise_{exercise.name}")
        if ours and following:
            advice.append(f"Next:      {_shown(following[0].file)}")
    elif verdict.verdict == "not begun":
        advice.append(f"The task:  {_shown(exercise.file)}")
    elif ours:
        advice.append(f"A hint:    {command} --hint")
    lines = [f"Exercise {exercise.number}, {exercise.name}: {_words(verdict)}"]
    for text in paragraphs:
        lines += textwrap.wrap(text, width, initial_indent="  ", subsequent_indent="  ")
    if verdict.users_lines and verdict.verdict != "not begun":
        lines += ["", textwrap.indent(verdict.users_lines.rstrip(), "  ")]
        lines += [""] if advice else []
    return "\n".join(lines + [f"  {line}" for line in advice])


def _words(verdict: Verdict) -> str:
    if verdict.as_declared:
        return "solved"
    return verdict.verdict if verdict.verdict == "not begun" else verdict.words


def print_overview(course: list[Exercise], **how: Any) -> list[Verdict]:
    """Grade all, and print a line each, a bar, and the next one to do."""
    verdicts = []
    for exercise in course:
        verdicts.append(attempt(grade, exercise, **how))
        print(f"{exercise.number:4}  {exercise.name:18}  {_words(verdicts[-1])}", flush=True)
    solved = sum(verdict.as_declared for verdict in verdicts)
    print(f"\n[{'#' * solved:.<{len(course)}}] {solved} of {len(course)} solved")
    for exercise, verdict in zip(course, verdicts, strict=True):
        if not verdict.as_declared:
            print(f"\nNext:      {_shown(exercise.file)}")
            print(f"Check it:  python check.py exercises.{exercise.name}")
            break
    return verdicts


def print_hint(course: list[Exercise], **how: Any) -> None:
    """Of the exercise, or of the first of several that is not solved."""
    for exercise in course:
        if len(course) == 1 or not attempt(grade, exercise, **how).as_declared:
            text = f"Exercise {exercise.number}, {exercise.name}: {exercise.hint}"
            print("\n".join(textwrap.wrap(text, 80)))
            return


def watch(
    exercises: list[Exercise], changes: Iterable[Any] | None = None, **how: Any
) -> list[Verdict]:
    """Check an exercise again at each save until it is solved, then go on to the next.

    Args:
        exercises: where to start; of one that lies in exercises/, those that follow are next.
        changes: yields whenever a file may have changed; by default, when `watchfiles` sees one.
        how: for `grade`.

    Returns:
        The last verdict of each exercise that was looked at.
    """
    first = exercises[0]
    if first in every_exercise():
        exercises = [other for other in every_exercise() if other.number >= first.number]
    wakes = iter(_saves(first.file.parent) if changes is None else changes)
    verdicts = []
    for exercise in exercises:
        verdict = None
        for _ in _versions(exercise.file, wakes):
            verdict = attempt(grade, exercise, **how)
            print(report(exercise, verdict), flush=True)
            if verdict.as_declared:
                print(flush=True)
                break
            print(
                f"\n-- waiting for {_shown(exercise.file)} to be saved; Ctrl-C ends\n", flush=True
            )
        verdicts.append(verdict)
        if not verdict.as_declared:
            break  # nothing will change any more
    return verdicts


def _versions(file: Path, wakes: Iterator[Any]) -> Iterator[bytes]:
    """What the file holds: now, and whenever it holds something else."""
    content = file.read_bytes()
    yield content
    for _ in wakes:
        try:
            now = file.read_bytes()
        except FileNotFoundError:  # an editor is between removing the old and writing the new
            continue
        if now != content:
            content = now
            yield content


def _saves(folder: Path) -> Iterator[Any]:
    import watchfiles  # only --watch needs it

    # It wakes at a save, and each second for one that fell between two waits.
    return watchfiles.watch(folder, recursive=False, rust_timeout=1000, yield_on_timeout=True)


def _shown(path: Path) -> str:
    return os.path.relpath(path)

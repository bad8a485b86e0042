"""What to try on a Function whose author declares no samples.

A guess says for each argument what kind of thing it is, and of which shapes the tensors are, the
likeliest first (likely.py). The first one is used that forward accepts, and for which backward
returns gradients of the right shapes.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import CodeType
from typing import Any, NamedTuple

import torch

from lab.checking import likely
from lab.checking.contract import examine
from lab.checking.numbers import equal_with_nan
from lab.checking.samples import Case, in_complex, in_float64, moved_far, parameters_of
from lab.checking.slips import OF_FORWARD
from lab.checking.users_code import Crash, users_code
from lab.checking.verdict import Finding, finding, say
from lab.errors import UserError

DOMAINS: tuple[Callable[..., torch.Tensor], ...] = (
    torch.randn,
    lambda shape: torch.rand(shape) - 0.5,  # small, for series that converge
    lambda shape: torch.rand(shape) + 0.5,  # positive, for log and sqrt
    lambda shape: torch.rand(shape) + 1.5,  # over 1
    lambda shape: torch.rand(shape) * 0.8 + 0.1,  # between 0 and 1
    lambda shape: _definite(torch.randn(shape)),
    lambda shape: torch.randn(shape, dtype=torch.complex128),
)
MOST_NUMBERS = 300  # in all samples
NUMBERS = (0.3, 1.4, 0.8, 2.1)  # different ones for different arguments
INTEGERS = {"dim": -1, "axis": -1, "padding": 1, "stride": 1, "dilation": 1, "bits": 4}
LIKELY = 12  # shapes that are tried first, and in every domain
COMPLEX_WORDS = {"conj", "complex", "is_complex", "view_as_real", "imag"}
MOST_TRIES = 4000
FITS, NO_GRADIENT, WRONG_SHAPE, SUMMED, RAISES = range(5)  # how backward answers a guess

INFINITE = "forward gives inf or nan"
CONSTANT = "forward is constant: it gives the same for other inputs"


class Guess(NamedTuple):
    """The kind of each argument, shapes and values of the tensors; what was drawn, and its fit."""

    parameters: list[inspect.Parameter]
    kinds: tuple[str, ...]
    shapes: likely.Shapes
    domain: Callable[..., torch.Tensor]
    args: tuple = ()
    fit: int = 0


def guessed_cases(target: Any, device: str) -> tuple[list[Case], list[Finding]]:
    """The target with arguments that it answers with finite numbers that depend on them; and notes.

    Raises:
        Crash: forward takes nothing of what was tried; with what it said to each kind.
    """
    parameters = [p for p in parameters_of(target) if p.kind is not p.VAR_KEYWORD]
    if not parameters:
        raise Crash(UserError(say("takes no input")), "on random inputs", "crash")
    trial = _Trial(target, device)
    required = [p for p in parameters if p.default is p.empty] or parameters[:1]
    optional = [i for i, p in enumerate(parameters) if p.default is None and p not in required]
    chosen = [parameters[: optional[-1] + 1], required] if optional else [required]
    guesses = [guess for guess in map(trial.best, chosen) if guess]
    if not guesses:
        raise trial.failure(parameters)
    cases: list[Case] = []
    notes: list[Finding] = []
    if all(guess.fit == RAISES for guess in guesses) and (whole := trial.best(parameters)):
        guesses = [whole]  # backward may rely on all arguments being given
    guesses = [guess for guess in guesses if guess.fit < RAISES] or guesses[:1]
    for guess, more in map(trial.numbers_for_none, guesses):
        cases += trial.variants(guess)
        notes += more
    cases += trial.with_other_values(guess, parameters)
    if trial.is_complex:
        other = replace(in_complex(cases[0]), is_guess=True)
        cases += [] if trial.problem_with(other.args) else [other]
    return cases, notes


class _Trial:
    """Tries guesses on forward, and remembers what it said."""

    def __init__(self, target: Any, device: str):
        self.target, self.device = target, device
        self.said: dict[str, str] = {}
        self.crashes: list[Crash] = []
        self.tries, self.answered = 0, False
        # A real formula may compute inside with complex numbers, as with those of an FFT.
        words = _words_of(target)
        self.is_complex = bool(COMPLEX_WORDS & words) and not any("fft" in word for word in words)
        self.domains = DOMAINS if self.is_complex else DOMAINS[:-1]

    def best(self, chosen: list[inspect.Parameter]) -> Guess | None:
        """The first guess that forward takes and backward fits; else the first that fits less."""
        every = [*likely.orders(chosen)]
        raises = None
        for kinds, few, every_domain in (
            (every[:1], False, False),
            (every[:6], True, True),
            (every[6:], True, False),
            (every[1:], False, False),
        ):
            for some in kinds:
                found = self.with_kinds(chosen, some, few, every_domain)
                if found and found.fit < RAISES:
                    return found
                raises = raises or found
        return raises

    def with_kinds(
        self,
        chosen: list[inspect.Parameter],
        kinds: tuple[str, ...],
        few: bool = False,
        every_domain: bool = False,
    ) -> Guess | None:
        """The best guess with these kinds.

        Args:
            chosen: the parameters that get an argument.
            kinds: one for each.
            few: give up if forward takes none of the likeliest shapes.
            every_domain: try other values also where forward refuses normal ones; where it answers
                inf or nan to them, other values are tried in any case.
        """
        taken: dict[int, Guess] = {}
        for number, shapes in enumerate(self.shapes_for(chosen, kinds)):
            if self.tries > MOST_TRIES or (few and number == LIKELY and not taken):
                break
            # Shapes that fit by chance excuse no wrong gradient. They excuse a backward that raises
            # where there are several tensors: one of them may have been too large for it.
            excused = RAISES if len(shapes) == 1 else SUMMED
            if taken and min(taken) <= excused and likely.is_by_chance(shapes):
                continue
            for domain in self.domains:
                guess = Guess(chosen, kinds, shapes, domain)
                args, problem = self.answer(guess)
                if args is not None:
                    fit = self.fit(args)
                    if fit == WRONG_SHAPE and RAISES in taken and likely.is_by_chance(shapes):
                        break  # it says less than likely shapes on which backward raises
                    taken.setdefault(fit, guess._replace(args=args, fit=fit))
                if args is not None or (problem != INFINITE and not every_domain):
                    break
            if min(taken, default=RAISES) <= NO_GRADIENT:
                break
        return taken[min(taken)] if taken else None

    def shapes_for(
        self, chosen: list[inspect.Parameter], kinds: tuple[str, ...]
    ) -> list[likely.Shapes]:
        """The shapes to try for the tensors of these kinds, the likeliest first."""
        count = sum(
            1 + (p.kind is p.VAR_POSITIONAL)
            for p, kind in zip(chosen, kinds, strict=True)
            if kind in (likely.TENSOR, likely.MASK, likely.FLAGS)
        )
        texts = (text for code in _code_of(self.target) for text in code.co_consts)
        equations = (t for t in texts if isinstance(t, str) and "->" in t and t.count(",") < count)
        in_equations = [likely.shapes_in_equation(equation) for equation in equations]
        return [s for s in in_equations if len(s) == count] + likely.shapes_for(count)

    def answer(self, guess: Guess) -> tuple[tuple | None, str]:
        """The arguments if forward answers them with finite numbers; else None, and why not."""
        self.tries += 1
        try:
            args = in_float64(_fill(self.target, guess), self.device)
        except (RuntimeError, IndexError):  # no such matrix of this shape
            return None, ""
        if not (problem := self.problem_with(args)):
            return args, ""
        pairs = zip(guess.parameters, guess.kinds, strict=True)
        self.said.setdefault(", ".join(f"{p.name} {kind}" for p, kind in pairs), problem)
        return None, problem

    def problem_with(self, args: tuple) -> str:
        """Why these arguments can't be used; an empty text if they can."""
        case = Case(self.target, args)
        try:
            with users_code("on random inputs"):
                outputs = case.outputs(*case.leaves())
                others = case.outputs(*moved_far(case).args)
        except Crash as crash:
            if isinstance(crash.error, NotImplementedError) and not str(crash.error):
                raise
            self.crashes.append(crash)
            with contextlib.suppress(Exception, SystemExit):  # it may take float32 alone
                if case.outputs(*case.in_float32().leaves()):
                    return ""
            return INFINITE if type(crash.error).__name__.endswith("LinAlgError") else crash.told
        self.answered = True
        if not outputs:
            return "forward returns no floating-point tensor"
        if not all(output.isfinite().all() for output in outputs):
            return INFINITE
        return CONSTANT if all(map(equal_with_nan, outputs, others)) else ""

    def fit(self, args: tuple) -> int:
        """How well backward fits arguments that forward takes.

        Forward may take shapes that were never meant, so those that fit are preferred. A gradient
        that PyTorch has to sum does not fit: broadcasting was hardly meant.
        """
        try:
            _, findings, notes = examine(Case(self.target, args))
        except (Crash, RuntimeError, IndexError):
            return RAISES
        kinds = {finding.kind for finding in findings}
        if "gradient for a number" in kinds:
            return RAISES
        if {"shape", "transposed"} & kinds:
            return WRONG_SHAPE
        if "summed by PyTorch" in {note.kind for note in notes}:
            return SUMMED
        return NO_GRADIENT if "no gradient" in kinds else FITS

    def numbers_for_none(self, guess: Guess) -> tuple[Guess, list[Finding]]:
        """The guess with numbers or classes for the tensors that get None from backward."""
        if guess.fit != NO_GRADIENT:
            return guess, []
        findings = examine(Case(self.target, guess.args))[1]
        without = [found.about for found in findings if found.kind == "no gradient"]
        for names, other in itertools.product(
            (without, *([name] for name in without)), (likely.NUMBER, likely.ROWS, likely.SAME)
        ):
            kinds = tuple(
                other if p.name in names and other in (likely.NUMBER, *likely.named(p)) else kind
                for p, kind in zip(guess.parameters, guess.kinds, strict=True)
            )
            if kinds == guess.kinds or likely.TENSOR not in kinds:
                continue
            found = self.with_kinds(guess.parameters, kinds)
            if found and found.fit == FITS:
                key = "tried as a number" if other == likely.NUMBER else "tried as classes"
                return found, [finding(key, name=name) for name in names]
        return guess, []

    def variants(self, guess: Guess) -> list[Case]:
        """Two draws, a batch of one, and other shapes that fit as well."""
        shapes = guess.shapes
        rows = shapes[0][0] if shapes[0] else 1
        tried = [shapes, tuple(tuple(1 if n == rows else n for n in s) for s in shapes)]
        if len(shapes) > 1:
            dims = [*map(len, shapes)]
            others = [s for s in likely.shapes_for(len(shapes)) if [*map(len, s)] == dims]
            tried += [s for s in others if s != shapes and not likely.is_by_chance(s)][:40]
        if "sum_to_size" in _words_of(self.target):  # it means to be broadcast
            tried += likely.LAST
        cases = [Case(self.target, guess.args)]
        for some in tried:
            args, _ = self.answer(guess._replace(shapes=some))
            if args is not None and self.fit(args) == guess.fit:
                cases.append(Case(self.target, args, is_guess=True))
            if len(cases) == 5 or sum(map(_numbers_in, cases)) > MOST_NUMBERS:
                break
        return cases

    def with_other_values(
        self, guess: Guess, parameters: list[inspect.Parameter]
    ) -> Iterator[Case]:
        """For each argument that is not a tensor, other values; and a sample with all of them.

        Another value may ask for other shapes, as a flag that transposes does.
        """
        given = dict(zip([p.name for p in guess.parameters], guess.kinds, strict=True))
        whole = [*guess.args, *(p.default for p in parameters[len(guess.args) :])]
        changed: list[Any] = []
        for position, (parameter, value) in enumerate(zip(parameters, whole, strict=False)):
            others = self.other_values(value)
            for other in others:
                args = (*whole[:position], other, *guess.args[position + 1 :])
                if not self.problem_with(args):
                    yield Case(self.target, args, is_guess=not isinstance(other, str | bool))
                elif isinstance(other, bool):
                    fixed = [p.replace(default=other) if p is parameter else p for p in parameters]
                    chosen = fixed[: max(position + 1, len(guess.args))]
                    kinds = tuple(
                        likely.DEFAULT if i == position else given.get(p.name, likely.DEFAULT)
                        for i, p in enumerate(chosen)
                    )
                    found = self.with_kinds(chosen, kinds)
                    yield from self.variants(found) if found else []
            changed += others[-1:] or [value]
        if changed != whole and not self.problem_with(tuple(changed)):
            yield Case(self.target, tuple(changed), is_guess=True)

    def other_values(self, value: Any) -> list[Any]:
        """Other values for an argument that is not a tensor."""
        if isinstance(value, bool):
            return [not value]
        if isinstance(value, int):
            return [value + 1, value - 1] + [1] * (value < -1)  # an index to ignore
        if isinstance(value, float):
            return [round(0.7 * value + 0.1, 6)] + [0.5] * (value > 3)
        if isinstance(value, str):  # the methods compare it with the others
            return [text for text in (*_texts_of(self.target), "mean") if text != value][:3]
        return []

    def failure(self, parameters: list[inspect.Parameter]) -> Crash:
        """What was tried, what forward said, and samples to complete."""
        if len({crash.told for crash in self.crashes}) == 1 and not self.answered:
            return self.crashes[0]  # it fails on everything, for one and the same reason
        slips = [c for c in self.crashes if str(c.error).startswith((*OF_FORWARD,))]
        if slips:  # forward itself took these inputs
            return slips[0]
        tried = [f"{words}: {problem}" for words, problem in list(self.said.items())[:4]]
        tried += [f"and {len(self.said) - 4} more kinds"] if len(self.said) > 4 else []
        ready = ", ".join(map(likely.example_of, parameters))
        names = ", ".join(p.name for p in parameters)
        text = say("no inputs found", tried="\n".join(tried), ready=ready, names=names)
        return Crash(UserError(text), "on random inputs", "no inputs found")


def _code_of(target: Any) -> list[CodeType]:
    methods = [getattr(target, name, None) for name in ("forward", "backward", "setup_context")]
    return [inspect.unwrap(m).__code__ for m in methods if inspect.isfunction(m)]


def _texts_of(target: Any) -> list[str]:
    """The one-word strings in the methods of a Function, other than docstrings."""
    constants = dict.fromkeys(c for code in _code_of(target) for c in code.co_consts[1:])
    return [text for text in constants if isinstance(text, str) and text.isidentifier()]


def _words_of(target: Any) -> set[str]:
    """The names that the methods of a Function use."""
    return {name for code in _code_of(target) for name in code.co_names}


def _numbers_in(case: Case) -> int:
    return sum(case.args[i].numel() for i in case.floats)


def _fill(target: Any, guess: Guess) -> list:
    """The arguments of a guess, drawn anew."""
    shapes = iter(guess.shapes)
    numbers = itertools.cycle(NUMBERS)
    first = (guess.shapes and guess.shapes[0]) or (1,)
    indices = torch.tensor([3, 0, 3, 1, 2, 6, 4])  # one repeats

    def tensor(name: str) -> torch.Tensor:
        shape = next(shapes)
        return guess.domain(shape[-1:] if name == "bias" else shape)

    make: dict[str, Callable[[str], Any]] = {
        likely.TENSOR: tensor,
        likely.MASK: lambda name: (torch.rand(next(shapes)) > 0.4).double(),
        likely.FLAGS: lambda name: torch.rand(next(shapes)) > 0.4,
        likely.INDEX: lambda name: indices[:4] % first[0],
        likely.ROWS: lambda name: indices[: first[0]] % first[-1],
        likely.SAME: lambda name: torch.randint(min(first), first),
        likely.NUMBER: lambda name: next(numbers),
        likely.INTEGER: lambda name: INTEGERS.get(name, 2),
        likely.COUNT: lambda name: 8,
        likely.BOOL: lambda name: True,
        likely.TEXT: lambda name: next(iter(_texts_of(target)), "mean"),
        likely.FUNCTION: lambda name: _product_of_sines,
    }
    return [
        parameter.default if kind == likely.DEFAULT else make[kind](parameter.name)
        for parameter, kind in zip(guess.parameters, guess.kinds, strict=True)
        for _ in range(2 if parameter.kind is parameter.VAR_POSITIONAL else 1)
    ]


def _definite(tensor: torch.Tensor) -> torch.Tensor:
    """A positive definite matrix in place of a square one."""
    if tensor.dim() < 2 or tensor.shape[-2] != tensor.shape[-1]:
        return tensor
    definite = tensor @ tensor.mT + torch.eye(tensor.shape[-1])
    return (definite + definite.mT) / 2  # symmetric to the last bit


def _product_of_sines(*tensors: torch.Tensor) -> torch.Tensor:
    return functools.reduce(torch.mul, map(torch.sin, tensors))

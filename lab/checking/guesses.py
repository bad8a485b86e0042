"""What to try on a Function whose author declares no samples."""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch

from lab.checking.contract import examine, in_float32
from lab.checking.numbers import equal_with_nan
from lab.checking.samples import (
    Case,
    can_need_grad,
    in_float64,
    parameters_of,
)
from lab.checking.users_code import Crash, users_code
from lab.checking.verdict import say
from lab.errors import UserError

# Shapes of the first, second and third tensor. Rows are long enough that a permutation is not its
# own inverse, and no size is a number that formulas are full of.
ELEMENTWISE = ((5, 7), (5, 7), (5, 7))
ROWS_AND_VECTOR = ((5, 7), (7,), (7,))
SCALARS: tuple[tuple[int, ...], ...] = ((), (), ())
SQUARE = (((5, 5), (5, 5), (5, 5)), ((5, 5), (5,), (5,)))
SHAPES = (
    ELEMENTWISE,
    ((5, 7), (6, 7), (6,)),  # a linear map
    ((5, 7), (7, 6), (6,)),  # a matrix product
    ROWS_AND_VECTOR,
    ((5, 7), (5, 1), (5, 1)),
    ((5, 7), (), ()),
    ((7,), (7,), (7,)),
    *SQUARE,
    ((2, 3, 5), (2, 5, 4), (2, 3, 4)),  # a batched matrix product
    ((2, 3, 5), (2, 3, 5), (2, 3, 5)),
    ((2, 4, 6, 6), (3, 4, 3, 3), (3,)),  # images and filters
    ((2, 4, 5, 5), (4,), (4,)),  # images, and a number for each channel
    ((2, 3, 8), (4, 3, 3), (4,)),
    ((7,), (6, 7), (6,)),
    ((5,), (5, 5), (5,)),
)
DOMAINS: tuple[Callable, ...] = (
    torch.randn,
    lambda shape: torch.rand(shape) + 0.5,  # positive, for log and sqrt
    lambda shape: torch.rand(shape) + 1.5,  # over 1
    lambda shape: torch.rand(shape) * 0.8 + 0.1,  # between 0 and 1
    lambda shape: (lambda x: x @ x.mT + torch.eye(shape[-1]))(torch.randn(shape)),  # definite
    lambda shape: torch.randn(shape, dtype=torch.complex128),
)
COMPLEX_WORDS = {"conj", "complex", "is_complex", "view_as_real", "imag"}
MOST_TRIES = 1500

TENSOR, NUMBER, INTEGER, INDEX, CLASSES, MASK, FLAGS, BOOL, FUNCTION = (
    "a float tensor", "a number", "an integer", "integer indices", "class targets",
    "a tensor of 0 and 1", "a boolean tensor", "True", "a function",
)  # fmt: skip
BY_NAME = {
    INDEX: "index indices idx ind i ids inds perm order positions",
    CLASSES: "target targets label labels y_true classes",
    MASK: "mask masks keep attn_mask",
    FLAGS: "mask masks keep attn_mask cond condition",
    NUMBER: "eps epsilon slope negative_slope alpha beta lam lambd lambda_ p prob rate tau "
    "temperature temp margin delta threshold lo hi low high min max min_val max_val momentum "
    "sigma std factor coeff power exponent smoothing",
    INTEGER: "dim axis n k num size steps kernel_size stride padding groups repeats bits levels "
    "num_bits n_bits block_size upscale_factor shift shifts r times num_classes",
    BOOL: "training train inplace keepdim",
    FUNCTION: "run fn f func function module callable activation act",
}
BY_ANNOTATION = {"float": NUMBER, "int": INTEGER, "bool": BOOL}
NUMBERS = (0.3, 1.4, 0.8, 2.1)  # different ones for different arguments
INTEGERS = {"dim": -1, "axis": -1, "padding": 1, "stride": 1, "groups": 1, "bits": 4}
EXAMPLES = {
    TENSOR: "torch.randn(5, 7)",
    NUMBER: "0.3",
    INTEGER: "2",
    INDEX: "torch.tensor([3, 0, 3, 1])",
    CLASSES: "torch.tensor([3, 0, 3, 1, 2])",
    MASK: "torch.tensor([1.0, 0.0, 1.0])",
    FLAGS: "torch.rand(5, 7) > 0.5",
    BOOL: "True",
    FUNCTION: "torch.sin",
}


def guessed_samples(target: Any, device: str) -> tuple[list[tuple], list[str]]:
    """Arguments that forward answers with finite numbers that depend on them; and notes.

    Raises:
        Crash: forward takes nothing of what was tried; with what it said to each kind.
    """
    parameters = [p for p in parameters_of(target) if p.kind is not p.VAR_KEYWORD]
    if not parameters:
        raise Crash(UserError(say("takes no input")), "on random inputs", "crash")
    guesses = _Guesses(target, device)
    required = [p for p in parameters if p.default is p.empty] or parameters[:1]
    optional = [p for p in parameters if p.default is None and p not in required]
    samples: list[tuple] = []
    notes: list[str] = []
    for chosen in ([*required, *optional], required) if optional else (required,):
        if found := guesses.first(chosen):
            plan, more = guesses.number_for_none(found)
            samples += guesses.variants(plan)
            notes += more
    if not samples:
        raise guesses.failure(parameters)
    others = [*guesses.other_defaults(parameters[len(required) :], samples[0])]
    if _speaks_of_complex(target):
        others.append(_in_complex(samples[0]))
    return samples + [args for args in others if not guesses.problem_with(args)], notes


def _speaks_of_complex(target: Any) -> bool:
    """Whether a method handles complex numbers, so that they are meant to be given."""
    methods = [getattr(target, name, None) for name in ("forward", "backward", "setup_context")]
    codes = [method.__code__ for method in methods if inspect.isfunction(method)]
    return any(COMPLEX_WORDS & {*code.co_names} for code in codes)


def _in_complex(args: tuple) -> tuple:
    return tuple(
        torch.complex(arg, arg.flip(list(range(arg.dim()))))
        if can_need_grad(arg) and not arg.is_complex()
        else arg
        for arg in args
    )


class Plan(NamedTuple):
    """What kind of argument each parameter gets, and of which values and shapes the tensors are."""

    parameters: list[inspect.Parameter]
    kinds: tuple[str, ...]
    domain: Callable
    shapes: tuple


class _Guesses:
    """Tries arguments on forward, and remembers what it said."""

    def __init__(self, target: Any, device: str):
        self.target, self.device = target, device
        self.said: dict[str, str] = {}
        self.crashes: list[Crash] = []
        self.tries, self.answered = 0, False

    def first(self, chosen: list[inspect.Parameter], fixed: Sequence[str] = ()) -> Plan | None:
        """The first kinds, domain and shapes that forward takes; prefers what backward fits."""
        fallbacks: dict[int, Plan] = {}
        for kinds in [tuple(fixed)] if fixed else _orders(chosen):
            for domain, shapes in (*itertools.product(DOMAINS, SHAPES), (torch.randn, SCALARS)):
                hides_a_wrong_shape = shapes in (*SQUARE, SCALARS)
                if self.tries >= MOST_TRIES or (fallbacks and hides_a_wrong_shape):
                    continue
                plan = Plan(chosen, kinds, domain, shapes)
                args = self.taken(plan)
                if args is not None:
                    misfit = self.misfit(args)
                    fallbacks.setdefault(misfit, plan)
                    if misfit == 0:
                        return fallbacks[0]
            if min(fallbacks, default=2) < 2:
                break
        return fallbacks[min(fallbacks)] if fallbacks else None

    def taken(self, plan: Plan) -> tuple | None:
        """The arguments if forward answers them with finite numbers; else None."""
        self.tries += 1
        try:
            args = in_float64(_fill(plan), self.device)
        except (RuntimeError, IndexError):  # no such matrix of this shape
            return None
        if not (problem := self.problem_with(args)):
            return args
        words = ", ".join(
            f"{p.name} {kind}" for p, kind in zip(plan.parameters, plan.kinds, strict=True)
        )
        self.said.setdefault(words, problem)
        return None

    def problem_with(self, args: tuple) -> str:
        case = Case(self.target, args)
        moved = [arg * 1.1 + 0.37 if can_need_grad(arg) else arg for arg in args]
        try:
            with users_code("on random inputs"):
                outputs, others = case.outputs(*case.leaves()), case.outputs(*moved)
        except Crash as crash:
            if isinstance(crash.error, NotImplementedError) and not str(crash.error):
                raise
            self.crashes.append(crash)
            with contextlib.suppress(Exception):  # it may take float32 alone
                if case.outputs(*in_float32(args)):
                    return ""
            return crash.told
        self.answered = True
        if not outputs:
            return "forward returns no floating-point tensor"
        if not all(output.isfinite().all() for output in outputs):
            return "forward gives inf or nan"
        same = all(map(equal_with_nan, outputs, others))
        return "forward is constant: it gives the same for other inputs" if same else ""

    def misfit(self, args: tuple) -> int:
        """How badly backward fits arguments that forward takes: 1 for a shape, 2 if it fails.

        Forward may take shapes that were never meant, so those that fit are preferred.
        """
        try:
            kinds = {finding.kind for finding in examine(Case(self.target, args))[1]}
        except (Crash, RuntimeError, IndexError):
            return 2
        wrong_shape = bool({"shape", "transposed"} & kinds)
        return 2 if "gradient for a number" in kinds else int(wrong_shape)

    def number_for_none(self, plan: Plan) -> tuple[Plan, list[str]]:
        """A number for each tensor that gets None from backward, if forward takes one."""
        notes: list[str] = []
        for position, parameter in enumerate(plan.parameters):
            args = self.taken(plan)
            numbers = (*plan.kinds[:position], NUMBER, *plan.kinds[position + 1 :])
            if args is None or plan.kinds[position] != TENSOR or TENSOR not in numbers:
                continue
            with contextlib.suppress(Crash, RuntimeError, IndexError):
                texts = [f.text for f in examine(Case(self.target, args))[1]]
                none = any(f"None for {parameter.name}, on which" in text for text in texts)
                if none and (found := self.first(plan.parameters, numbers)):
                    plan = found
                    notes.append(say("tried as a number", name=parameter.name))
        return plan, notes

    def variants(self, plan: Plan) -> list[tuple]:
        """Two draws, other shapes that forward takes, and a batch of one."""
        shapes = plan.shapes
        tried: list[tuple] = [shapes, shapes]
        if sum(kind == TENSOR for kind in plan.kinds) > 1:
            tried += [other for other in SHAPES[:5] if other != shapes]
        if shapes[0]:
            tried.append(tuple(tuple(1 if n == shapes[0][0] else n for n in s) for s in shapes))
        taken = [self.taken(plan._replace(shapes=some)) for some in tried]
        fits = [(args, self.misfit(args)) for args in taken if args is not None]
        best = min((misfit for _, misfit in fits), default=0)  # none, where forward varies
        return [args for args, misfit in fits if misfit == best][:5]

    def other_defaults(self, keywords: list[inspect.Parameter], sample: tuple) -> Iterator[tuple]:
        """For each keyword parameter a sample with another value than its default."""
        args = list(sample)
        for parameter in keywords:
            default = parameter.default
            if isinstance(default, bool):
                yield (*args, not default)
            elif isinstance(default, int | float):
                yield (*args, default + 1 if isinstance(default, int) else 0.6 * default + 0.1)
            args.append(default)

    def failure(self, parameters: list[inspect.Parameter]) -> Crash:
        """What was tried, what forward said, and samples to complete."""
        if len({crash.told for crash in self.crashes}) == 1 and not self.answered:
            return self.crashes[0]  # it fails on everything, for one and the same reason
        tried = [f"{words}: {problem}" for words, problem in list(self.said.items())[:4]]
        tried += [f"and {len(self.said) - 4} more kinds"] if len(self.said) > 4 else []
        ready = ", ".join(EXAMPLES[_kinds_of(p)[0]] for p in parameters)
        names = ", ".join(p.name for p in parameters)
        text = say("no inputs found", tried="\n".join(tried), ready=ready, names=names)
        return Crash(UserError(text), "on random inputs", "no inputs found")


def _kinds_of(parameter: inspect.Parameter) -> list[str]:
    """What an argument may be, the likeliest first."""
    annotation = getattr(parameter.annotation, "__name__", str(parameter.annotation))
    if annotation in BY_ANNOTATION:
        return [BY_ANNOTATION[annotation]]
    if parameter.kind is parameter.VAR_POSITIONAL:
        return [TENSOR]
    named = [kind for kind, names in BY_NAME.items() if parameter.name in names.split()]
    others = [TENSOR, INDEX, NUMBER, INTEGER, CLASSES, MASK, BOOL]
    if "Tensor" in annotation:
        named, others = [k for k in named if k in (INDEX, CLASSES, MASK)], [TENSOR, INDEX]
    elif named and named[0] in (NUMBER, INTEGER):
        others = [TENSOR, NUMBER, INTEGER]
    return list(dict.fromkeys([*named, *others]))


def _orders(chosen: list[inspect.Parameter]) -> Iterator[tuple[str, ...]]:
    """Combinations of kinds, those with the fewest unlikely kinds first; one needs a gradient."""
    options = [_kinds_of(p)[:5] for p in chosen]
    indices = itertools.product(*(range(len(kinds)) for kinds in options))
    for places in sorted(indices, key=sum)[:60]:
        kinds = tuple(kinds[place] for kinds, place in zip(options, places, strict=True))
        if TENSOR in kinds or MASK in kinds:
            yield kinds


def _fill(plan: Plan) -> list:
    """The arguments of a plan, drawn anew."""
    shapes = plan.shapes
    following = itertools.chain(shapes, itertools.repeat(shapes[-1]))
    numbers = itertools.cycle(NUMBERS)
    first = shapes[0] or (1,)

    def tensor(name: str) -> torch.Tensor:
        shape = next(following)
        return plan.domain(shape[-1:] if name == "bias" else shape)

    make: dict[str, Callable[[str], Any]] = {
        TENSOR: tensor,
        NUMBER: lambda name: next(numbers),
        INTEGER: lambda name: INTEGERS.get(name, 2),
        INDEX: lambda name: torch.tensor([3, 0, 3, 1]) % first[0],  # with an index that repeats
        CLASSES: lambda name: torch.tensor([3, 0, 3, 1, 2, 6, 4])[: first[0]] % first[-1],
        MASK: lambda name: (torch.rand(next(following)) > 0.4).double(),
        FLAGS: lambda name: torch.rand(next(following)) > 0.4,
        BOOL: lambda name: True,
        FUNCTION: lambda name: _product_of_sines,
    }
    args = []
    for parameter, kind in zip(plan.parameters, plan.kinds, strict=True):
        count = 2 if parameter.kind is parameter.VAR_POSITIONAL else 1
        args += [make[kind](parameter.name) for _ in range(count)]
    return args


def _product_of_sines(*tensors: torch.Tensor) -> torch.Tensor:
    return functools.reduce(torch.mul, map(torch.sin, tensors))

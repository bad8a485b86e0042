"""What to try on a Function whose author declares no samples."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from lab.checking.contract import examine
from lab.checking.samples import Case, can_need_grad, in_float64, is_function_class, parameters_of
from lab.checking.users_code import Crash, users_code
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

TENSOR, NUMBER, INTEGER, INDEX, CLASSES, MASK, BOOL, FUNCTION = (
    "a float tensor", "a number", "an integer", "integer indices", "class targets",
    "a tensor of 0 and 1", "True", "a function",
)  # fmt: skip
BY_NAME = {
    INDEX: "index indices idx ind i ids inds perm order positions",
    CLASSES: "target targets label labels y_true classes",
    MASK: "mask masks keep attn_mask",
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


@dataclass
class Guess:
    """The samples that were found, and what is to be said of them."""

    samples: list[tuple] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    only_for: list[str] = field(default_factory=list)


def guessed_samples(target: Any, device: str) -> Guess:
    """Arguments that forward answers with finite numbers that depend on them.

    Raises:
        Crash: forward takes nothing of what was tried; with what it said to each kind.
    """
    parameters = [p for p in parameters_of(target) if p.kind is not p.VAR_KEYWORD]
    if not parameters:
        message = "forward takes no input: write forward(ctx, input), or add setup_context"
        raise Crash(UserError(message), "on random inputs", "crash")
    search = _Search(target, device)
    required = [p for p in parameters if p.default is p.empty]
    optional = [p for p in parameters if p.default is None]
    guess = Guess()
    for chosen in ([*required, *optional], required) if optional else (required,):
        if found := search.first(chosen or parameters[:1]):
            guess.samples += _variants(search, chosen or parameters[:1], *found, guess)
    if not guess.samples:
        if len({crash.told for crash in search.crashes}) == 1 and not search.answered:
            raise search.crashes[0]  # it fails on everything, for one and the same reason
        raise Crash(UserError(search.report(parameters)), "on random inputs", "no inputs found")
    guess.samples += _other_defaults(search, parameters, guess.samples[0])
    if _speaks_of_complex(target):
        guess.samples += [
            args for args in map(_in_complex, guess.samples[:1]) if not search.problem_with(args)
        ]
    return guess


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


class _Search:
    """Tries arguments on forward, and remembers what it said."""

    def __init__(self, target: Any, device: str):
        self.target, self.device = target, device
        self.said: dict[str, str] = {}
        self.crashes: list[Crash] = []
        self.answered = False
        self.tries = 0

    def first(
        self, chosen: list[inspect.Parameter], fixed: dict[str, str] | None = None
    ) -> tuple[tuple[str, ...], Callable, tuple] | None:
        """The first kinds, domain and shapes that forward takes; prefers what backward fits."""
        fallbacks: dict[int, tuple] = {}
        for kinds in _orders(chosen, fixed or {}):
            for domain, shapes in (*itertools.product(DOMAINS, SHAPES), (torch.randn, SCALARS)):
                if self.tries >= MOST_TRIES:
                    break
                if fallbacks and shapes in (*SQUARE, SCALARS):
                    continue  # they hide a wrong shape
                args = self.taken(chosen, kinds, domain, shapes)
                if args is None:
                    continue
                found = kinds, domain, shapes
                if not (misfit := _misfit(self.target, args)):
                    return found
                fallbacks.setdefault(misfit, found)
            if min(fallbacks, default=2) < 2:
                break
        return fallbacks[min(fallbacks)] if fallbacks else None

    def taken(
        self,
        chosen: list[inspect.Parameter],
        kinds: tuple[str, ...],
        domain: Callable,
        shapes: tuple,
    ) -> tuple | None:
        """The arguments if forward answers them with finite numbers; else None."""
        self.tries += 1
        try:
            args = in_float64(_fill(chosen, kinds, domain, shapes), self.device)
        except (RuntimeError, IndexError):  # no such matrix of this shape
            return None
        words = ", ".join(f"{p.name} {kind}" for p, kind in zip(chosen, kinds, strict=True))
        problem = self.problem_with(args)
        if problem:
            self.said.setdefault(words, problem)
        return None if problem else args

    def problem_with(self, args: tuple) -> str:
        case = Case(self.target, args)
        try:
            with users_code("on random inputs"):
                outputs = case.outputs(*case.leaves())
                moved = [arg * 1.1 + 0.37 if can_need_grad(arg) else arg for arg in args]
                others = case.outputs(*moved)
        except Crash as crash:
            if isinstance(crash.error, NotImplementedError) and not str(crash.error):
                raise
            self.crashes.append(crash)
            if "float32" in str(crash.error) or "Double" in str(crash.error):
                single = [arg.float() if can_need_grad(arg) else arg for arg in args]
                try:
                    return "" if Case(self.target, tuple(single)).outputs(*single) else "no tensor"
                except Exception:  # neither precision will do
                    return crash.told
            return crash.told
        self.answered = True
        if not outputs:
            return "forward returns no floating-point tensor"
        if not all(output.isfinite().all() for output in outputs):
            return "forward gives inf or nan"
        if all(
            a.shape == b.shape and torch.equal(a, b) for a, b in zip(outputs, others, strict=True)
        ):
            return "forward is constant: it gives the same for other inputs"
        return ""

    def report(self, parameters: list[inspect.Parameter]) -> str:
        """What was tried, what forward said, and samples to complete."""
        lines = ["No inputs were found that forward takes. It was given"]
        lines += [f"{words}: {problem}" for words, problem in list(self.said.items())[:4]]
        more = len(self.said) - 4
        lines += [f"and {more} more kinds"] if more > 0 else []
        ready = ", ".join(_EXAMPLES[_kinds_of(p)[0]] for p in parameters)
        lines.append("Say what it takes, by adding this to the class, with inputs that fit:")
        lines.append("    @staticmethod")
        lines.append("    def sample_inputs():")
        names = ", ".join(p.name for p in parameters)
        lines.append(f"        return [({ready},)]  # {names}")
        return "\n".join(lines)


_EXAMPLES = {
    TENSOR: "torch.randn(5, 7)",
    NUMBER: "0.3",
    INTEGER: "2",
    INDEX: "torch.tensor([3, 0, 3, 1])",
    CLASSES: "torch.tensor([3, 0, 3, 1, 2])",
    MASK: "torch.tensor([1.0, 0.0, 1.0])",
    BOOL: "True",
    FUNCTION: "torch.sin",
}


def _misfit(target: Any, args: tuple) -> int:
    """How badly backward fits arguments that forward takes: 0, 1 for a wrong shape, 2 if it fails.

    Forward may take shapes that were never meant, so those that fit are preferred.
    """
    try:
        kinds = {finding.kind for finding in examine(Case(target, args))[1]}
    except (Crash, RuntimeError, IndexError):
        return 2
    if "gradient for a number" in kinds:
        return 2
    return int(bool({"shape", "transposed"} & kinds))


def _kinds_of(parameter: inspect.Parameter) -> list[str]:
    """What an argument may be, the likeliest first."""
    annotation = getattr(parameter.annotation, "__name__", str(parameter.annotation))
    if annotation in BY_ANNOTATION:
        return [BY_ANNOTATION[annotation]]
    named = [kind for kind, names in BY_NAME.items() if parameter.name in names.split()]
    if "Tensor" in annotation:
        named = [kind for kind in named if kind in (INDEX, CLASSES, MASK)]
        return [*named, *(kind for kind in (TENSOR, INDEX) if kind not in named)]
    if parameter.kind is parameter.VAR_POSITIONAL:
        return [TENSOR]
    every = [TENSOR, INDEX, NUMBER, INTEGER, CLASSES, MASK, BOOL]
    if named and named[0] in (NUMBER, INTEGER):
        every = [named[0], TENSOR, NUMBER, INTEGER]
    return [*named, *(kind for kind in every if kind not in named)]


def _orders(chosen: list[inspect.Parameter], fixed: dict[str, str]) -> Iterator[tuple[str, ...]]:
    """Combinations of kinds, those with the fewest unlikely kinds first; one needs a gradient."""
    options = [[fixed[p.name]] if p.name in fixed else _kinds_of(p) for p in chosen]
    indices = itertools.product(*(range(min(len(kinds), 5)) for kinds in options))
    for places in sorted(indices, key=sum)[:60]:
        kinds = tuple(kinds[place] for kinds, place in zip(options, places, strict=True))
        if TENSOR in kinds or MASK in kinds:
            yield kinds


def _fill(
    chosen: list[inspect.Parameter], kinds: tuple[str, ...], domain: Callable, shapes: tuple
) -> list:
    """Arguments of these kinds, tensors in these shapes."""
    args: list[Any] = []
    following = itertools.chain(shapes, itertools.repeat(shapes[-1]))
    numbers = itertools.cycle(NUMBERS)
    first = shapes[0] or (1,)
    for parameter, kind in zip(chosen, kinds, strict=True):
        if kind == TENSOR:
            for _ in range(2 if parameter.kind is parameter.VAR_POSITIONAL else 1):
                shape = next(following)
                args.append(domain(shape[-1:] if parameter.name == "bias" else shape))
        elif kind == NUMBER:
            args.append(next(numbers))
        elif kind == INTEGER:
            args.append(INTEGERS.get(parameter.name, 2))
        elif kind == INDEX:  # with an index that repeats
            args.append(torch.tensor([3, 0, 3, 1]) % first[0])
        elif kind == CLASSES:
            args.append(torch.tensor([3, 0, 3, 1, 2, 6, 4])[: first[0]] % first[-1])
        elif kind == MASK:
            args.append((torch.rand(next(following)) > 0.4).double())
        else:
            args.append(_product_of_sines if kind == FUNCTION else True)
    return args


def _product_of_sines(*tensors: torch.Tensor) -> torch.Tensor:
    return functools.reduce(torch.mul, map(torch.sin, tensors))


def _variants(
    search: _Search,
    chosen: list[inspect.Parameter],
    kinds: tuple[str, ...],
    domain: Callable,
    shapes: tuple,
    guess: Guess,
) -> list[tuple]:
    """Two draws, other shapes that forward takes, and a batch of one."""
    kinds, shapes = _numbers_for_none(search, chosen, kinds, domain, shapes, guess)
    tensors = sum(kind == TENSOR for kind in kinds)
    tensors += any(p.kind is p.VAR_POSITIONAL for p in chosen)
    others: list[tuple] = [shapes]
    if tensors > 1:
        others += [s for s in SHAPES[:6] if s != shapes]
    one = tuple(
        tuple(1 if n == shapes[0][0] else n for n in shape) for shape in shapes if shapes[0]
    )
    others += [one] if one else []
    found: list[tuple] = []
    for tried in [shapes, *others]:
        args = search.taken(chosen, kinds, domain, tried)
        if args is not None:
            found.append(args)
    misfits = [_misfit(search.target, args) for args in found]
    return [args for args, misfit in zip(found, misfits, strict=True) if misfit == min(misfits)][:5]


def _numbers_for_none(
    search: _Search,
    chosen: list[inspect.Parameter],
    kinds: tuple[str, ...],
    domain: Callable,
    shapes: tuple,
    guess: Guess,
) -> tuple[tuple[str, ...], tuple]:
    """A number in place of a tensor for which backward returns None, if forward takes one."""
    args = search.taken(chosen, kinds, domain, shapes)
    if args is None or not is_function_class(search.target):
        return kinds, shapes
    try:
        findings = examine(Case(search.target, args))[1]
    except (Crash, RuntimeError, IndexError):
        return kinds, shapes
    for parameter, kind in zip(chosen, kinds, strict=True):
        none = any(
            f.kind == "no gradient" and f"None for {parameter.name}," in f.text for f in findings
        )
        if (
            not none
            or kind != TENSOR
            or TENSOR not in [k for p, k in zip(chosen, kinds, strict=True) if p != parameter]
        ):
            continue
        position = chosen.index(parameter)
        numbers = (*kinds[:position], NUMBER, *kinds[position + 1 :])
        found = search.first(chosen, dict(zip([p.name for p in chosen], numbers, strict=True)))
        if found:
            kinds, _, shapes = found
            guess.notes.append(
                f"{parameter.name} was tried as a number, since backward returns None for it."
            )
    return kinds, shapes


def _other_defaults(
    search: _Search, parameters: list[inspect.Parameter], sample: tuple
) -> list[tuple]:
    """For each keyword parameter the first sample with another value than its default."""
    found = []
    positional = [p for p in parameters if p.default is p.empty]
    if len(sample) != len(positional):
        return []
    args = list(sample)
    for parameter in parameters[len(positional) :]:
        other = _another(parameter.default)
        if other is None:
            args.append(parameter.default)
            continue
        tried = (*args, other)
        if not search.problem_with(tried):
            found.append(tried)
        args.append(parameter.default)
    return found


def _another(default: Any) -> Any:
    """Another value of the same kind; None if there is none to guess."""
    if isinstance(default, bool):
        return not default
    if isinstance(default, int):
        return default + 1
    return 0.6 * default + 0.1 if isinstance(default, float) else None

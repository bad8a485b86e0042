"""Which kinds of arguments and which shapes of tensors a Function probably takes.

The tables are in likely.toml.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

Shapes = tuple[tuple[int, ...], ...]

# What an argument may be; one that needs a gradient comes first.
TENSOR, MASK, FLAGS, INDEX, ROWS, SAME, NUMBER, INTEGER, COUNT, BOOL, TEXT, FUNCTION, DEFAULT = (
    "a float tensor", "a tensor of 0 and 1", "a boolean tensor", "integer indices",
    "an integer for each row", "an integer for each element", "a number", "an integer",
    "a larger integer", "True", "a string", "a function", "its default",
)  # fmt: skip
TENSORS = (TENSOR, MASK, FLAGS, INDEX, ROWS, SAME)

_TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))


def _as_tuple(nested: Any) -> Any:
    return tuple(map(_as_tuple, nested)) if isinstance(nested, list) else nested


_FIRST, _PAIRS, LAST, _LAST_ALONE = (
    _as_tuple(_TABLES["shapes"][name]) for name in ("first", "pairs", "last", "last_alone")
)


def kinds_of(parameter: inspect.Parameter) -> list[str]:
    """What an argument may be, the likeliest first."""
    if parameter.default not in (parameter.empty, None):
        return [DEFAULT]
    annotation = getattr(parameter.annotation, "__name__", str(parameter.annotation))
    if annotation in _TABLES["annotations"]:
        return _TABLES["annotations"][annotation]
    if parameter.kind is parameter.VAR_POSITIONAL:
        return [TENSOR]
    by_name = named(parameter)
    others = [TENSOR, NUMBER, INDEX, INTEGER, ROWS, MASK, BOOL]
    if "Tensor" in annotation:
        by_name, others = [kind for kind in by_name if kind in TENSORS], [TENSOR, INDEX, ROWS]
    elif by_name and by_name[0] in (NUMBER, INTEGER, COUNT):
        others = [TENSOR, NUMBER, INTEGER]
    return list(dict.fromkeys([*by_name, *others]))


def example_of(parameter: inspect.Parameter) -> str:
    """The code of a value for an argument, as a suggestion to complete."""
    kind = kinds_of(parameter)[0]
    return repr(parameter.default) if kind == DEFAULT else _TABLES["examples"][kind]


def named(parameter: inspect.Parameter) -> list[str]:
    """What the name of an argument says of its kind; an empty list if nothing."""
    names = _TABLES["names"].items()
    return next((kinds for name, kinds in names if re.fullmatch(name, parameter.name)), [])


def orders(chosen: list[inspect.Parameter]) -> Iterator[tuple[str, ...]]:
    """Combinations of kinds, those with the fewest unlikely kinds first; one needs a gradient."""
    options = [kinds_of(p)[:5] for p in chosen]
    if options[0][0] in (NUMBER, INTEGER, COUNT):  # whatever its name, it comes first
        options[0] = [TENSOR, *options[0]]
    indices = itertools.product(*(range(len(kinds)) for kinds in options))
    for places in sorted(indices, key=sum)[:60]:
        kinds = tuple(kinds[place] for kinds, place in zip(options, places, strict=True))
        if TENSOR in kinds or MASK in kinds:
            yield kinds


@functools.cache
def shapes_for(count: int) -> list[Shapes]:
    """Shapes for so many tensors, the likeliest first; those that fit by chance come last."""
    if count == 1:
        return [*((shape,) for shape in _FIRST), *_LAST_ALONE]
    same = [(shape,) * count for shape in _FIRST]
    if count == 2:
        return [*same[:1], *_PAIRS, *same[1:], *LAST]
    others: list[Shapes] = []
    for pair in ((_FIRST[0], _FIRST[0]), *_PAIRS, *((s, s) for s in _FIRST[1:]), *LAST):
        for third in _thirds(*pair):
            others.append((*pair, *[third] * (count - 2)))
            if count > 3:
                others.append((*pair, third, *[pair[0][-2:-1] + pair[1][-2:-1]] * (count - 3)))
    return sorted(dict.fromkeys([*same[:1], *others]), key=is_by_chance)


def is_by_chance(shapes: Shapes) -> bool:
    """Whether sizes that could differ are equal, so that a wrong gradient has the right shape."""
    if len(shapes[0]) < 2 or shapes[:2] in (*LAST, *_LAST_ALONE):
        return True
    first, second, *others = shapes if len(shapes) > 1 else shapes * 2
    return first == second and not {*others} <= {first, first[-1:], ()}


def _thirds(first: tuple[int, ...], second: tuple[int, ...]) -> Iterable[tuple[int, ...]]:
    """Shapes of a third tensor beside two others: theirs, or one made of their sizes."""
    yield second
    yield from ((n,) for n in (*second[:1], *second[-1:], *first[-1:], *first[:1]))
    yield first
    yield from ((*first[:-1], *second[-1:]), (first[:1] + second[:1]), (*second[:-1], 3), ())


def shapes_in_equation(equation: str) -> Shapes:
    """Shapes that fit an equation of einsum, a size of its own for each letter.

    >>> shapes_in_equation("bi, ij -> bj")
    ((5, 7), (7, 3))
    """
    operands = equation.replace(" ", "").partition("->")[0].split(",")
    sizes = dict(
        zip(sorted({*"".join(operands)}), itertools.cycle((5, 7, 3, 4, 2, 6)), strict=False)
    )
    return tuple(tuple(sizes[letter] for letter in operand) for operand in operands)

"""Right Functions, and the mistakes that people make in them, for `python benchmarks/checker.py`.

Each module of this package is a plain file of right Functions. A comment below a line is a mistake:
its name in brackets, then the code that takes the place of the line above.

    return grad_output * (x > 0)
    # [no mask] return grad_output
    # [wrong mask] return grad_output * (x < 0)

Two comments with one name in the same Function belong together, for a mistake of two lines. A
number at the end tells mistakes of one kind apart: "wrong mask 2". Nothing behind the bracket
deletes the line. Every kind has an entry in `causes.KINDS`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_MISTAKE = re.compile(r"\s*# \[(?P<name>[^]]+)\] ?(?P<code>.*)")


@dataclass(frozen=True)
class RightFunction:
    """A right Function, and the same with one mistake each.

    Args:
        name: of the class, or of the callable.
        source: a whole Python file that defines it.
        mistakes: the name of each mistake, with the source of the file that makes it.
    """

    name: str
    source: str
    mistakes: dict[str, str]


def kind_of(mistake: str) -> str:
    """The kind of a mistake: its name without the number.

    >>> kind_of("wrong mask 2")
    'wrong mask'
    """
    return re.sub(r" \d+$", "", mistake)


def right_functions() -> list[RightFunction]:
    """All of them, in the order of the files."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return [
        function
        for path in files
        if path.stem not in ("__init__", "causes")
        for function in _in_file(path.read_text())
    ]


def _in_file(text: str) -> Iterator[RightFunction]:
    """One for each public class or function; what stands before the first belongs to every one."""
    starts = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            starts[node.name] = first - 1
    lines = text.splitlines()
    head = lines[: min(starts.values())]
    ends = [*list(starts.values())[1:], len(lines)]
    for (name, start), end in zip(starts.items(), ends, strict=True):
        section = lines[start:end]
        mistakes = {match["name"]: "" for match in map(_MISTAKE.match, section) if match}
        yield RightFunction(
            name,
            _with_mistake(head + section, None),
            {mistake: _with_mistake(head + section, mistake) for mistake in mistakes},
        )


def _with_mistake(lines: list[str], name: str | None) -> str:
    """The lines with one of the mistakes made, or none, and without the comments that tell them."""
    made: list[str] = []
    for line in lines:
        match = _MISTAKE.match(line)
        if match is None:
            made.append(line)
        elif match["name"] == name:
            replaced = made.pop()
            indent = replaced[: len(replaced) - len(replaced.lstrip())]
            made += [indent + match["code"]] if match["code"] else []
    return "\n".join(made) + "\n"

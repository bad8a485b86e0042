"""What was found out about one Function, as data and in words."""

from __future__ import annotations

import textwrap
import tomllib
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

JUMP = 1e5  # a one-sided slope as steep as that, at a point without a derivative, is a jump


_WORDS: dict[str, str] = tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))


def say(key: str, **values: Any) -> str:
    """The entry of words.toml with its {names} filled in.

    >>> say("no conj")[:28]
    'It is the conjugate of the r'
    """
    return _WORDS[key].strip().format(**values).replace(".  ", ". ").strip()


@dataclass
class Finding:
    """Something wrong.

    Args:
        kind: two or three words, the same for the same mistake, such as "no mask".
        text: one or more sentences for a learner.
        hint: the end of the text, on the cause or on what to do; may be empty.
        table: lines that show the numbers between text and hint; may be empty.
        about: the argument, or what else it is about; may be empty.
    """

    kind: str
    text: str
    hint: str = ""
    table: str = ""
    about: str = ""

    def lines(self, width: int = 80) -> list[str]:
        """The text, the table before the hint; lines of code stay as they are."""
        if not self.table:
            return [line for text in self.text.split("\n") for line in _wrapped(text, width)]
        start = self.text.removesuffix(self.hint)
        table = [f"    {line}" for line in self.table.splitlines()]
        return [*_wrapped(start, width), *table, *_wrapped(self.hint, width)]


def finding(kind: str, key: str = "", **values: Any) -> Finding:
    """A finding with the words of `key` (default: of its kind); it is about the value `name`."""
    return Finding(kind, say(key or kind, **values), about=values.get("name", ""))


@dataclass
class Kink:
    """A point at which forward has no derivative, and what backward answers there."""

    where: str
    value: float
    left: float
    right: float
    backward: float
    relu: float | None

    def __str__(self) -> str:
        what = "jumps" if max(abs(self.left), abs(self.right)) > JUMP else "has a kink"
        text = (
            f"At {self.where} = {self.value:.6g} forward {what}: its slope is "
            f"{self.left:.4g} from the left, {self.right:.4g} from the right. "
            f"backward gives {self.backward:.4g}"
        )
        return text + ("." if self.relu is None else f"; torch.relu gives {self.relu:.4g}.")


@dataclass(repr=False)
class Verdict:
    """What was found out about one Function; shown as its report in a notebook.

    Args:
        name: the name of the Function.
        verdict: "exact", "wrong", "surrogate", "kink" (the samples held kinks), or "cannot run".
        declared: what its author declares it to be: "exact", "surrogate", or "wrong".
        derivative_of: what backward should be the derivative of, as its author declares: "forward",
            "its surrogate", or "no function".
        mistake: the kind of finding that its author declares, or None.
        findings: what is wrong; empty for an exact Function.
        kinks: points without a derivative; never wrong.
        notes: what is worth knowing and not wrong.
        inputs: the arguments that were tried, a line each.
        exact_for: the inputs whose gradient was checked, if not all of them were.
        largest_error: largest difference between backward and the numerical gradient of forward
            in any element; None where it could not be computed.
        second_derivative: "right", "refused" (`once_differentiable`), "raises",
            "no graph", "wrong", or "-".
        vmap: whether it works under `torch.func.vmap` and `torch.func.grad`.
        vmap_reason: why not, or an empty string.
        users_lines: the traceback of a fault in the Function's own code, starting there; of a fault
            in the check, all of it.
        printed: the end of what the code under check wrote to stdout and stderr.
    """

    name: str
    verdict: str = "exact"
    declared: str = "exact"
    derivative_of: str = "forward"
    mistake: str | None = None
    findings: list[Finding] = field(default_factory=list)
    kinks: list[Kink] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    exact_for: list[str] = field(default_factory=list)
    largest_error: float | None = None
    second_derivative: str = "-"
    vmap: bool = False
    vmap_reason: str = ""
    users_lines: str = ""
    printed: str = ""

    @classmethod
    def from_plain(cls, record: dict[str, Any]) -> Verdict:
        """A verdict from the plain data of `to_plain`, as it comes from a child process."""
        findings = [Finding(**finding) for finding in record["findings"]]
        kinks = [Kink(**kink) for kink in record["kinks"]]
        return cls(**{**record, "findings": findings, "kinks": kinks})

    def to_plain(self) -> dict[str, Any]:
        """Dictionaries, lists, texts and numbers alone."""
        return asdict(self)

    @property
    def kinds(self) -> list[str]:
        """The kinds of all findings, in order."""
        return [finding.kind for finding in self.findings]

    @property
    def words(self) -> str:
        """The verdict in a few words: "exact, kink" or "wrong (no mask)"."""
        if self.kinds:
            kind = self.mistake if self.mistake in self.kinds else self.kinds[0]
            return f"{self.verdict} ({kind})"
        words = self.verdict
        if self.exact_for and self.verdict == "exact":
            words += f" for {', '.join(self.exact_for)}"
        return f"{words}, kink" if self.kinks and self.verdict != "kink" else words

    @property
    def right(self) -> bool:
        """Whether backward is the derivative of forward, or of the declared surrogate."""
        return self.verdict in ("exact", "kink", "surrogate")

    @property
    def statement(self) -> str:
        """What is true of a backward in which nothing was found."""
        what = f"backward is the derivative of {self.derivative_of}"
        declared = ", as it declares; so its values were not compared"
        return f"{what}{declared if self.derivative_of == 'no function' else ''}."

    @property
    def as_declared(self) -> bool:
        """Whether the Function is what its author declares it to be."""
        if self.mistake is not None:
            return self.verdict == "wrong" and self.mistake in self.kinds
        if self.declared == "surrogate":
            return self.verdict == "surrogate"
        return self.verdict in ("exact", "kink")

    def report(self, width: int = 80) -> str:
        """All of it for a reader, in lines of at most `width` characters but for `users_lines`."""
        lines = [f"{self.name}: {self.words}"]
        for finding in self.findings:
            lines += finding.lines(width)
        if not self.findings:
            lines += _wrapped(self.statement, width)
        told = [finding.about for finding in self.findings if finding.kind == "kink"]
        kinks = [kink for kink in self.kinks if kink.where not in told]
        for text in [*map(str, kinks), *self.notes]:
            lines += _wrapped(text, width)
        why_not = f"no: {self.vmap_reason}" if self.vmap_reason else ""
        facts = {
            "inputs": "\n".join(self.inputs),
            "largest error": "" if self.largest_error is None else f"{self.largest_error:.2g}",
            "second derivative": _SECOND[self.second_derivative],
            "torch.func": "vmap and grad work" if self.vmap else why_not,
        }
        for name, text in facts.items():
            for line in text.splitlines():
                start = f"  {name:19}"
                lines += textwrap.wrap(
                    line, width, initial_indent=start, subsequent_indent=" " * len(start)
                )
                name = ""
        if not self.as_declared and self.declared != "exact":
            declared = f"{self.declared} ({self.mistake})" if self.mistake else self.declared
            lines.append(f"  It declares itself {declared}.")
        if self.users_lines:
            lines += ["", self.users_lines.rstrip()]
        return "\n".join(lines)

    __repr__ = report

    def _repr_markdown_(self) -> str:
        return f"```text\n{self.report()}\n```"


_SECOND = {
    "right": "right",
    "refused": "refused (once_differentiable)",
    "raises": "raises an error",
    "no graph": "not recorded: backward's result has no graph",
    "wrong": "wrong",
    "-": "",
}


def _wrapped(text: str, width: int) -> list[str]:
    if text.startswith("    "):
        return [f"  {text}"]
    return textwrap.wrap(text, width, initial_indent="  ", subsequent_indent="  ")

"""How well does check.py tell right Functions from wrong ones, and does it name the true cause?

    python benchmarks/checker.py                 # some minutes, two processes
    python benchmarks/checker.py ReLU Softmax    # these Functions alone
    python benchmarks/checker.py --misses        # list every miss and every false cause too

It checks the Functions of checker_collection/ as they are and with each of the mistakes there: with
the sample inputs that their author declares, without them, and beside that with `gradcheck` and
`gradgradcheck` on the same samples. A mistake counts as found where the right Function is called
right and the one with the mistake is not.
"""

from __future__ import annotations

import argparse
import inspect
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch.autograd import gradcheck, gradgradcheck
from tqdm import tqdm

HOME = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HOME))

from benchmarks.checker_collection import RightFunction, kind_of, right_functions  # noqa: E402
from benchmarks.checker_collection.causes import judge  # noqa: E402
from lab.checking import limited  # noqa: E402
from lab.checking.check import check_function  # noqa: E402
from lab.checking.limited import call_in_children  # noqa: E402
from lab.checking.targets import module_of_file  # noqa: E402
from lab.errors import one_line  # noqa: E402

LIMIT_SECONDS = 30.0  # one check; a mistake may loop for ever
PROCESSES = 2
SAMPLES = ("sample_inputs", "kink_inputs")


class Answer(NamedTuple):
    """What one way of checking says of one Function."""

    verdict: str
    findings: list[tuple[str, str]]
    seconds: float

    @property
    def right(self) -> bool:
        return self.verdict in ("exact", "kink", "surrogate")


def with_samples(target: Any) -> tuple[str, list[tuple[str, str]]]:
    """check.py with the declared inputs."""
    verdict = check_function(target)
    return verdict.verdict, [(finding.kind, finding.text) for finding in verdict.findings]


def without_samples(target: Any) -> tuple[str, list[tuple[str, str]]]:
    """check.py with the inputs that it guesses."""
    for name in SAMPLES:
        if hasattr(target, name):
            delattr(target, name)
    return with_samples(target)


def by_gradcheck(target: Any) -> tuple[str, list[tuple[str, str]]]:
    """What PyTorch ships, on the declared inputs in float64."""
    torch.manual_seed(0)
    apply = getattr(target, "apply", target)
    for args in target.sample_inputs():
        leaves = leaves_of(target, map(double, args))
        try:
            gradcheck(apply, leaves)
            if not refuses_a_second_derivative(target):
                gradgradcheck(apply, leaves)
        except Exception as error:  # either a verdict, or whatever the mistake raises
            return "wrong", [("gradcheck", one_line(error))]
    return "exact", []


def refuses_a_second_derivative(target: Any) -> bool:
    """Whether it says once_differentiable, so that nobody would ask for a second derivative."""
    return hasattr(getattr(target, "backward", None), "__wrapped__")


def is_float(arg: Any) -> bool:
    """Whether it is a tensor that can need a gradient."""
    return isinstance(arg, torch.Tensor) and (arg.is_floating_point() or arg.is_complex())


def double(arg: Any) -> Any:
    """A tensor that can need a gradient in double precision; anything else as it is."""
    return arg.to(torch.complex128 if arg.is_complex() else torch.float64) if is_float(arg) else arg


def leaves_of(target: Any, args: Iterable[Any]) -> list[Any]:
    """Copies, as leaves that need a gradient if they can and are not declared to have none."""
    names = list(inspect.signature(getattr(target, "forward", target)).parameters)[1:]
    passive = [i for i, name in enumerate(names) if name in getattr(target, "no_gradient", ())]
    return [
        arg.detach().clone().requires_grad_(i not in passive) if is_float(arg) else arg
        for i, arg in enumerate(args)
    ]


WAYS: dict[str, Callable[[Any], tuple[str, list[tuple[str, str]]]]] = {
    "with samples": with_samples,
    "without samples": without_samples,
    "gradcheck": by_gradcheck,
}


def load(name: str, source: str, folder: Path) -> Any:
    """The Function that a file with this source defines, as check.py would find it there."""
    path = folder / f"{name.lower()}.py"
    path.write_text(source)
    return getattr(module_of_file(path), name)


def ask(name: str, source: str) -> dict[str, Any]:
    """What each way says of one Function: verdict, findings, seconds. Runs in a child process."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    said: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for way, check in WAYS.items():
            target = load(name, source, Path(folder))
            start = time.perf_counter()
            try:
                verdict, findings = check(target)
            except Exception as error:  # the check itself failed; that is an answer too
                verdict, findings = "check failed", [("check failed", one_line(error))]
            said[way] = verdict, findings, time.perf_counter() - start
    return said


def answers(sources: list[tuple[str, str]]) -> Iterator[dict[str, Answer]]:
    """What each way says of each Function, given as name and source, in the same order."""
    calls = (partial(ask, *source) for source in sources)
    for outcome in call_in_children(calls, LIMIT_SECONDS, at_once=PROCESSES):
        nothing = outcome.how, [(outcome.how, outcome.text)], LIMIT_SECONDS
        said = outcome.value if outcome.how == "returned" else dict.fromkeys(WAYS, nothing)
        yield {way: Answer(*answer) for way, answer in said.items()}


@dataclass
class Score:
    """What one way of checking gets right."""

    right: list[str] = field(default_factory=list)
    false_alarms: list[str] = field(default_factory=list)
    found: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    causes: dict[str, list[str]] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)


def score(functions: list[RightFunction], given: Iterator[Answer]) -> Score:
    """Add up the answers of one way, to each right Function and then to each of its mistakes."""
    result = Score()
    for function in functions:
        of_right = next(given)
        result.seconds.append(of_right.seconds)
        if of_right.right:
            result.right.append(function.name)
        else:
            result.false_alarms.append(f"{function.name}: {_said(of_right)}")
        for mistake in function.mistakes:
            answer = next(given)
            result.seconds += [answer.seconds] if answer.seconds < LIMIT_SECONDS else []
            name = f"{function.name}, {mistake}"
            if not of_right.right or answer.right:
                result.missed.append(f"{name}: {_said(answer)}")
                continue
            result.found.append(name)
            cause = judge(kind_of(mistake), answer.findings)
            result.causes.setdefault(cause, []).append(f"{name}: {_said(answer)}")
    return result


def _said(answer: Answer) -> str:
    return "; ".join([answer.verdict, *(f"[{kind}] {text}" for kind, text in answer.findings)])


def table(scores: dict[str, Score]) -> str:
    """The scores side by side, in Markdown."""
    heads = ["", *(f"check.py {way}" for way in list(scores)[:2]), "gradcheck + gradgradcheck"]

    def row(label: str, value: Callable[[Score], str]) -> list[str]:
        return [label, *(value(score) for score in scores.values())]

    def of(part: list[str], *others: list[str]) -> str:
        return f"{len(part)} of {len(part) + sum(map(len, others))}"

    def cause(judged: str, score: Score) -> str:
        return str(len(score.causes.get(judged, []))) if score is not scores["gradcheck"] else "-"

    rows = [
        row("right Functions called right", lambda score: of(score.right, score.false_alarms)),
        row("mistakes found", lambda score: of(score.found, score.missed)),
        row("cause named, and true", partial(cause, "named true")),
        row("cause named, and false", partial(cause, "named false")),
        row("cause not named", partial(cause, "not named")),
        row("seconds for one, median", lambda score: f"{statistics.median(score.seconds):.2f}"),
        row("seconds for one, slowest that ended", lambda score: f"{max(score.seconds):.1f}"),
    ]
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def misses(way: str, score: Score) -> str:
    """Everything that this way got wrong, a line each."""
    parts = {
        "right, and not called right": score.false_alarms,
        "mistake not found": score.missed,
        "false cause": score.causes.get("named false", []),
        "a kind of finding that causes.py does not know": score.causes.get("unknown", []),
    }
    lines = [f"\n{way}"]
    for label, entries in parts.items():
        lines += [f"  {label}: {len(entries)}", *(f"    {entry}" for entry in entries)]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> None:
    """Run the command."""
    summary, _, rest = __doc__.partition("\n")
    parser = argparse.ArgumentParser(
        description=summary, epilog=rest, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="Functions of the collection (default: all)")
    parser.add_argument("--misses", action="store_true", help="list what went wrong, a line each")
    options = parser.parse_args(arguments)
    functions = right_functions()
    known = {function.name for function in functions}
    if unknown := sorted(set(options.names) - known):
        parser.error(f"{unknown[0]} is not in the collection; it has {', '.join(sorted(known))}")
    functions = [f for f in functions if not options.names or f.name in options.names]
    mistakes = sum(len(function.mistakes) for function in functions)
    kinds = {kind_of(mistake) for function in functions for mistake in function.mistakes}
    sources = [
        (function.name, source)
        for function in functions
        for source in (function.source, *function.mistakes.values())
    ]
    limited.PRELOADED += ["sympy", "torch._dynamo"]  # else each child would import them again
    start = time.perf_counter()
    given = list(tqdm(answers(sources), total=len(sources), leave=False, disable=None))
    scores = {way: score(functions, (answer[way] for answer in given)) for way in WAYS}
    print(
        f"{len(functions)} right Functions, {mistakes} mistakes of {len(kinds)} kinds, "
        f"{time.perf_counter() - start:.0f} s on {PROCESSES} processes\n"
    )
    print(table(scores))
    unknown_kinds = sum(len(score.causes.get("unknown", [])) for score in scores.values())
    if options.misses:
        for way, of_way in scores.items():
            print(misses(way, of_way))
    elif unknown_kinds:
        print(f"\n{unknown_kinds} findings are of a kind that causes.py does not know: --misses")


if __name__ == "__main__":
    main()

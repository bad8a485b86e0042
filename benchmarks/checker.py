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
import importlib.util
import multiprocessing
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch.autograd import gradcheck, gradgradcheck
from tqdm import tqdm

HOME = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HOME))

from benchmarks.checker_collection import RightFunction, kind_of, right_functions  # noqa: E402
from benchmarks.checker_collection.causes import judge  # noqa: E402
from lab.checking.check import check_function  # noqa: E402
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
        leaves = [double(arg) for arg in args]
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


def double(arg: Any) -> Any:
    """A tensor in double precision, as a leaf if it can need a gradient; anything else as it is."""
    if isinstance(arg, torch.Tensor) and (arg.is_complex() or arg.is_floating_point()):
        wide = torch.complex128 if arg.is_complex() else torch.float64
        return arg.detach().to(wide).requires_grad_()
    return arg


WAYS: dict[str, Callable[[Any], tuple[str, list[tuple[str, str]]]]] = {
    "with samples": with_samples,
    "without samples": without_samples,
    "gradcheck": by_gradcheck,
}


def load(name: str, source: str, folder: Path) -> Any:
    """The Function that a file with this source defines, as check.py would find it there."""
    path = folder / f"{name.lower()}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return getattr(module, name)


def _answer(way: str, name: str, source: str, pipe: Connection) -> None:
    """Run in a process of its own, which an endless loop may block and a crash may end."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        target = load(name, source, Path(folder))
        start = time.perf_counter()
        try:
            verdict, findings = WAYS[way](target)
        except Exception as error:  # the check itself failed; that is an answer too
            verdict, findings = "check failed", [("check failed", one_line(error))]
        pipe.send(Answer(verdict, findings, time.perf_counter() - start))


Job = tuple[str, str, str]  # way, name, source


def answers(jobs: Iterable[Job]) -> Iterator[tuple[Job, Answer]]:
    """The answer to each job, two at a time, as they come."""
    context = multiprocessing.get_context("fork")  # torch is imported once, not 1,000 times
    running: dict[Connection, tuple[Job, Any, float]] = {}
    waiting = iter(jobs)
    while True:
        for job in waiting:
            receiver, sender = context.Pipe(duplex=False)
            process = context.Process(target=_answer, args=(*job, sender))
            process.start()
            sender.close()
            running[receiver] = job, process, time.monotonic() + LIMIT_SECONDS
            if len(running) == PROCESSES:
                break
        if not running:
            return
        first_end = min(end for _, _, end in running.values())
        ready = wait(list(running), timeout=max(0.0, first_end - time.monotonic()))
        for receiver, (job, process, end) in list(running.items()):
            if receiver in ready:
                try:
                    answer = receiver.recv()
                except EOFError:
                    answer = Answer("ended", [], 0.0)
            elif time.monotonic() >= end:
                process.kill()
                answer = Answer("no answer", [], LIMIT_SECONDS)
            else:
                continue
            process.join()
            receiver.close()
            del running[receiver]
            yield job, answer


@dataclass
class Score:
    """What one way of checking gets right."""

    right: list[str] = field(default_factory=list)
    false_alarms: list[str] = field(default_factory=list)
    found: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    causes: dict[str, list[str]] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)


def score(functions: list[RightFunction], given: dict[Job, Answer], way: str) -> Score:
    """Add up the answers of one way."""
    result = Score()
    for function in functions:
        of_right = given[way, function.name, function.source]
        result.seconds.append(of_right.seconds)
        if of_right.right:
            result.right.append(function.name)
        else:
            result.false_alarms.append(f"{function.name}: {_said(of_right)}")
        for mistake, source in function.mistakes.items():
            answer = given[way, function.name, source]
            result.seconds.append(answer.seconds)
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
        row("seconds for one, slowest", lambda score: f"{max(score.seconds):.1f}"),
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
    jobs = [
        (way, function.name, source)
        for way in WAYS
        for function in functions
        for source in (function.source, *function.mistakes.values())
    ]
    start = time.perf_counter()
    progress = tqdm(answers(jobs), total=len(jobs), leave=False, disable=None)
    given = dict(progress)
    scores = {way: score(functions, given, way) for way in WAYS}
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

"""Is this backward the derivative of this forward?

    python check.py                     every Function in functions/, a row each
    python check.py MyReLU SignSTE      some of them, in detail
    python check.py my_module.Swish     one of your own
    python check.py path/to/swish.py    all Functions in any file
    python check.py MyReLU --plot FILE  draw forward, backward and the numerical gradient
    python check.py exercises           what is solved, and what is next
    python check.py exercises.relu      one exercise; add --hint or --watch
    python check.py submissions/        grade a class: a folder for each student, or
                                        files such as STUDENT_e04_relu.py

Exit code 0 when all are right (in the table: as declared), 1 when one is not,
2 for a wrong command; 0 for a class once it has been graded.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from lab.checking.children import every_module, plot_of, verdicts_on
from lab.checking.verdict import Verdict
from lab.course.classroom import class_report, grade_class, write_csv, write_feedback
from lab.course.exercise import Exercise, find_exercises
from lab.course.grading import SECONDS, grade, grade_all, record
from lab.course.session import print_hint, print_overview, report, watch
from lab.errors import UserError, errors_as_messages
from lab.files import system_errors_named
from lab.jsonable import jsonable

FORMATS = (".png", ".svg", ".pdf")


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit code."""
    options = _options(arguments)
    device = _device(options.device)
    how = {"device": device, "seed": options.seed, "eps": options.eps, "atol": options.atol}
    exercises = [] if options.others else find_exercises(options.target or "")
    if options.others:
        names = [name for name in (options.target, *options.others) if not name.endswith(".py")]
        if any(map(find_exercises, names)):
            raise UserError("check one exercise at a time, or all: python check.py exercises")
    if options.csv or options.feedback or (not exercises and _is_class(options.target)):
        return _class(options, how)
    if exercises and options.plot:
        raise UserError("--plot draws a Function; for an exercise, give its file as the target")
    if exercises:
        verdicts = _exercises(exercises, options, how)
    elif options.plot and options.target is None:
        raise UserError("--plot draws one Function; name it: python check.py MyReLU --plot FILE")
    elif options.hint or options.watch:
        raise UserError("--hint and --watch are for an exercise: python check.py exercises --watch")
    else:
        return 0 if _functions(options, how) else 1
    return 0 if all(verdict.as_declared for verdict in verdicts) else 1


def _device(name: str) -> str:
    """The device to check on. The default is known without torch, which only the children need."""
    if name == "cpu":
        return name
    from lab.devices import pick_device

    device = pick_device(name)
    if device.type == "mps":
        raise UserError(
            "device=mps is not possible: MPS has no float64, which the check needs; use cpu or cuda"
        )
    return str(device)


def _functions(options: argparse.Namespace, how: dict[str, Any]) -> bool:
    """Print the verdicts. Returns True if all is as it should be."""
    asked = [options.target, *options.others]
    targets = every_module() if asked == [None] else [t for some in asked for t in _files(some)]
    verdicts = verdicts_on(targets, options.timeout, compiled=options.compile, **how)
    if options.json:
        shown = _print_json(verdicts)
    elif options.target is None:
        shown = _print_table(verdicts)
    else:
        shown = _print_reports(verdicts)
    drawn = options.plot is None or _draw(options, how)
    # Only in the table of all may a declared mistake be wrong.
    everything = options.target is None
    right = all(verdict.as_declared if everything else verdict.right for verdict in shown)
    return right and drawn


def _draw(options: argparse.Namespace, how: dict[str, Any]) -> bool:
    """Draw the Function, and say where the plot is. Returns True if there is one."""
    why_not = plot_of(options.target, options.plot, options.timeout, **how)
    shown = f"no plot: {why_not}" if why_not else f"plot: {os.path.relpath(options.plot)}"
    print(shown, file=sys.stderr)
    return not why_not


def _files(target: str) -> list[str]:
    """The files of a package of Functions, such as functions/; any other target as it is."""
    if not Path(target, "__init__.py").exists():
        return [target]
    return sorted(str(file) for file in Path(target).glob("*.py") if file.stem != "__init__")


def _is_class(target: str | None) -> bool:
    """Whether it is a folder, and no package of Functions."""
    folder = Path(target or "no target")
    return folder.is_dir() and not (folder / "__init__.py").exists()


def _class(options: argparse.Namespace, how: dict[str, Any]) -> int:
    if not _is_class(options.target):
        raise UserError("--csv and --feedback are for a class: python check.py submissions/")
    if options.others or options.hint or options.watch or options.plot or options.compile:
        raise UserError(
            "a class takes no more targets, and no --hint, --watch, --plot or --compile"
        )
    folder = Path(options.target)
    if options.feedback and options.feedback.resolve().is_relative_to(folder.resolve()):
        raise UserError(f"--feedback {options.feedback} lies in {folder}; name a folder elsewhere")
    submissions = grade_class(folder, seconds=options.timeout, **how)
    if options.json:
        _print_records([submission.to_plain() for submission in submissions])
    else:
        print(class_report(submissions), flush=True)
    # Last, as a file that can't be written must cost neither the marks nor the feedback.
    if options.feedback:
        write_feedback(submissions, options.feedback)
    if options.csv:
        with system_errors_named(options.csv):
            write_csv(submissions, options.csv)
    return 0


def _exercises(
    exercises: list[Exercise], options: argparse.Namespace, how: dict[str, Any]
) -> list[Verdict]:
    how = {**how, "seconds": options.timeout}
    if options.hint:
        print_hint(exercises, options.hint, **how)
        return []
    if options.watch:
        return watch(exercises, **how)
    if options.json:
        verdicts = list(grade_all(exercises, **how))
        for verdict in verdicts:
            print(verdict.printed, end="", file=sys.stderr)
        pairs = zip(exercises, verdicts, strict=True)
        _print_records([record(exercise, verdict) for exercise, verdict in pairs])
        return verdicts
    if len(exercises) > 1:
        return print_overview(exercises, **how)
    (exercise,) = exercises
    verdict = grade(exercise, **how)
    print(report(exercise, verdict))
    return [verdict]


def _options(arguments: list[str] | None) -> argparse.Namespace:
    summary, _, rest = (__doc__ or "").partition("\n")  # None under python -OO
    parser = argparse.ArgumentParser(
        description=summary, epilog=rest, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("target", nargs="?", help="Functions to check (default: all in functions/)")
    parser.add_argument("others", nargs="*", metavar="target", help=argparse.SUPPRESS)
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:N or auto")
    parser.add_argument("--seed", type=_seed, default=0, help="seed of the inputs (default 0)")
    parser.add_argument(
        "--eps", type=_step, default=1e-6, help="finite-difference step (default 1e-6)"
    )
    parser.add_argument(
        "--atol", type=_positive, default=1e-5, help="absolute tolerance (default 1e-5)"
    )
    parser.add_argument(
        "--compile", action="store_true", help="also say whether torch.compile keeps the backward"
    )
    parser.add_argument(
        "--timeout",
        type=_positive,
        default=SECONDS,
        metavar="SECONDS",
        help=f"time limit for one Function or answer (default {SECONDS})",
    )
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print a list of verdicts as JSON")
    output.add_argument(
        "--hint",
        action="count",
        help="print the idea behind an exercise; --hint --hint prints the first line of its answer",
    )
    output.add_argument(
        "--watch", action="store_true", help="check an exercise at every save, then the next"
    )
    parser.add_argument(
        "--plot", type=_image, metavar="FILE", help=f"draw the Function ({', '.join(FORMATS)})"
    )
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write the marks of a class here")
    parser.add_argument(
        "--feedback", type=Path, metavar="DIR", help="write a file for each student here"
    )
    return parser.parse_args(arguments)


def _image(text: str) -> Path:
    if Path(text).suffix.lower() in FORMATS:
        return Path(text)
    suffix = Path(text).suffix or "a name without a suffix"
    allowed = ", ".join(FORMATS)
    raise argparse.ArgumentTypeError(
        f"{text}: {suffix} is not a supported image format; use {allowed}"
    )


def _step(text: str) -> float:
    with suppress(ValueError):
        if 1e-9 <= float(text) <= 1e-2:
            return float(text)
    raise argparse.ArgumentTypeError(f"{text} is not a usable step; use 1e-9 to 1e-2")


def _positive(text: str) -> float:
    with suppress(ValueError):
        if 0 < float(text) < math.inf:
            return float(text)
    raise argparse.ArgumentTypeError(f"{text} is not a positive number")


def _seed(text: str) -> int:
    with suppress(ValueError):
        if 0 <= int(text) < 2**63:
            return int(text)
    raise argparse.ArgumentTypeError(f"{text} is not a seed; use a whole number from 0 to 2^63 - 1")


def _print_json(verdicts: Iterable[Verdict]) -> list[Verdict]:
    verdicts = list(verdicts)
    for verdict in verdicts:
        print(verdict.printed, end="", file=sys.stderr)
    _print_records([{**v.to_plain(), "as_declared": v.as_declared} for v in verdicts])
    return verdicts


def _print_records(records: list[dict[str, Any]]) -> None:
    print(json.dumps(jsonable(records), indent=2))


def _print_reports(verdicts: Iterator[Verdict]) -> list[Verdict]:
    shown: list[Verdict] = []
    for verdict in verdicts:
        print(("\n" if shown else "") + verdict.report())
        shown.append(verdict)
    return shown


def _print_table(verdicts: Iterator[Verdict]) -> list[Verdict]:
    """A row as soon as it is known; what is not as declared is said once more below."""
    row = "{:22}  {:27}  {:>7}  {:10}  {}".format
    print(row("", "", "largest", "second", "").rstrip())
    print(row("Function", "verdict", "error", "derivative", "vmap"))
    shown = []
    for verdict in verdicts:
        error = "-" if verdict.largest_error is None else f"{verdict.largest_error:.1e}"
        vmap = "yes" if verdict.vmap else "no" if verdict.vmap_reason else "-"  # not asked
        print(row(verdict.name, verdict.words, error, verdict.second_derivative, vmap), flush=True)
        shown.append(verdict)
    others = [verdict for verdict in shown if not verdict.as_declared]
    if not others:
        mistakes = sum(verdict.mistake is not None for verdict in shown)
        words = f"{mistakes} {'is a' if mistakes == 1 else 'are'} deliberate mistake"
        print(f"\nAll {len(shown)} behave as declared ({words}{'s' * (mistakes != 1)}).")
        return shown
    print(f"\n{len(others)} of {len(shown)} do not behave as declared:")
    for verdict in others:
        first = verdict.findings[0].text if verdict.findings else f"It is {verdict.words}."
        declared = f"declared {verdict.declared}"
        if verdict.mistake:
            declared += f" ({verdict.mistake})"
        text = f"{verdict.name}, {declared}: {first}"
        print(textwrap.fill(text, 80, initial_indent="  ", subsequent_indent="    "))
        if verdict.users_lines:
            print(textwrap.indent(verdict.users_lines.rstrip(), "    "))
    return shown


if __name__ == "__main__":
    with errors_as_messages():
        sys.exit(main())

"""At which step do these loss curves first differ, and by how much?

python compare.py                         every run under outputs/
python compare.py outputs/A outputs/B     these two, against the first
python compare.py outputs/SWEEP --reference myrelu
"""

from __future__ import annotations

import argparse
import io
import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from lab.comparing.numbers import Comparison
from lab.comparing.report import as_csv, as_json, print_comparison, why_no_step, write_plot
from lab.comparing.selection import filtered, latest, select
from lab.errors import UserError, errors_as_messages
from lab.recording.reading import notes, read_runs

EXAMPLES = """\
examples:
  python compare.py outputs/RUN outputs/OTHER_RUN
  python compare.py outputs/SWEEP --reference myrelu --tolerance 1e-6 --plot curves.pdf
  python compare.py --last 4
  python compare.py --filter data=digits --filter optimizer.lr=1.0
"""
OUTPUTS = Path("outputs")  # where train.py writes, seen from the same folder


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Compare recorded loss curves in a table and a plot: the step at which each\n"
        "first differs from a reference, and the largest relative difference. Runs that differ\n"
        "only in the seed share one row and are compared seed by seed. If the runs train several\n"
        "problems (data or model sizes), only the problem with the most runs is compared.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "paths", nargs="*", metavar="RUN_OR_FOLDER", help="default: all of outputs/"
    )
    parser.add_argument(
        "--filter",
        action="append",
        type=key_and_value,
        default=[],
        metavar="KEY=VALUE",
        help="only runs with this setting, as in function=myrelu, lr=0.1 or status=finished; "
        "given several times, all must hold",
    )
    parser.add_argument(
        "--last", type=positive, metavar="N", help="only the N runs that were written last"
    )
    parser.add_argument(
        "--reference",
        metavar="RUN",
        help="what to compare with: a run's folder, a row's label or a function (default: the row "
        "that shares the most points with the others; at a tie, one of function builtin)",
    )
    parser.add_argument(
        "--tolerance",
        type=tolerance,
        default=0.0,
        help="largest relative difference that counts as equal (default 0: bit for bit)",
    )
    parser.add_argument(
        "--plot",
        metavar="FILE",
        help="name of a plot (default: comparison.png beside the runs; none with --json or --csv)",
    )
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print JSON instead of the table")
    output.add_argument("--csv", action="store_true", help="print CSV instead of the table")
    output.add_argument(
        "--why",
        action="store_true",
        help="train two runs again up to their first difference, and say what caused it",
    )
    return parser.parse_args(arguments)


def tolerance(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 0")
    return value


def positive(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def key_and_value(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE, as in function=myrelu")
    return key, value


def existing(path: str) -> Path:
    if not os.path.exists(path):
        raise UserError(f"{path or repr(path)} does not exist; name a folder under outputs/")
    return Path(path)


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse_arguments(arguments)
    if options.plot is not None:
        check_plot(options.plot)
    if not options.paths and not OUTPUTS.exists():
        raise UserError(f"{OUTPUTS} does not exist here; make a run with python train.py")
    paths = [existing(path) for path in options.paths] or [OUTPUTS]
    runs, skipped = read_runs(paths)
    for line in notes(skipped):
        print(line, file=sys.stderr)
    if not runs:
        raise UserError(
            f"{', '.join(map(str, paths))} holds no run to compare; name a run or sweep folder"
        )

    runs = filtered(runs, options.filter)
    runs = latest(runs, options.last) if options.last else runs
    if options.why and len(runs) != 2:
        raise UserError(f"--why needs two runs, and there are {len(runs)}; name two folders")
    selection = select(runs, options.reference)
    if not selection.runs:
        error = why_no_step(selection.failed[0])
        raise UserError(f"no run in {', '.join(map(str, paths))} made a step: {error}")
    comparison = Comparison(selection.runs, options.reference, options.tolerance)
    if options.json:
        print(as_json(comparison, selection, skipped), flush=True)
    elif options.csv:
        print(as_csv(comparison), flush=True)
    else:
        filters = [word for pair in options.filter for word in ("--filter", "=".join(pair))]
        command = ["python", "compare.py", *options.paths, *filters]
        print_comparison(comparison, selection, command)
    if options.why:
        from lab.comparing.why import why  # imports torch, which takes two seconds

        sys.path.append(os.getcwd())  # a Function may be in the folder that compare.py is run from
        print(why(*runs), flush=True)
    if options.plot or not (options.json or options.csv):
        write_plot(comparison, sys.stderr, options.plot)


def check_plot(name: str) -> None:
    """Refuse a plot that can't be written, before anything is read.

    Raises:
        UserError: the name is empty, of an unknown format, or not that of a regular file.
    """
    from lab.comparing.plot import plot_format

    if not name:
        raise UserError("--plot '' is not the name of a file")
    try:
        plot_format(Path(name))
    except UserError as error:
        raise UserError(f"--plot {error}") from error


if __name__ == "__main__":
    if sys.stdout is None:  # closed by the shell
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    assert isinstance(sys.stdout, io.TextIOWrapper)
    sys.stdout.reconfigure(errors="backslashreplace")  # a folder may have any name
    with errors_as_messages():
        main()

"""At which step do these loss curves first differ, by how much, and why?

python compare.py                         every run under outputs/
python compare.py outputs/A outputs/B     these two, against the first
python compare.py outputs/A outputs/B --why
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

from lab.comparing.numbers import compare
from lab.comparing.table import as_csv, as_json, table, terminal_width
from lab.errors import UserError, errors_as_messages
from lab.recording.reading import find_runs, notes, read_runs

EXAMPLES = """\
examples:
  python compare.py outputs/RUN outputs/OTHER_RUN
  python compare.py outputs/SWEEP --reference myrelu --tolerance 1e-6 --plot curves.pdf
"""
OUTPUTS = Path("outputs")  # where train.py writes, seen from the same folder


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Compare recorded loss curves: the step at which each first differs from a "
        "reference,\nthe largest relative difference, a table and a picture.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "paths", nargs="*", metavar="RUN_OR_FOLDER", help="default: all of outputs/"
    )
    parser.add_argument(
        "--reference",
        metavar="RUN",
        help="name or folder of the run to compare with (default: of the runs with the same "
        "data and seed as most, the first of function builtin, else the first)",
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
        help="the picture (default: comparison.png beside the runs; none with --json or --csv)",
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
        raise argparse.ArgumentTypeError(f"{text!r}: a number of at least 0")
    return value


def existing(path: str) -> Path:
    if not os.path.exists(path):
        raise UserError(f"{path or repr(path)}: no such folder")
    if os.path.isfile(path) and not find_runs(Path(path))[0]:
        raise UserError(f"{path}: no run folder")
    return Path(path)


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse_arguments(arguments)
    if options.plot is not None:
        if not options.plot:
            raise UserError("--plot '': the name of a file")
        from lab.comparing.picture import format_of

        format_of(Path(options.plot))
    if not options.paths and not OUTPUTS.exists():
        raise UserError(f"{OUTPUTS}: no such folder; python train.py makes a run")
    paths = [existing(path) for path in options.paths] or [OUTPUTS]
    runs, skipped = read_runs(paths)
    for line in notes(skipped):
        print(line, file=sys.stderr)
    if not runs:
        raise UserError(f"no run to compare in {', '.join(map(str, paths))}")

    comparison = compare(runs, options.reference, options.tolerance)
    if options.json:
        print(as_json(comparison, skipped), flush=True)
    elif options.csv:
        print(as_csv(comparison), flush=True)
    else:
        print(table(comparison, terminal_width()), flush=True)
    if options.why:
        if len(runs) != 2:
            raise UserError(f"--why needs two runs, and there are {len(runs)}; name two folders")
        from lab.comparing.why import why  # imports torch, which takes two seconds

        sys.path.append(os.getcwd())  # a Function may be in the folder that compare.py is run from
        print(why(*runs), flush=True)
    if options.plot or not (options.json or options.csv):
        # Matplotlib takes a second to import, for which --json need not wait.
        from lab.comparing.picture import draw

        file = Path(options.plot or comparison.folder / "comparison.png")
        draw(comparison, file)
        print(f"picture: {os.path.relpath(file)}", file=sys.stderr)


if __name__ == "__main__":
    assert isinstance(sys.stdout, io.TextIOWrapper)
    sys.stdout.reconfigure(errors="backslashreplace")  # a folder may have any name
    with errors_as_messages():
        main()

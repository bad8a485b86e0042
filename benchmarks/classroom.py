"""How long it takes to grade a class of 30 students in 3 exercises, and whether each mark is right.

    python benchmarks/classroom.py

Among the answers are endless loops, crashes, `os._exit(0)`, forged verdicts, missing and misnamed
files. Exit code 1 if a mark is wrong.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HOME = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(HOME), str(HOME / "tests")]

from submissions import hand_in  # noqa: E402


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        deserved = hand_in(Path(folder), students=30)
        start = time.perf_counter()
        command = [sys.executable, str(HOME / "check.py"), folder, "--json"]
        ran = subprocess.run(command, capture_output=True, text=True, check=True)
        seconds = time.perf_counter() - start
    marks: dict[str, dict[str, str]] = {}
    for record in json.loads(ran.stdout):
        if record["exercise"]:
            marks.setdefault(record["student"], {})[record["exercise"]] = record["mark"]
    wrong = [
        f"{student}, {name}: {marks[student].get(name)}, expected {mark}"
        for student, row in deserved.items()
        for name, mark in row.items()
        if marks[student].get(name) != mark
    ]
    count = sum(map(len, deserved.values()))
    print(f"{count - len(wrong)} of {count} marks are right, in {seconds:.1f} s")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

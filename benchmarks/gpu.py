"""Try this lab on an NVIDIA GPU: run the CUDA tests, time CPU against GPU, print one table.

    python benchmarks/gpu.py    # some minutes; needs requirements-dev.txt

Exit code 0 when no test fails, 1 when one does, 2 without CUDA.
"""

from __future__ import annotations

import collections
import platform
import statistics
import sys
from pathlib import Path

import pytest
import torch

HOME = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HOME))

from benchmarks.benchmark import EXAMPLE, LARGEST, Sizes, ours, quiet  # noqa: E402

OUTCOMES = ("passed", "failed", "skipped")
Rates = dict[Sizes, tuple[float, float]]  # steps a second on the CPU and on the GPU


class Count:
    """A plugin of pytest that counts the outcomes of tests."""

    def __init__(self) -> None:
        self.outcomes: collections.Counter[str] = collections.Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        # A test also reports its set-up and its tear-down; these count where they go wrong.
        if report.when == "call" or report.outcome != "passed":
            self.outcomes[report.outcome] += 1


def run_cuda_tests() -> dict[str, int]:
    """Run every test that has "cuda" in its name; how many passed, failed and were skipped."""
    count = Count()
    pytest.main(["-k", "cuda", "--rootdir", str(HOME), str(HOME / "tests")], plugins=[count])
    return {outcome: count.outcomes[outcome] for outcome in OUTCOMES}


def steps_a_second(sizes: Sizes, device: str, steps: int, rounds: int = 3) -> float:
    """The median rate of function=myrelu, after a warm-up."""
    with quiet():
        seconds = [
            ours(f"device={device}", "threads=auto", sizes=sizes, steps=steps)
            for _ in range(rounds + 1)
        ]
    return 1 / statistics.median(seconds[1:])


def table(gpu: str, outcomes: dict[str, int], rates: Rates) -> str:
    """What to paste into an issue, as Markdown."""
    rows = {
        "GPU": gpu,
        "CPU": f"{platform.machine()}, {torch.backends.cpu.get_cpu_capability()}",
        "software": f"torch {torch.__version__}, Python {platform.python_version()}, "
        f"{platform.system()}",
        "CUDA tests": ", ".join(f"{outcomes[outcome]} {outcome}" for outcome in OUTCOMES),
    }
    for sizes, (cpu, cuda) in rates.items():
        size = "x".join(map(str, sizes))
        rates_there = f"{cpu:,.4g} on the CPU, {cuda:,.4g} on the GPU ({cuda / cpu:.2g} times)"
        rows[f"steps a second at {size}"] = rates_there
    return "\n".join(["| | |", "| --- | --- |", *(f"| {k} | {v} |" for k, v in rows.items())])


def main() -> int:
    """Run all of it; the exit code."""
    if not torch.cuda.is_available():
        print("This PyTorch finds no CUDA: nothing was run.", file=sys.stderr)
        return 2
    outcomes = run_cuda_tests()
    rates = {
        sizes: (steps_a_second(sizes, "cpu", steps), steps_a_second(sizes, "cuda", 10 * steps))
        for sizes, steps in ((EXAMPLE, 500), (LARGEST, 10))
    }
    print(f"\n{table(torch.cuda.get_device_name(), outcomes, rates)}")
    return 1 if outcomes["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())

"""Compare the speed of this lab with the plain script that it replaces.

    python benchmarks/benchmark.py             # about 9 minutes
    python benchmarks/benchmark.py --rounds 3  # faster and less precise

The contenders of a table run in turn, round after round. A time is the median over the rounds. A
ratio divides two times of the same round, and the median, smallest and largest ratio are printed,
so that a machine that becomes slower halfway through favours no contender.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from tqdm import tqdm

HOME = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HOME))

from benchmarks import plain  # noqa: E402
from lab.composing.compose import compose_config  # noqa: E402
from train import train  # noqa: E402

Sizes = tuple[int, int, int, int]  # samples, features, hidden units, targets
Contender = Callable[[], float]  # returns what a row shows: seconds or MiB

EXAMPLE: Sizes = plain.EXAMPLE
LARGE: Sizes = (512, 1024, 1024, 10)
LARGEST: Sizes = (2048, 2048, 2048, 10)
FUNCTIONS = ["builtin", "relu", "nn", "myrelu", "linearfunction", "linearfunction_in_out", "custom"]
FUNCTIONS += ["sign", "sign_ste", "numpy_softplus", "black_box", "borrowed_gradient"]
PAIRS = ["builtin", "myrelu", "nn", "linearfunction", "custom"]  # without and with a custom part
# A step small enough for every size: a loss that grows to infinity would change the arithmetic.
LR = 1e-9


def ours(*overrides: str, sizes: Sizes = EXAMPLE, steps: int = 500) -> float:
    """Train as train.py does, every step recorded and shown; returns the seconds a step."""
    keys = ("data.samples", "data.features", "model.hidden", "data.targets")
    size = [f"{key}={value}" for key, value in zip(keys, sizes, strict=True)]
    always = [*size, f"steps={steps}", f"optimizer.lr={LR}", "progress=true"]
    always.append(f"threads={torch.get_num_threads()}")  # as many as the plain loop has
    with tempfile.TemporaryDirectory() as folder:
        run = train(compose_config(*always, *overrides), Path(folder))
    return 1 / run.summary.steps_per_second


def theirs(sizes: Sizes = EXAMPLE, steps: int = 500, **options: object) -> float:
    """Run the plain script, each loss printed; returns the seconds a step."""
    return plain.fit(range(steps), sizes, lr=LR, **options) / steps


def theirs_recorded(sizes: Sizes = EXAMPLE, steps: int = 500, **options: object) -> float:
    """Run the plain script with `SummaryWriter` and a bar; returns the seconds a step."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        return plain.fit_recorded(steps, sizes, lr=LR, **options) / steps


def products(sizes: Sizes, steps: int, device: str) -> float:
    """Compute only the matrix products of a step; returns the seconds a step."""
    samples, features, hidden, targets = sizes
    x, w1, h, w2, g = (
        torch.randn(*shape, device=device)
        for shape in (
            (samples, features), (features, hidden), (samples, hidden), (hidden, targets),
            (samples, targets),
        )
    )  # fmt: skip
    plain.wait_for(device)
    start = time.perf_counter()
    for _ in range(steps):
        x.mm(w1), h.mm(w2)
        h.t().mm(g), g.mm(w2.t()), x.t().mm(h)
    plain.wait_for(device)
    return (time.perf_counter() - start) / steps


def process(*command: str) -> float:
    """Run `python *command` and return the seconds that it takes."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        subprocess.run([sys.executable, *command], cwd=folder, check=True, capture_output=True)
        return time.perf_counter() - start


def peak_memory(*command: str) -> float:
    """Run `python *command` and return the most memory that it ever held, in MiB (Linux only)."""
    peak = 0.0
    with tempfile.TemporaryDirectory() as folder:
        child = subprocess.Popen([sys.executable, *command], cwd=folder, stdout=subprocess.DEVNULL)
        status = Path(f"/proc/{child.pid}/status")
        # It only ever grows, so what was read last, 5 ms before the end, is the most there was.
        while child.poll() is None:
            if found := re.search(r"VmHWM:\s+(\d+) kB", status.read_text()):
                peak = int(found[1]) / 1024
            time.sleep(0.005)
    if child.returncode:
        raise RuntimeError(f"{' '.join(command)} failed")
    return peak


def table(
    title: str, contenders: dict[str, Contender], rounds: int, scale: float, unit: str
) -> None:
    """Run the contenders in turn and print their medians, and the ratio to the first of them."""
    results: dict[str, list[float]] = {name: [] for name in contenders}
    with tqdm(total=rounds * len(contenders), desc=title, leave=False, file=sys.stderr) as bar:
        for _ in range(rounds):
            for name, contender in contenders.items():
                with quiet():
                    results[name].append(contender() * scale)
                bar.update()
    first = next(iter(results.values()))
    print(f"\n{title}\n\n| | {unit} | relative to the first row |\n| --- | ---: | --- |")
    for name, values in results.items():
        ratios = [value / base for value, base in zip(values, first, strict=True)]
        spread = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        print(f"| {name} | {statistics.median(values):,.3g} | {spread} |", flush=True)


@contextlib.contextmanager
def quiet():
    """Throw away what a contender prints and draws: any other place would cost time."""
    with (
        open(os.devnull, "w") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
    ):
        yield


def loops(device: str, rounds: int) -> None:
    """Time a step of the plain loop, of this lab, and of the matrix products alone."""
    on = f"device={device}"
    for sizes, steps, times in (
        (EXAMPLE, 500, 3 * rounds),  # short, and so the noisiest
        (LARGE, 50, rounds),
        (LARGEST, 5, rounds),
    ):
        if device != "cpu":
            steps *= 10
        shape = "x".join(str(size) for size in sizes)
        table(
            f"A step at {shape} on {device}, {threads(device)}",
            {
                "the plain loop, loss printed": partial(theirs, sizes, steps, device=device),
                "the same with SummaryWriter and tqdm": partial(
                    theirs_recorded, sizes, steps, device=device
                ),
                "this lab, function=myrelu": partial(
                    ours, "function=myrelu", on, sizes=sizes, steps=steps
                ),
                "the matrix products alone": partial(products, sizes, steps, device),
            },
            times, 1e6, "µs",
        )  # fmt: skip
        functions = FUNCTIONS if sizes == EXAMPLE else PAIRS
        table(
            f"Functions at {shape} on {device}, {threads(device)}",
            {
                name: partial(ours, f"function={name}", on, sizes=sizes, steps=steps)
                for name in functions
            },
            times, 1e6, "µs",
        )  # fmt: skip


def details(device: str, rounds: int) -> None:
    """Time recording, compiling, more steps and more hidden units."""
    on = f"device={device}"
    table(
        f"Recording on {device}, {threads(device)}",
        {
            "one step in a million recorded, no bar": partial(
                ours, on, "log_every=1000000", "progress=false"
            ),
            "every step recorded, bar shown": partial(ours, on),
        },
        rounds, 1e6, "µs",
    )  # fmt: skip
    table(
        f"torch.compile on {device}, {threads(device)}",
        {
            "compile=false": partial(ours, on, sizes=EXAMPLE, steps=500),
            # The first steps compile: that is part of what it costs.
            "compile=true": partial(ours, on, "compile=true", sizes=EXAMPLE, steps=500),
            "compile=true, 20,000 steps": partial(ours, on, "compile=true", steps=20_000),
        },
        1, 1e6, "µs",
    )  # fmt: skip
    table(
        f"More steps on {device}, {threads(device)}",
        {f"{steps:,} steps": partial(ours, on, steps=steps) for steps in (500, 5_000, 50_000)},
        1, 1e6, "µs a step",
    )  # fmt: skip
    table(
        f"More hidden units on {device}, {threads(device)}",
        {
            f"{hidden:,} hidden units": partial(ours, on, sizes=(64, 1000, hidden, 10))
            for hidden in (50, 100, 200, 400, 800)
        },
        rounds, 1e6, "µs a step",
    )  # fmt: skip


def busy_machine(rounds: int) -> None:
    """Time numbers of threads, on an idle machine and while other processes use every core."""
    most = torch.get_num_threads()

    def plain_script(sizes: Sizes, steps: int) -> float:
        torch.set_num_threads(most)  # the runs of this lab set their own
        return theirs(sizes, steps)

    for others in (0, os.cpu_count() or 1):
        for sizes, steps in ((EXAMPLE, 200), (LARGE, 20), (LARGEST, 3)):
            shape = "x".join(str(size) for size in sizes)
            with spinning(others):
                table(
                    f"Threads at {shape} beside {others} busy processes",
                    {
                        f"plain script, {most} threads (PyTorch's default)": partial(
                            plain_script, sizes, steps
                        ),
                        "this lab, threads=1": partial(ours, "threads=1", sizes=sizes, steps=steps),
                        f"this lab, threads={most}": partial(
                            ours, f"threads={most}", sizes=sizes, steps=steps
                        ),
                        "this lab, threads=auto": partial(
                            ours, "threads=auto", sizes=sizes, steps=steps
                        ),
                    },
                    rounds, 1e6, "µs a step",
                )  # fmt: skip
    torch.set_num_threads(most)


@contextlib.contextmanager
def spinning(count: int):
    """Run processes that use a core each, until the block ends."""
    children = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for child in children:
            child.kill()
            child.wait()


def processes(rounds: int) -> None:
    """Time whole processes, as a user starts them, and measure their memory."""
    script, train_py = str(Path(plain.__file__)), str(HOME / "train.py")
    table(
        "A whole process, 500 steps",
        {
            "plain script, loss printed": partial(process, script),
            "the same with SummaryWriter and tqdm": partial(process, script, "recorded"),
            "this lab": partial(process, train_py, "function=myrelu"),
            "this lab, optimizer=sgd": partial(process, train_py, "optimizer=sgd"),
            "import torch alone": partial(process, "-c", "import torch"),
            "this lab, 1 step": partial(process, train_py, "steps=1"),
        },
        rounds, 1, "s",
    )  # fmt: skip
    table(
        "A sweep of 500-step runs, its table and plot included",
        {
            f"{jobs} job{'s' * (jobs > 1)}": partial(process, train_py, "-m", f"seed=range({jobs})")
            for jobs in (1, 10, 40)
        },
        1, 1, "s",
    )  # fmt: skip
    large = ["data.samples=2048", "data.features=2048", "model.hidden=2048", "steps=5"]
    large += [f"optimizer.lr={LR}"]
    table(
        "Peak memory of a process at 2048x2048x2048x10",
        {
            f"function={name}": partial(peak_memory, train_py, f"function={name}", *large)
            for name in PAIRS
        },
        rounds, 1, "MiB",
    )  # fmt: skip
    table(
        "Peak memory of a process at 64x1000x100x10",
        {
            f"{steps:,} steps": partial(peak_memory, train_py, f"steps={steps}")
            for steps in (500, 5_000, 50_000)
        },
        1, 1, "MiB",
    )  # fmt: skip


def threads(device: str) -> str:
    """The number of threads, for the heading of a table."""
    count = torch.get_num_threads()
    return f"{count} thread{'s' if count > 1 else ''}" if device == "cpu" else "asynchronous"


def main() -> None:
    """Print the machine, then all tables as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="of each table (default 5)")
    rounds = parser.parse_args().rounds
    most = torch.get_num_threads()
    print(
        f"{platform.machine()}, {os.cpu_count()} cores; {torch.backends.cpu.get_cpu_capability()}; "
        f"Python {platform.python_version()}, torch {torch.__version__}; medians of {rounds} rounds"
    )
    for count in sorted({1, min(2, most)}):
        torch.set_num_threads(count)
        loops("cpu", rounds)
    details("cpu", rounds)
    busy_machine(rounds)
    processes(rounds)
    if torch.cuda.is_available():
        print(f"\n{torch.cuda.get_device_name()}")
        loops("cuda", rounds)
        details("cuda", rounds)


if __name__ == "__main__":
    main()

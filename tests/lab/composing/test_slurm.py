"""Sweeps on a real Slurm: tests/slurm_node.sh sets one up, LAB_SLURM=1 lets these tests run."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import HOME, THREADS, command

from lab.recording.reading import read_run, read_runs
from tests.typed import typed, wait_for

ON_SLURM = ("-m", "hydra/launcher=slurm", "hydra.sweep.dir=s")
FOR_EVER = "steps=1000000000"


@pytest.fixture(autouse=True)
def _only_when_asked(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("slurm") and os.environ.get("LAB_SLURM") != "1":
        pytest.skip("needs a Slurm and LAB_SLURM=1: tests/slurm_node.sh")


@contextlib.contextmanager
def started(*words: str, cwd: Path) -> Iterator[subprocess.Popen]:
    """A sweep that is going on; what it says is in `out` and `err`."""
    with (
        (cwd / "out").open("w") as out,
        (cwd / "err").open("w") as err,
        subprocess.Popen(
            [sys.executable, HOME / "train.py", *ON_SLURM, *words],
            cwd=cwd, env=os.environ | THREADS, stdout=out, stderr=err, start_new_session=True,
        ) as process,
    ):  # fmt: skip
        try:
            yield process
        finally:
            process.kill()
            for array in arrays(cwd):
                subprocess.run(["scancel", array], check=False)


def arrays(cwd: Path) -> list[str]:
    return sorted({path.name.split("_")[0] for path in (cwd / "s/.submitit").glob("[0-9]*")})


def wait_for_curve(process: subprocess.Popen, cwd: Path, job: str) -> None:
    wait_for(lambda: any(cwd.glob(f"s/{job}/curve.csv")), lambda: process.poll() is None)


def statuses(cwd: Path) -> list[str]:
    return [run.summary.status for run in read_runs([cwd / "s"])[0]]


@pytest.mark.slow
def test_without_slurm_one_line_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    result = command("train.py", *ON_SLURM, "seed=0,1", cwd=tmp_path)
    assert result.returncode == 2
    (line,) = result.stderr.splitlines()
    assert "hydra/launcher=cores" in line
    assert not (tmp_path / "s").exists()


@pytest.mark.slurm
def test_an_unknown_partition_is_refused_in_one_line(tmp_path):
    result = command("train.py", *ON_SLURM, "hydra.launcher.partition=nope", "seed=0", cwd=tmp_path)
    assert result.returncode == 2
    (line,) = result.stderr.splitlines()
    assert "use hydra.launcher.partition=NAME" in line
    assert not (tmp_path / "s").exists()


@pytest.mark.slurm
def test_slurm_joblib_and_basic_give_the_same_losses(tmp_path):
    words = ("function=builtin,myrelu", "optimizer.lr=1e-6,1", "steps=50")
    losses = []
    for launcher in ("slurm", "cores", "basic"):
        folder = tmp_path / launcher
        result = command(
            "train.py", "-m", f"hydra/launcher={launcher}", f"hydra.sweep.dir={folder}", *words,
            cwd=tmp_path,
        )  # fmt: skip
        assert result.returncode == 1, result.stderr  # the second lr diverges
        assert "Traceback" not in result.stderr
        losses.append({run.folder.name: run.losses.tobytes() for run in read_runs([folder])[0]})
    assert len(losses[0]) == 4
    assert losses[0] == losses[1] == losses[2]


@pytest.mark.slurm
def test_each_cpu_gets_a_thread(tmp_path):
    words = (*ON_SLURM, "hydra.launcher.cpus_per_task=2", "steps=2", "seed=0")
    result = command("train.py", *words, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert [run.summary.threads for run in read_runs([tmp_path / "s"])[0]] == [2]


@pytest.mark.slurm
def test_a_cancelled_job_is_resumed_by_the_same_sweep(tmp_path):
    with started("seed=0,1", FOR_EVER, "flush_seconds=0.1", cwd=tmp_path) as process:
        wait_for_curve(process, tmp_path, "0_*")
        (array,) = arrays(tmp_path)
        assert f"{array}_0 to {array}_1" in (tmp_path / "out").read_text()
        subprocess.run(["scancel", array], check=True)
        assert process.wait(60) == 130
    assert "Traceback" not in (tmp_path / "err").read_text()
    assert "resume with: python train.py" in (tmp_path / "out").read_text()
    assert statuses(tmp_path)[0] == "interrupted"


def python_of(array: str, task: int) -> int:
    """The process that trains in a job of an array."""
    wanted = {f"SLURM_ARRAY_JOB_ID={array}", f"SLURM_ARRAY_TASK_ID={task}"}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or is another user's
            program, *words = (process / "cmdline").read_text().split("\0")
            is_python = Path(program).name.startswith("python") and "submitit.core._submit" in words
            if is_python and wanted <= {*(process / "environ").read_text().split("\0")}:
                return int(process.name)
    raise AssertionError("no such process")


@pytest.mark.slurm
def test_a_killed_job_does_not_take_the_others_with_it(tmp_path):
    words = ("seed=0", "flush_seconds=0.1", f"{FOR_EVER},20")
    with started(*words, cwd=tmp_path) as process:
        wait_for_curve(process, tmp_path, "0_*")
        wait_for_curve(process, tmp_path, "1_*")
        (array,) = arrays(tmp_path)
        os.kill(python_of(array, task=0), signal.SIGKILL)  # the node is this machine
        assert process.wait(60) == 1
    assert statuses(tmp_path) == ["running", "finished"]
    (lost,) = [line for line in (tmp_path / "err").read_text().splitlines() if "was lost" in line]
    assert lost.startswith("job 0 (")


@pytest.mark.slurm
def test_ctrl_c_cancels_the_jobs(tmp_path):
    with started("seed=range(6)", FOR_EVER, "flush_seconds=0.1", cwd=tmp_path) as process:
        wait_for_curve(process, tmp_path, "0_*")
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    (array,) = arrays(tmp_path)
    assert f"scancel {array}" in (tmp_path / "err").read_text()
    queue = subprocess.run(
        ["squeue", "--noheader", f"--jobs={array}"], capture_output=True, text=True, check=False
    )
    assert queue.stdout == ""
    assert statuses(tmp_path)[0] == "interrupted"


@pytest.mark.slurm
def test_jobs_whose_launcher_was_killed_are_waited_for(tmp_path):
    words = ("seed=range(4)", "steps=200")
    with started(*words, cwd=tmp_path) as process:
        wait_for_curve(process, tmp_path, "0_*")
        process.kill()
        process.wait()
        result = command("train.py", *ON_SLURM, *words, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "waiting for Slurm jobs of an earlier start" in result.stdout
    assert statuses(tmp_path) == ["finished"] * 4
    assert len(list(tmp_path.glob("s/*/events*"))) == 4
    with typed("seed=3", "steps=200", "hydra.run.dir=alone", cwd=tmp_path) as run:
        assert run.wait() == 0, run.err
    (last,) = tmp_path.glob("s/3_*")
    assert read_run(last).losses.tolist() == read_run(tmp_path / "alone").losses.tolist()

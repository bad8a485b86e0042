"""Whatever happens to `python train.py`: what it had computed can be read, and it can go on."""

from __future__ import annotations

import collections
import contextlib
import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from conftest import HOME, THREADS
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import compare
from lab.recording.reading import RecordedRun, read_run
from tests.faulty import faulty
from tests.recorded import damaged
from tests.typed import Typed, typed, wait_for

FOR_EVER = "steps=1000000000"
SMALL = ("data.features=5", "model.hidden=4")
TRIES = int(os.environ.get("TRIES", "15"))  # of a kill or a Ctrl-C at a random moment
OFTEN = "flush_seconds=0.01"


def the_run(cwd: Path) -> Path:
    (folder,) = (cwd / "outputs").iterdir()
    return folder


def recorded(folder: Path) -> RecordedRun:
    """The run as our readers take it; TensorBoard reads the same, and no file is left half done."""
    run = read_run(folder)
    assert run.steps.tolist() == list(range(len(run.steps)))
    assert not list(folder.glob("*.part"))
    return run


def steps_in_tensorboard(folder: Path) -> list[int]:
    events = EventAccumulator(str(folder), size_guidance={"scalars": 0})
    events.Reload()
    return [e.step for e in events.Scalars("loss")] if events.Tags()["scalars"] else []


def wait_for_steps(run: Typed, steps: int) -> Path:
    """Wait until the one run in its folder has this many steps on disk."""

    def seen() -> bool:
        curves = list(run.folder.glob("outputs/*/curve.csv"))
        return bool(curves) and curves[0].read_bytes().count(b"\n") > steps + 1

    run.wait_for(seen)
    return the_run(run.folder)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """The curve.csv of 500 steps in one go, by optimizer."""
    curves = {}

    def of(*overrides: str) -> bytes:
        if overrides not in curves:
            with typed(*overrides, cwd=tmp_path_factory.mktemp("run") / "whole") as run:
                assert run.wait() == 0, run.err
                curves[overrides] = (the_run(run.folder) / "curve.csv").read_bytes()
        return curves[overrides]

    return of


# Divergence


def test_divergence_is_one_line_and_the_curve_is_kept(tmp_path):
    with typed("optimizer.lr=1e-5", cwd=tmp_path) as run:
        assert run.wait() == 1
    assert run.err == (
        "error: diverged: the loss at step 4 is inf; the last finite loss was 5.05231e+22; "
        "try a smaller learning rate, optimizer.lr=1.0e-06\n"
    )
    folder = the_run(tmp_path)
    assert run.out == f"run: outputs/{folder.name}\n"
    told = recorded(folder)
    assert (told.summary.status, len(told.losses)) == ("diverged", 5)
    assert told.summary.final_loss == float("inf")
    assert steps_in_tensorboard(folder) == [0, 1, 2, 3, 4]


def test_the_other_jobs_of_a_sweep_go_on(tmp_path):
    with typed("-m", "optimizer.lr=1e-5,1e-6", "steps=9", cwd=tmp_path) as run:
        assert run.wait() == 1
    runs = [recorded(path.parent) for path in sorted(tmp_path.glob("outputs/*/*/curve.csv"))]
    assert [told.summary.status for told in runs] == ["diverged", "finished"]
    assert "0_myrelu_manual_sgd_cpu_lr-1e-05_steps-9: diverged: the loss at step 4" in run.out


# Ctrl-C and SIGTERM


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_after_the_step_and_says_how_to_go_on(tmp_path, number, code):
    with typed(FOR_EVER, OFTEN, "progress=true", cwd=tmp_path) as run:
        folder = wait_for_steps(run, 10)
        run.signal(number)
        assert run.wait() == code
    assert "Traceback" not in run.err
    outcome, _, how = run.out.splitlines()
    assert outcome.startswith("interrupted on cpu: ")
    told = recorded(folder)
    assert told.summary.status == "interrupted"
    steps = len(told.losses)
    assert steps >= 10 and f"at step {steps - 1};" in outcome
    assert steps_in_tensorboard(folder) == list(range(steps))

    before, _, arguments = how.partition("python train.py ")
    assert before == "resume with: "
    with typed(arguments, f"steps={steps + 5}", cwd=tmp_path) as run:
        assert run.wait() == 0, run.err
    assert recorded(folder).losses.tolist()[:steps] == told.losses.tolist()
    assert len(recorded(folder).losses) == steps + 5
    assert steps_in_tensorboard(folder) == list(range(steps + 5))


def test_a_signal_stops_a_sweep_after_the_job(tmp_path):
    with typed("-m", "seed=0,1,2", FOR_EVER, OFTEN, cwd=tmp_path) as run:
        run.wait_for(lambda: any(tmp_path.glob("outputs/*/0_*/curve.csv")))
        run.signal(signal.SIGINT)
        assert run.wait() == 130
    (job,) = tmp_path.glob("outputs/*/*/curve.csv")
    assert recorded(job.parent).summary.status == "interrupted"
    assert run.err == ""
    sweep = job.parent.parent.relative_to(tmp_path)
    how = "python train.py -m seed=0,1,2 steps=1000000000 flush_seconds=0.01"
    assert run.out.splitlines()[-1] == f"resume with: {how} hydra.sweep.dir={sweep}"


def test_a_second_ctrl_c_stops_at_once(tmp_path):
    with typed(faulty("CtrlCTwice"), cwd=tmp_path) as run:
        assert run.wait() == 130
    assert run.err == "interrupted\n"
    told = recorded(the_run(tmp_path))
    assert (told.summary.status, len(told.losses)) == ("interrupted", 4)


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="can't see what it has loaded")
def test_ctrl_c_while_torch_is_imported_gives_no_traceback(tmp_path):
    process = subprocess.Popen(
        [sys.executable, HOME / "train.py"],
        cwd=tmp_path, env=os.environ | THREADS, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    with process:
        try:
            loaded = Path(f"/proc/{process.pid}/maps")
            wait_for(lambda: "libtorch" in loaded.read_text(), lambda: process.poll() is None)
            process.send_signal(signal.SIGINT)
            said, _ = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (said, process.returncode) == (b"", -signal.SIGINT)
    assert not (tmp_path / "outputs").exists()


def test_ctrl_c_at_any_moment_of_the_start_gives_no_traceback(tmp_path):
    chance = random.Random(0)
    codes = collections.Counter()
    for i in range(TRIES):
        with typed("steps=20", cwd=tmp_path / f"{i}") as run:
            run.wait_for((tmp_path / f"{i}/stdout.txt").exists)
            run.process.join(chance.uniform(0, 0.25))
            if run.process.is_alive():
                run.signal(signal.SIGINT)
            codes[run.wait()] += 1
            assert run.err in ("", "interrupted\n")
        for summary in (tmp_path / f"{i}").glob("outputs/*/summary.json"):
            assert recorded(summary.parent).summary.status in ("finished", "interrupted")
    print(f"exit codes: {dict(codes)}")
    assert codes.keys() <= {0, 130, -signal.SIGINT}
    assert codes[130] > 0


# An exception in a step


def test_an_exception_keeps_the_steps_and_starts_in_the_users_file(tmp_path):
    with typed(
        "function.activation._target_=tests.faulty.RaisesAtStep250.apply", cwd=tmp_path
    ) as run:
        assert run.wait() == 1
    head, file, *_, last = run.err.splitlines()
    assert head == "Traceback (most recent call last):"
    assert "tests/faulty.py" in file
    assert last == "ValueError: no more"
    assert "hydra" not in run.err
    told = recorded(the_run(tmp_path))
    assert (told.summary.status, told.summary.error) == ("failed", "ValueError: no more")
    assert len(told.losses) == 250
    assert steps_in_tensorboard(told.folder) == list(range(250))


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (
            "BackwardRaises",
            ["tests/faulty.py", "grad_output.mm(", "RuntimeError: mat1"],
        ),
        ("ForwardTypeError", ["tests/faulty.py", "input + None", "TypeError: unsupported operand"]),
        ("ForwardOSError", ["tests/faulty.py", "no such table", "FileNotFoundError:"]),
        ("TwoGradients", ["train.py", "loss.backward()", "(expected 1, got 2)"]),
    ],
)
def test_a_fault_of_a_function_is_told_with_its_line(tmp_path, function, says):
    with typed(faulty(function), cwd=tmp_path) as run:
        assert run.wait() == 1
    head, file, line, *_, last = run.err.splitlines()
    assert head == "Traceback (most recent call last):"
    for told, said in zip((file, line, last), says, strict=True):
        assert said in told
    runs = list(tmp_path.glob("outputs/*"))
    # What fails when the lab tries it, before the first step, never became a run.
    assert [recorded(folder).summary.status for folder in runs] == (
        [] if function.startswith("Forward") else ["failed"]
    )


# SIGKILL, and a full disk


def test_a_kill_at_any_moment_leaves_a_run_that_can_be_read(tmp_path):
    """With -s: how many steps it cost."""
    chance = random.Random(1)
    arguments = (faulty("Counted"), FOR_EVER, "flush_seconds=0.05", "checkpoint_every=99", *SMALL)
    read, lost = [], []
    for i in range(TRIES):
        with typed(*arguments, cwd=tmp_path / f"{i}") as run:
            if i % 2:  # else, on a slow machine, none might come to train
                run.wait_for((run.folder / "calls").exists)
            run.process.join(chance.uniform(0.1, 0.6))
            run.signal(signal.SIGKILL)
            assert run.wait() == -signal.SIGKILL
        for summary in (tmp_path / f"{i}").glob("outputs/*/summary.json"):
            if not (summary.parent / "curve.csv").exists():
                continue  # killed between its first two files
            told = read_run(summary.parent)
            assert told.summary.status == "running"
            assert told.steps.tolist() == list(range(len(told.steps)))
            points = steps_in_tensorboard(told.folder)
            assert points == list(range(len(points)))
            if (run.folder / "calls").exists():
                calls = int((run.folder / "calls").read_text())
                read.append(len(told.steps))
                lost.append(calls - 1 - len(told.steps))  # the lab itself calls it once
    print(f"{TRIES} kills, {len(read)} in training: {sum(read)} steps read", end=", ")
    print(f"at most {max(lost)} lost at a time")
    assert len(read) >= TRIES // 2
    assert sum(read) > sum(lost)


def test_a_full_disk_is_one_line(tmp_path):
    with typed(FOR_EVER, OFTEN, *SMALL, cwd=tmp_path, largest_file=100_000) as run:
        assert run.wait() == 2
    folder = the_run(tmp_path)
    (line,) = run.err.splitlines()
    assert line.startswith(f"error: {folder}/")
    assert line.endswith(": File too large")
    told = recorded(folder)
    assert told.summary.status == "failed"
    assert len(told.losses) > 100
    points = steps_in_tensorboard(folder)
    assert points == list(range(len(points))) and len(points) > 100


def test_a_checkpoint_that_does_not_fit_leaves_the_curve_whole(tmp_path):
    with typed("steps=50", cwd=tmp_path, largest_file=100_000) as run:
        assert run.wait() == 2
    folder = the_run(tmp_path)
    assert run.err == f"error: {folder}/checkpoint.pt: File too large\n"
    assert len(recorded(folder).losses) == 50
    assert steps_in_tensorboard(folder) == list(range(50))
    assert not (folder / "checkpoint.pt").exists()


@pytest.mark.parametrize("kilobytes", [100, 300])
def test_a_file_system_that_runs_full(tmp_path, kilobytes):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(disk)]
    if shutil.which("mount") is None or subprocess.call(mount, stderr=subprocess.DEVNULL):
        pytest.skip("may not mount a file system")
    try:
        # What the screen shows goes there too, unless the disk is only where the runs are.
        with typed(
            FOR_EVER, OFTEN, *SMALL, f"hydra.run.dir={disk}/run", cwd=tmp_path / "here"
        ) as run:
            assert run.wait() == 2
        (line,) = run.err.splitlines()
        assert line.startswith(f"error: {disk}/run/")
        assert line.endswith(": No space left on device")
        told = recorded(disk / "run")
        assert len(told.losses) > 100
        points = steps_in_tensorboard(disk / "run")
        assert points == list(range(len(points))) and len(points) > 100
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize(
    ("kind", "reason"), [("file", "File exists"), ("below", "Not a directory")]
)
def test_a_folder_that_can_not_be_made_is_one_line(tmp_path, kind, reason):
    (tmp_path / "taken").touch()
    where = tmp_path / ("taken" if kind == "file" else "taken/run")
    with typed(f"hydra.run.dir={where}", cwd=tmp_path) as run:
        assert run.wait() == 2
    assert run.err == f"error: {where}: {reason}\n"


# Checkpoints


@pytest.mark.parametrize("optimizer", ["manual_sgd", "momentum", "adam"])
def test_250_and_250_steps_are_500_bit_for_bit(tmp_path, uninterrupted, optimizer):
    with typed(f"optimizer={optimizer}", "steps=250", cwd=tmp_path) as run:
        assert run.wait() == 0
    folder = the_run(tmp_path)
    with typed(f"resume=outputs/{folder.name}", "steps=500", cwd=tmp_path) as run:
        assert run.wait() == 0, run.err
    assert (folder / "curve.csv").read_bytes() == uninterrupted(f"optimizer={optimizer}")
    told = recorded(folder)
    assert told.summary.status == "finished"
    assert steps_in_tensorboard(folder) == list(range(500))
    assert the_run(tmp_path) == folder


def test_killed_again_and_again_a_run_still_comes_to_the_same_end(tmp_path, uninterrupted):
    overrides = ("optimizer=adam", *SMALL, "steps=1500")
    more = ("checkpoint_every=50", "flush_seconds=0.05", "hydra.run.dir=run")
    chance = random.Random(2)
    kills = 0
    while True:
        folder = tmp_path / "run"
        resumes = (folder / "checkpoint.pt").exists()
        shutil.rmtree(folder, ignore_errors=not folder.exists()) if not resumes else None
        with typed(*(["resume=run"] if resumes else [*overrides, *more]), cwd=tmp_path) as run:
            if kills < 6:
                run.process.join(chance.uniform(0.1, 0.5))
                run.signal(signal.SIGKILL)
            code = run.wait()
        if code == 0:
            break
        assert code == -signal.SIGKILL, run.err
        kills += 1
    assert kills == 6
    assert (folder / "curve.csv").read_bytes() == uninterrupted(*overrides)
    assert recorded(folder).summary.status == "finished"
    assert steps_in_tensorboard(folder) == list(range(1500))


def test_points_that_a_damaged_event_file_lost_are_written_again(tmp_path, finished):
    shutil.copytree(finished, tmp_path / "run")
    (events,) = (tmp_path / "run").glob("events*")
    cut(events, events.stat().st_size - 300)
    assert 0 < len(steps_in_tensorboard(tmp_path / "run")) < 20
    with typed("resume=run", "steps=30", cwd=tmp_path) as run:
        assert run.wait() == 0, run.err
    assert steps_in_tensorboard(tmp_path / "run") == list(range(30))


def test_a_stop_off_the_beat_leaves_no_point_behind(tmp_path):
    with typed("steps=25", "log_every=10", cwd=tmp_path) as run:
        assert run.wait() == 0
    folder = the_run(tmp_path)
    assert read_run(folder).steps.tolist() == [0, 10, 20, 24]
    with typed(f"resume=outputs/{folder.name}", "steps=45", cwd=tmp_path) as run:
        assert run.wait() == 0, run.err
    assert read_run(folder).steps.tolist() == [0, 10, 20, 30, 40, 44]
    assert steps_in_tensorboard(folder) == [0, 10, 20, 30, 40, 44]


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    cwd = tmp_path_factory.mktemp("finished")
    with typed("steps=20", "hydra.run.dir=run", cwd=cwd) as run:
        assert run.wait() == 0
    return cwd / "run"


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["hydra.run.dir=run"], "run already holds a run"),
        (["resume=run"], "the run has done 20 steps; ask for more"),
        (["resume=run", "steps=40", "optimizer.lr=1"], "run has optimizer.lr=1e-06"),
        (["resume=run", "steps=40", "function=relu"], "run has function=myrelu"),
        (["resume=nowhere"], "nowhere is not possible: nowhere does not exist"),
        (["-m", "resume=run", "steps=30,40"], "resume=run is not possible in a sweep"),
    ],
)
def test_what_is_refused_leaves_the_old_run_untouched(finished, arguments, says):
    before = contents(finished)
    with typed(*arguments, cwd=finished.parent) as run:
        assert run.wait() == 2
    (line,) = run.err.splitlines()
    assert says in line
    assert contents(finished) == before
    assert [path.name for path in finished.parent.iterdir() if path.is_dir()] == ["run"]


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda run: (run / "curve.csv").unlink(), "curve.csv is missing"),
        (lambda run: cut(run / "curve.csv", 100), "curve.csv has changed"),
        (lambda run: cut(run / "checkpoint.pt", 1000), "checkpoint.pt is damaged"),
        (lambda run: (run / "summary.json").write_text("{}"), "summary.json is not the summary"),
    ],
)
def test_a_damaged_run_is_not_resumed(finished, tmp_path, damage, says):
    shutil.copytree(finished, tmp_path / "run")
    damage(tmp_path / "run")
    before = contents(tmp_path / "run")
    with typed("resume=run", "steps=30", cwd=tmp_path) as run:
        assert run.wait() == 2
    (line,) = run.err.splitlines()
    assert line.startswith("error: resume=") and says in line
    assert contents(tmp_path / "run") == before


def cut(file: Path, size: int) -> None:
    file.write_bytes(file.read_bytes()[:size])


# Crowds


def test_runs_started_together_have_a_folder_each(tmp_path):
    with ExitStack() as crowd:
        runs = [
            crowd.enter_context(typed("steps=30", *SMALL, cwd=tmp_path / "one")) for _ in range(8)
        ]
        assert [run.wait() for run in runs] == [0] * 8
    folders = list((tmp_path / "one/outputs").iterdir())
    assert len(folders) == 8
    assert len({(folder / "curve.csv").read_bytes() for folder in folders}) == 1
    assert all(len(recorded(folder).losses) == 30 for folder in folders)


def test_of_runs_pointed_at_one_folder_one_gets_it(tmp_path):
    with ExitStack() as crowd:
        runs = [
            crowd.enter_context(
                typed("steps=200", *SMALL, f"hydra.run.dir={tmp_path}/one", cwd=tmp_path / f"{i}")
            )
            for i in range(6)
        ]
        codes = [run.wait() for run in runs]
        said = [run.err for run in runs]
    assert sorted(codes) == [0, 2, 2, 2, 2, 2]
    for code, err in zip(codes, said, strict=True):
        assert code == 0 or "already holds a run" in err or "another process is writing" in err
    assert len(recorded(tmp_path / "one").losses) == 200


def test_a_run_that_goes_on_elsewhere_is_not_resumed(tmp_path):
    with typed(FOR_EVER, OFTEN, "checkpoint_every=10", cwd=tmp_path) as run:
        folder = wait_for_steps(run, 20)
        with typed(f"resume={folder}", cwd=tmp_path / "other") as second:
            assert second.wait() == 2
        assert second.err == f"error: {folder}: another process is writing a run there\n"
        run.signal(signal.SIGTERM)
        assert run.wait() == 143
    recorded(folder)


def test_many_runs_in_one_process_leave_no_file_open(tmp_path):
    left = {}
    for runs in (1, 40):
        seeds = ",".join(map(str, range(runs)))
        with typed("-m", f"seed={seeds}", "steps=2", *SMALL, cwd=tmp_path / f"{runs}") as run:
            assert run.wait() == 0, run.err
        assert len(list(run.folder.glob("outputs/*/*/curve.csv"))) == runs
        left[runs] = int((run.folder / "open_files.txt").read_text())
    assert left[40] == left[1]


# What is damaged


def test_200_damaged_copies_of_real_runs(tmp_path, finished):
    """compare.py: never a traceback, never a wrong number; what is left out is named."""
    chance = random.Random(3)
    whole = tmp_path / "whole"
    shutil.copytree(finished, whole / "finished")
    with typed("optimizer.lr=1e-5", f"hydra.run.dir={whole}/diverged", cwd=tmp_path) as run:
        assert run.wait() == 1
    with typed(FOR_EVER, OFTEN, f"hydra.run.dir={whole}/killed", cwd=tmp_path) as run:
        run.wait_for(lambda: len(list(whole.glob("killed/curve.csv"))) == 1)
        run.wait_for(lambda: (whole / "killed/curve.csv").read_bytes().count(b"\n") > 30)
        run.signal(signal.SIGKILL)
        run.wait()
    truth = {folder.name: read_run(folder) for folder in whole.iterdir()}

    copies = tmp_path / "damaged"
    shutil.copytree(whole / "finished", copies / "200_finished")
    for i in range(200):
        folder = copies / f"{i}_{chance.choice(list(truth))}"
        shutil.copytree(whole / folder.name.partition("_")[2], folder)
        file = folder / chance.choice(["summary.json", "curve.csv"])
        file.write_bytes(damaged(file.read_bytes(), chance)[0])

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        compare.main([str(copies), "--json"])
    used = {run["name"] for run in json.loads(out.getvalue())["runs"]}
    print(f"{len(used) - 1} used, {201 - len(used)} named and left out")
    assert "200_finished" in used
    for folder in copies.iterdir():
        if folder.name not in used:
            assert f"skipped {folder}: " in err.getvalue()
            continue
        told, whole_run = read_run(folder), truth[folder.name.partition("_")[2]]
        assert told.losses.tolist() == whole_run.losses.tolist()
        assert (told.summary.seed, told.config) == (whole_run.summary.seed, whole_run.config)

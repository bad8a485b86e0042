"""A run on disk: what a power cut leaves, what is said of gradients, and who may write there."""

from __future__ import annotations

import dataclasses
import logging
import math
import os
import shutil
import signal
import weakref
from pathlib import Path

import pytest
import torch
from conftest import config_of
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch import nn

import lab.files
from lab.errors import UserError
from lab.recording.diagnosis import Diverged, NoGradient
from lab.recording.folder import points_to_keep
from lab.recording.reading import read_run
from lab.recording.run import Run
from lab.recording.summary import Damaged
from optimizers import ManualSGD
from tests.faulty import faulty


def new_run(folder: Path, *overrides: str) -> Run:
    """A run in a folder of its own, to be given losses by hand."""
    model = nn.Linear(1, 1)
    model(torch.ones(1)).sum().backward()
    return Run(folder, config_of(*overrides), model, ManualSGD(model.parameters(), lr=1.0))


class Disk:
    """What of a folder would be there after a power cut: what was synced, under synced names."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch):
        self.folder = folder
        self.contents: dict[int, bytes] = {}  # by inode
        self.names: dict[str, int] = {}
        self.sync = os.fsync
        monkeypatch.setattr(lab.files.os, "fsync", self.fsync)

    def fsync(self, descriptor: int) -> None:
        self.sync(descriptor)
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        if path.is_dir():
            self.names = {entry.name: entry.stat().st_ino for entry in path.iterdir()}
        else:
            self.contents[path.stat().st_ino] = path.read_bytes()

    def after_power_cut(self, folder: Path) -> Path:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for name, inode in self.names.items():
            (folder / name).write_bytes(self.contents.get(inode, b""))
        return folder


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="can't tell which file is synced")
def test_a_power_cut_costs_flush_seconds_at_any_step(tmp_path, monkeypatch):
    now = 0.0
    monkeypatch.setattr("lab.recording.run.time.perf_counter", lambda: now)
    disk = Disk(tmp_path / "run", monkeypatch)
    losses, lost = [], []
    with new_run(tmp_path / "run", "steps=150", "flush_seconds=2") as run:
        for step in run.steps():
            now += 0.125
            losses.append(1 / (step + 1))
            run.record(step, torch.tensor(losses[-1], dtype=torch.float64))
            told = read_run(disk.after_power_cut(tmp_path / "after"))
            assert told.losses.tolist() == losses[: len(told.losses)]
            lost.append((len(losses) - len(told.losses)) * 0.125)
    assert max(lost) <= 2
    told = read_run(disk.after_power_cut(tmp_path / "after"))
    assert (told.summary.status, told.losses.tolist()) == ("finished", losses)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="can't tell which file is synced")
@pytest.mark.parametrize("fails_in", ["curve.csv", "summary.json", "events.out.tfevents"])
def test_what_could_not_be_written_once_is_written_later(tmp_path, monkeypatch, fails_in):
    """The disk is full for a moment: no step is missing after it, and none is there twice."""
    sync, left = os.fsync, [1]

    def fsync(descriptor: int) -> None:
        name = Path(os.readlink(f"/proc/self/fd/{descriptor}")).name
        if name.startswith(fails_in) and left:
            left.pop()
            raise OSError(28, "No space left on device")
        sync(descriptor)

    def fill_the_disk_at_step_5() -> None:
        with new_run(tmp_path / "run", "steps=9", "flush_seconds=1000") as run:
            for step in run.steps():
                run.record(step, torch.tensor(1.0))
                if step == 5:
                    monkeypatch.setattr(lab.files.os, "fsync", fsync)
                    run.flush()

    with pytest.raises(UserError, match=rf"{fails_in}.*: No space left on device"):
        fill_the_disk_at_step_5()
    told = read_run(tmp_path / "run")
    assert (told.summary.status, told.steps.tolist()) == ("failed", list(range(6)))
    events = EventAccumulator(str(tmp_path / "run")).Reload()
    assert [point.step for point in events.Scalars("loss")] == list(range(6))


@pytest.mark.parametrize("steps", [1, 3])
def test_a_parameter_that_does_not_learn_is_named_once(run_in, caplog, steps):
    with caplog.at_level(logging.WARNING):
        run = run_in(faulty("ZeroGradient"), f"steps={steps}")
    assert run.summary.status == "finished"
    (message,) = caplog.messages
    assert "linear1.weight" in message
    assert "zero everywhere" in message


def test_a_parameter_that_gets_no_gradient_stops_the_run(run_in, tmp_path):
    with pytest.raises(NoGradient, match=r"no gradient reached linear1.weight"):
        run_in(faulty("NoGradient"))
    assert read_run(tmp_path / "run").summary.status == "failed"
    assert not (tmp_path / "run/weights.pt").exists()


def test_a_gradient_that_is_not_finite_is_named(run_in, tmp_path, device):
    with pytest.raises(Diverged) as diverged:
        run_in(faulty("NaNGradient"), f"device={device}")
    message = str(diverged.value)
    assert "the loss at step 1 is nan; the last finite loss was 2.94287e+07" in message
    assert "the gradient of linear1.weight is not finite" in message
    assert "check backward" in message
    assert "optimizer.lr" not in message
    assert math.isnan(read_run(tmp_path / "run").summary.final_loss)


def test_a_gradient_of_the_last_step_is_looked_at_too(run_in, tmp_path):
    with pytest.raises(Diverged, match=r"linear1.weight is not finite after step 0"):
        run_in(faulty("NaNGradient"), "steps=1")
    told = read_run(tmp_path / "run")
    assert (told.summary.status, len(told.losses)) == ("diverged", 1)
    assert not (tmp_path / "run/weights.pt").exists()


def test_two_runs_do_not_write_into_one_folder(tmp_path):
    run = new_run(tmp_path / "run")
    resumed = dataclasses.replace(run.config, resume=str(run.folder))
    with run, pytest.raises(UserError, match="another process is writing a run there"):
        Run(run.folder, resumed, nn.Linear(1, 1), ManualSGD([], lr=1.0)).__enter__()
    with pytest.raises(UserError, match="already holds a run"):
        Run(run.folder, run.config, nn.Linear(1, 1), ManualSGD([], lr=1.0)).__enter__()


def test_a_folder_with_other_files_is_refused(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run/thesis.tex").touch()
    with pytest.raises(UserError, match="is not empty"):
        new_run(tmp_path / "run").__enter__()


def test_a_curve_that_ends_before_the_checkpoint_is_refused(tmp_path):
    with new_run(tmp_path / "run", "steps=3") as run:
        for step in run.steps():
            run.record(step, torch.tensor(1.0))
    assert points_to_keep(3, run.folder, 1) == [(0, 1.0), (1, 1.0), (2, 1.0)]
    assert points_to_keep(3, run.folder, 2) == [(0, 1.0), (2, 1.0)]
    with pytest.raises(Damaged, match="ends before that"):
        points_to_keep(4, run.folder, 1)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="can't count the open files")
def test_a_closed_run_holds_no_file_and_no_memory(run_in):
    """What 300 runs in one process would leave behind 300 times."""
    run_in("steps=2", folder="first")
    open_files = sorted(os.listdir("/proc/self/fd"))
    run = weakref.ref(run_in("steps=2", folder="second"))
    assert sorted(os.listdir("/proc/self/fd")) == open_files
    assert run() is None  # without help of the garbage collector


class OnAccelerator(torch.Tensor):
    """A loss that lies elsewhere: looked at, it counts a read."""

    is_cpu = False

    def __new__(cls, value: float):
        return torch.tensor(value).as_subclass(cls)

    def detach(self) -> torch.Tensor:
        return self.as_subclass(torch.Tensor)

    def item(self) -> float:
        raise AssertionError("a step waits for the host")


def test_losses_on_an_accelerator_are_read_together(tmp_path, monkeypatch):
    reads = []
    stack = torch.stack
    monkeypatch.setattr(torch, "stack", lambda tensors: reads.append(tensors) or stack(tensors))
    with new_run(tmp_path / "run", "steps=100", "flush_seconds=1000") as run:
        for step in run.steps():
            run.record(step, OnAccelerator(step / 4))
    assert [len(tensors) for tensors in reads] == [100]
    assert read_run(run.folder).losses.tolist() == [step / 4 for step in range(100)]


def test_a_loss_that_diverged_on_an_accelerator_ends_the_curve_where_it_did(tmp_path):
    run = new_run(tmp_path / "run", "steps=20", "flush_seconds=1000")

    def diverge() -> None:
        with run:
            for step in run.steps():
                run.record(step, OnAccelerator(math.inf if step >= 7 else 1.0))

    with pytest.raises(Diverged, match="the loss at step 7 is inf"):
        diverge()
    told = read_run(run.folder)
    assert told.steps.tolist() == list(range(8))
    assert (told.summary.status, run.summary.steps) == ("diverged", 7)


def test_weights_that_are_not_finite_are_found_before_they_are_saved(run_in, tmp_path):
    with pytest.raises(Diverged, match=r"weight is not finite after step 0"):
        run_in("optimizer.lr=1e38", "steps=1")
    assert read_run(tmp_path / "run").summary.status == "diverged"
    assert not (tmp_path / "run/weights.pt").exists()


def test_a_nan_that_the_loss_hides_does_not_replace_a_checkpoint(run_in, tmp_path):
    with pytest.raises(Diverged, match=r"linear1.weight is not finite after step 1"):
        run_in(faulty("HiddenNaN"), "checkpoint_every=2", "steps=10")
    assert not (tmp_path / "run/checkpoint.pt").exists()


@pytest.mark.parametrize("stopped", [False, True])
def test_the_accuracy_is_that_of_the_last_step(run_in, monkeypatch, stopped):
    """It belongs to the loss beside it, whatever `log_every` is, and also after a stop."""
    digits = ("data=digits", "model.init=he", "optimizer.lr=1.0")
    each = run_in("steps=20", *digits, folder="each").summary
    if stopped:
        record = Run.record

        def stop_at_step_18(run: Run, step: int, loss: torch.Tensor) -> None:
            record(run, step, loss)
            if step == 18:
                os.kill(os.getpid(), signal.SIGTERM)

        monkeypatch.setattr(Run, "record", stop_at_step_18)
    steps = "steps=500" if stopped else "steps=20"
    few = run_in(steps, "log_every=100", *digits, folder="few").summary
    assert (few.steps, few.final_loss) == (20, each.final_loss)
    assert few.test_accuracy == each.test_accuracy

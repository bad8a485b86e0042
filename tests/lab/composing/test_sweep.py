"""A sweep: what it refuses, how it ends, and how it is resumed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import HOME, THREADS, command
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

import lab.composing.sweep
from lab.composing.names import register_resolvers
from lab.composing.resume import IS_RESUMED
from lab.composing.sweep import Sweep, sweep_compared
from lab.errors import errors_as_messages
from lab.recording.reading import read_run, read_runs
from lab.recording.summary import Summary
from tests.recorded import write_run
from tests.typed import typed, wait_for


def end_sweep(folder, *overrides, question="", look_at=""):
    """Exit code of a sweep that has left these runs; 0 where none is raised."""
    hydra = {
        "sweep": {"dir": str(folder), "subdir": "0"},
        "overrides": {"task": [*overrides]},
        "launcher": {"_target_": "basic"},
    }
    try:
        with errors_as_messages(), sweep_compared():
            Sweep(question, look_at).on_multirun_start(OmegaConf.create({"hydra": hydra}))
    except SystemExit as exit:
        return exit.code
    return 0


@pytest.fixture(autouse=True)
def _no_sweep_is_left(monkeypatch):
    monkeypatch.setattr(lab.composing.sweep, "current", None)
    for name in ("PYTHONPATH", IS_RESUMED):
        monkeypatch.setenv(name, os.environ.get(name, ""))


def test_what_to_look_at_is_named_as_seen_from_here(tmp_path, monkeypatch, capsys):
    write_run(tmp_path / "outputs/s/0_builtin", [3.0, 2.0])
    monkeypatch.chdir(tmp_path)
    end_sweep(tmp_path / "outputs/s")
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "plot: outputs/s/comparison.png",
        "view with: tensorboard --logdir outputs/s",
    ]


def test_an_experiment_prints_its_question_first_and_what_to_look_at_last(tmp_path, capsys):
    write_run(tmp_path / "0_builtin", [3.0, 2.0])
    texts = {"question": "Why?", "look_at": "Look at this."}
    end_sweep(tmp_path, "experiment=kink", **texts)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Why?"
    assert lines[1].startswith("Loss curves")
    assert lines[-1] == "Look at this."
    # With another seed the numbers in it need not hold.
    end_sweep(tmp_path, "experiment=kink", "seed=1", **texts)
    assert "Look at this." not in capsys.readouterr().out


def test_a_single_run_of_an_experiment_prints_them_too(capsys):
    config = OmegaConf.create({"hydra": {"overrides": {"task": ["experiment=descend"]}}})
    experiment = Sweep("Why?", "Look at this.")
    experiment.on_run_start(config)
    experiment.on_run_end(config)
    assert capsys.readouterr().out.splitlines() == ["Why?", "Look at this."]


@pytest.mark.parametrize(
    ("status", "code"),
    [("finished", 0), ("diverged", 1), ("failed", 1), ("running", 1), ("interrupted", 130)],
)
def test_the_exit_code_tells_how_the_jobs_ended(tmp_path, capsys, status, code):
    write_run(tmp_path / "0_builtin", [3.0, 2.0], function="builtin")
    write_run(tmp_path / "1_myrelu", [3.0, 2.5], status=status, error="why" if code else None)
    assert end_sweep(tmp_path) == code
    out = capsys.readouterr().out
    assert "1_myrelu" in out
    assert ("why" in out) == bool(code)
    assert (tmp_path / "comparison.png").exists()


def test_a_job_that_left_no_run_is_named(tmp_path, capsys):
    write_run(tmp_path / "0_builtin", [3.0, 2.0])
    (tmp_path / "1_nothing").mkdir()
    assert end_sweep(tmp_path) == 1
    assert "1_nothing: no run in it" in capsys.readouterr().err


def test_a_sweep_without_any_run_is_an_error(tmp_path, capsys):
    assert end_sweep(tmp_path) == 2
    assert "no job of the sweep left a run" in capsys.readouterr().err


EXPERIMENTS = sorted(path.stem for path in (HOME / "conf/experiment").glob("*.yaml"))


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_job_of_an_experiment_can_be_composed(name):
    register_resolvers()
    with initialize_config_dir(str(HOME / "conf"), version_base="1.3"):
        chosen = [f"experiment={name}"]
        hydra_config = compose("config", chosen, return_hydra_config=True).hydra
        params = hydra_config.sweeper.params or {}
        for key, values in params.items():
            for value in values.split(","):
                config = compose("config", [*chosen, f"{key}={value}"])
                assert OmegaConf.select(config, key) is not None
    assert "?" in hydra_config.callbacks.compare.question
    assert hydra_config.callbacks.compare.look_at


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The losses of a run that is no job of a sweep."""
    folder = tmp_path_factory.mktemp("alone") / "run"
    with typed(f"hydra.run.dir={folder}", "steps=20", cwd=folder.parent) as run:
        assert run.wait() == 0, run.err
    return read_run(folder).losses.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("launcher", ["basic", "cores", "submitit_local"])
def test_a_sweep_ends_the_same_under_every_launcher(tmp_path, alone, launcher):
    # the command line takes the place of the experiment's own functions; the first lr diverges
    words = (
        "hydra.sweep.dir=sweep", "experiment=official", "function=myrelu",
        "optimizer.lr=1,1e-6", "steps=20",
    )  # fmt: skip
    result = command("train.py", *words, f"hydra/launcher={launcher}", cwd=tmp_path)
    assert result.returncode == 1, result.stderr
    assert "Traceback" not in result.stderr
    runs, skipped = read_runs([tmp_path / "sweep"])
    assert [run.summary.status for run in runs] == ["diverged", "finished"]
    assert not skipped
    assert runs[1].losses.tolist() == alone
    for run in runs:
        assert run.folder.name in result.stdout
    assert (tmp_path / "sweep/comparison.png").exists()
    assert result.stdout.startswith("Does a network train the same")
    assert "Look at" not in result.stdout  # for an lr of 1 it is not true

    before = contents(*(run.folder for run in runs))
    with typed(*words, cwd=tmp_path) as again:
        assert again.wait() == 1, again.err
    assert contents(*(run.folder for run in runs)) == before


def contents(*folders):
    """Each file of these folders, its bytes and the time of its last change."""
    return {
        file: (file.read_bytes(), file.stat().st_mtime_ns)
        for folder in folders
        for file in folder.iterdir()
    }


def statuses(sweep):
    return {run.folder.name: run.summary.status for run in read_runs([sweep])[0]}


@pytest.mark.parametrize(
    "words",
    [
        ("function=builtin,myrelo",),
        ("function=choice(relu,nosuch)",),
        ("function=glob(zzz*)",),
        ("hydra/launcher=joblib", "hydra.launcher.n_jobs=0"),
        ("hydra.sweep.subdir=/tmp/elsewhere", "seed=0,1"),
        ("hydra.sweep.subdir=../elsewhere", "seed=0,1"),
    ],
)
def test_a_refused_sweep_leaves_nothing(tmp_path, words):
    with typed("-m", *words, "steps=2", cwd=tmp_path) as run:
        assert run.wait() == 2
    (line,) = run.err.splitlines()
    assert line.startswith("error: ")
    assert not list(tmp_path.glob("outputs/*"))


@pytest.mark.parametrize("word", ["steps=0", "seed=${nothere}"])
def test_a_sweep_whose_jobs_never_started_has_no_plot(tmp_path, word):
    with typed("-m", word, "hydra.sweep.dir=s", cwd=tmp_path) as run:
        assert run.wait() == 1
    assert "Traceback" not in run.err
    assert word.partition("=")[0] in run.out
    assert not (tmp_path / "s/comparison.png").exists()


def test_a_job_that_can_not_be_composed_does_not_stop_the_others(tmp_path):
    with typed("-m", "seed=${nothere},0", "steps=2", "hydra.sweep.dir=s", cwd=tmp_path) as run:
        assert run.wait() == 1
    assert "Traceback" not in run.err
    assert sorted(statuses(tmp_path / "s").values()) == ["failed", "finished"]


def test_two_jobs_never_share_a_folder(tmp_path):
    words = ("-m", "hydra.sweep.dir=s", "hydra.sweep.subdir=same", "steps=2")
    with typed(*words, "seed=1", cwd=tmp_path) as run:
        assert run.wait() == 0, run.err
    before = contents(tmp_path / "s/same")
    with typed(*words, "seed=1,2", cwd=tmp_path) as run:
        assert run.wait() == 1
    assert "s/same: the folder holds a run of another config" in run.err
    assert "Traceback" not in run.err
    assert contents(tmp_path / "s/same") == before


def test_the_same_seed_twice_is_trained_twice(tmp_path):
    with typed("-m", "seed=0,0", "steps=2", "hydra.sweep.dir=s", cwd=tmp_path) as run:
        assert run.wait() == 0, run.err
    assert len(statuses(tmp_path / "s")) == 2


def test_a_sweep_that_was_killed_is_resumed(tmp_path):
    words = ("-m", "seed=range(4)", "steps=90", "hydra.sweep.dir=s", "checkpoint_every=30")
    with typed(*words, "flush_seconds=0.001", cwd=tmp_path) as run:
        run.wait_for(lambda: any((tmp_path / "s").glob("2_*/checkpoint.pt")))
        run.signal(signal.SIGKILL)
        assert run.wait() == -signal.SIGKILL
    killed = statuses(tmp_path / "s")
    assert list(killed.values()) == ["finished", "finished", "running"]
    finished = [tmp_path / "s" / name for name, status in killed.items() if status == "finished"]
    before = contents(*finished)

    with typed(*words, cwd=tmp_path) as run:
        assert run.wait() == 0, run.err
    assert list(statuses(tmp_path / "s").values()) == ["finished"] * 4
    assert contents(*finished) == before
    (third,) = (tmp_path / "s").glob("2_*")
    assert len(list(third.glob("events*"))) == 2  # resumed, not started again
    with typed("seed=2", "steps=90", "hydra.run.dir=alone", cwd=tmp_path) as run:
        assert run.wait() == 0, run.err
    assert read_run(third).losses.tolist() == read_run(tmp_path / "alone").losses.tolist()


def test_a_run_is_found_by_its_config_and_not_by_its_number(tmp_path):
    words = ("-m", "steps=300", "hydra.sweep.dir=s")
    with typed(*words, "seed=0", cwd=tmp_path) as run:
        assert run.wait() == 0, run.err
    write_interrupted(tmp_path, "seed=1")
    before = contents(*(tmp_path / "s").glob("0_*"))
    # The default seed is 0, so this is the same config; it is job 2 now.
    with typed(*words, "seed=7,1,0", "progress=false", cwd=tmp_path) as run:
        assert run.wait() == 0, run.err
    names = [name.partition("_myrelu")[0] for name in statuses(tmp_path / "s")]
    assert names == ["0", "0", "1"]
    assert set(before.items()) <= set(contents(*(tmp_path / "s").glob("0_*")).items())
    (resumed,) = (tmp_path / "s").glob("1_*")
    assert len(list(resumed.glob("events*"))) == 2


def write_interrupted(cwd, *words):
    """A run of the sweep s/ that Ctrl-C stopped, as job 5."""
    folder = cwd / "s/5_myrelu"
    with typed(
        *words, "steps=300", f"hydra.run.dir={folder}", "flush_seconds=1e-9", cwd=cwd
    ) as run:
        run.wait_for((folder / "curve.csv").exists)
        run.signal(signal.SIGINT)
        assert run.wait() == 130


def test_what_a_job_without_checkpoint_or_with_an_error_left_is_trained_again(tmp_path):
    words = ("-m", "seed=0", "steps=20", "hydra.sweep.dir=s")
    with typed(*words, cwd=tmp_path) as run:
        assert run.wait() == 0, run.err
    (folder,) = (tmp_path / "s").glob("0_*")
    losses = read_run(folder).losses.tolist()
    for status in ("running", "failed"):
        summary = Summary.from_json((folder / "summary.json").read_bytes())
        summary.status = status
        summary.write(folder)
        (folder / "checkpoint.pt").unlink()
        with typed(*words, cwd=tmp_path) as run:
            assert run.wait() == 0, run.err
        assert read_run(folder).summary.status == "finished"
        assert read_run(folder).losses.tolist() == losses


def test_a_job_waits_for_a_process_that_trains_its_run(tmp_path):
    words = ("-m", "seed=0", "steps=2000", "hydra.sweep.dir=s")
    with typed(*words, cwd=tmp_path / "first") as first:
        sweep = tmp_path / "first/s"
        first.wait_for(lambda: any(sweep.glob("*/curve.csv")))
        second_words = [*words[:-1], f"hydra.sweep.dir={sweep}"]
        with typed(*second_words, cwd=tmp_path / "second") as second:
            assert second.wait() == 0, second.err
        assert first.wait() == 0, first.err
    assert "finished earlier" in second.out
    assert list(statuses(sweep).values()) == ["finished"]


def test_the_sweeper_gets_the_loss_of_a_run_that_ended_earlier(tmp_path):
    (tmp_path / "spy.py").write_text(
        "from hydra.experimental.callback import Callback\n"
        "class Spy(Callback):\n"
        "    def on_job_end(self, config, job_return):\n"
        "        with open('returned.txt', 'a') as file:\n"
        "            print(job_return.return_value, file=file)\n"
    )
    words = ("-m", "optimizer.lr=1,1e-6", "steps=9", "hydra.sweep.dir=s")
    for _ in range(2):
        with typed(*words, "+hydra.callbacks.spy._target_=spy.Spy", cwd=tmp_path) as run:
            assert run.wait() == 1, run.err
    returned = (tmp_path / "returned.txt").read_text().split()
    assert returned[:2] == returned[2:]
    assert returned[0] == "inf"
    assert float(returned[1]) == read_runs([tmp_path / "s"])[0][1].losses[-1]


@pytest.mark.slow
def test_a_killed_worker_ends_the_sweep_like_any_other(tmp_path):
    words = ("-m", "seed=0,1", "steps=1000000000", "hydra/launcher=cores", "hydra.sweep.dir=s")
    process = subprocess.Popen(
        [sys.executable, HOME / "train.py", *words],
        cwd=tmp_path, env=os.environ | THREADS, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    with process:
        try:
            wait_for(
                lambda: any((tmp_path / "s").glob("*/curve.csv")), lambda: process.poll() is None
            )
            os.kill(a_worker_of(process.pid), signal.SIGKILL)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 1, err
    assert "has not ended: its process was killed" in err
    assert "Traceback" not in err
    assert out.splitlines()[-1].endswith("hydra.sweep.dir=s")


def a_worker_of(pid):
    """A process of joblib whose parent is this one."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            is_child = f"PPid:\t{pid}\n" in (process / "status").read_text()
            if is_child and b"LokyProcess" in (process / "cmdline").read_bytes():
                return int(process.name)
    raise AssertionError("no worker")

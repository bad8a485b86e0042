"""The end of a sweep: table, picture, exit code."""

from __future__ import annotations

import warnings

import pytest
from conftest import HOME, command
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from lab.composing.names import register_resolvers
from lab.composing.sweep import CompareRuns
from lab.recording.reading import read_run, read_runs
from tests.recorded import write_run


def end_sweep(folder):
    """Exit code of the callback as Hydra calls it; 0 where it returns."""
    config = OmegaConf.create({"hydra": {"sweep": {"dir": str(folder)}}})
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            CompareRuns().on_multirun_end(config=config, config_name="config")
    except SystemExit as exit:
        return exit.code
    return 0


def test_what_to_look_at_is_named_as_seen_from_here(tmp_path, monkeypatch, capsys):
    write_run(tmp_path / "outputs/s/0_builtin", [3.0, 2.0])
    monkeypatch.chdir(tmp_path)
    end_sweep(tmp_path / "outputs/s")
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "plot: outputs/s/comparison.png",
        "view with: tensorboard --logdir outputs/s",
    ]


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
        params = compose("config", chosen, return_hydra_config=True).hydra.sweeper.params or {}
        for key, values in params.items():
            for value in values.split(","):
                config = compose("config", [*chosen, f"{key}={value}"])
                assert OmegaConf.select(config, key) is not None
    first_lines = (HOME / f"conf/experiment/{name}.yaml").read_text().splitlines()[1:4]
    assert any(line.startswith("#") and line.endswith("?") for line in first_lines)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The losses of a run that is no job of a sweep."""
    folder = tmp_path_factory.mktemp("alone") / "run"
    result = command("train.py", f"hydra.run.dir={folder}", "steps=20", cwd=HOME)
    assert result.returncode == 0, result.stderr
    return read_run(folder).losses.tolist()


@pytest.mark.parametrize("launcher", ["basic", "joblib", "submitit_local"])
def test_a_sweep_ends_the_same_under_every_launcher(tmp_path, alone, launcher):
    folder = tmp_path / "sweep"
    # the command line takes the place of the experiment's own functions; the first lr diverges
    result = command(
        "train.py", f"hydra.sweep.dir={folder}", "experiment=official", "function=myrelu",
        "optimizer.lr=1,1e-6", "steps=20", f"hydra/launcher={launcher}", cwd=HOME,
    )  # fmt: skip
    assert result.returncode == 1, result.stderr
    assert "Traceback" not in result.stderr
    runs, skipped = read_runs([folder])
    assert [run.status for run in runs] == ["diverged", "finished"]
    assert not skipped
    assert runs[1].losses.tolist() == alone
    for run in runs:
        assert run.folder.name in result.stdout
    assert (folder / "comparison.png").exists()

"""The end of a sweep: table, picture, exit code."""

from __future__ import annotations

import warnings

import pytest
from omegaconf import OmegaConf

from lab.sweep import CompareRuns
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

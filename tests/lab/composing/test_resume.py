"""Which config a resumed run has, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import config_of

from lab.composing.resume import resumed
from lab.config import Config
from lab.errors import UserError
from lab.recording.summary import SUMMARY, Summary


@pytest.fixture
def folder(run_in) -> Path:
    """A run of 3 steps."""
    return run_in("steps=3", "optimizer.lr=1e-7", "data.features=5").folder


def resume(folder: Path, *overrides: str) -> Config:
    return resumed(config_of(f"resume={folder}", *overrides), folder)


def test_a_resumed_run_keeps_its_config_and_may_do_more_steps(folder):
    config = resume(folder, "steps=40", "flush_seconds=9")
    assert (config.steps, config.flush_seconds, config.resume) == (40, 9, str(folder))
    assert (config.optimizer["lr"], config.data["features"]) == (1e-7, 5)
    again = resume(folder, "optimizer.lr=1e-7", "function=myrelu", "seed=0", "++steps=9")
    assert (again.seed, again.steps) == (0, 9)


@pytest.mark.parametrize(
    ("override", "before"),
    [
        ("optimizer.lr=0.2", "optimizer.lr=1e-07"),
        ("function=relu", "function=myrelu"),
        ("seed=1", "seed=0"),
        ("log_every=2", "log_every=1"),
    ],
)
def test_another_value_is_refused_by_name(folder, override, before):
    with pytest.raises(UserError) as refusal:
        resume(folder, "steps=40", override)
    assert override in str(refusal.value)
    assert before in str(refusal.value)


@pytest.mark.parametrize("steps", [[], ["steps=3"], ["steps=2"]])
def test_nothing_left_to_do_is_refused(folder, steps):
    import train

    with pytest.raises(UserError, match="has done 3 steps"):
        train.train(resume(folder, *steps), folder)


def test_a_run_whose_device_is_not_here(folder):
    recorded = Summary.from_json((folder / SUMMARY).read_bytes())
    recorded.config["device"] = "cuda:99"
    recorded.write(folder)
    with pytest.raises(UserError, match="the run used device=cuda:99"):
        resume(folder, "steps=40")

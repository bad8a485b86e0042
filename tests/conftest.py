"""What most tests need: a run in this process, a command as a user types it, every device."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hydra import compose, initialize_config_dir
from omegaconf import DictConfig, OmegaConf

import train
from lab.checking.limited import warm_up
from lab.composing.compose import compose_config
from lab.config import Config
from lab.recording.run import Run

HOME = Path(__file__).parent.parent
# One server for typed commands and for the children of check.py: it imports what both need. It is
# started here, in the process of pytest alone: a module that the server imports must start none.
warm_up(["lab.course.answers", "train", "lab.comparing.plot"])
# The same bits in every process, and no two processes that fight for the same cores.
THREADS = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _same_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test imports from a folder of its own is not found by the next."""
    monkeypatch.setattr(sys, "path", [*sys.path])


@pytest.fixture(
    params=[
        "cpu",
        pytest.param(
            "cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA")
        ),
    ]
)
def device(request: pytest.FixtureRequest) -> str:
    return request.param


def command(
    *args: str, cwd: Path, home: Path = HOME, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run `python *args` as a user would, `args[0]` a script of the project."""
    return subprocess.run(
        [sys.executable, str(home / args[0]), *args[1:]],
        cwd=cwd,
        env=os.environ | THREADS,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        **options,
    )


def composed(*overrides: str) -> tuple[DictConfig, dict[str, str]]:
    """What Hydra makes of a command line: the config, and the choices in it."""
    with initialize_config_dir(str(HOME / "conf"), version_base="1.3"):
        cfg = compose("config", overrides=list(overrides), return_hydra_config=True)
    choices = OmegaConf.to_container(cfg.hydra.runtime.choices)
    return OmegaConf.masked_copy(cfg, [key for key in cfg if key != "hydra"]), choices


def config_of(*overrides: str) -> Config:
    """The validated config of a command line, without a progress bar."""
    return compose_config("progress=false", *overrides)


@pytest.fixture
def run_in(tmp_path: Path) -> Callable[..., Run]:
    """Train in this process, in a folder of its own; returns the closed run."""

    def start(*overrides: str, folder: str = "run") -> Run:
        return train.train(config_of(*overrides), tmp_path / folder)

    return start

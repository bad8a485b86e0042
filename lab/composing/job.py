"""One job: from the composed config to a run in its folder, and what is printed about it."""

from __future__ import annotations

import dataclasses
import logging
import math
import os
import shlex
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from lab.composing import sweep
from lab.composing.backward import backward_in_words
from lab.composing.names import quoted, typed_overrides
from lab.composing.resume import ENDED, AnotherRun, earlier_run, resumed
from lab.composing.rules import validated
from lab.config import Config
from lab.errors import UserError, errors_as_messages, one_line, user_traceback
from lab.recording.folder import record_failure
from lab.recording.run import Run, file_log
from lab.recording.summary import SUMMARY, Summary

log = logging.getLogger(__name__)

Train = Callable[[Config, Path], Run]
_stopped_by: int | None = None  # the signal that stopped a run of this process


def run_job(train: Train, cfg: DictConfig) -> float:
    """Train what Hydra composed, and report how it went.

    Args:
        train: makes the run of a config in a folder.
        cfg: the composed config.

    Returns:
        The last loss, so that a sweeper can minimise it; inf for a job of a sweep that failed.

    Raises:
        SystemExit: a signal stopped the run, or, outside a sweep, an error.
    """
    hydra_cfg = HydraConfig.get()
    folder = Path(hydra_cfg.runtime.output_dir)
    name = Path(os.path.relpath(folder, hydra_cfg.runtime.cwd)).as_posix()
    if hydra_cfg.mode == RunMode.MULTIRUN:
        return _in_sweep(train, cfg, folder, name)
    return _alone(train, cfg, folder, name)


def _alone(train: Train, cfg: DictConfig, folder: Path, name: str) -> float:
    was_there = (folder / SUMMARY).exists()
    try:
        with errors_as_messages():  # before Hydra adds lines of its own to an error
            config = _config(cfg)
            if cfg.show == "backward":
                print(backward_in_words(config))
                return math.nan
            run = _train(train, _checked(config, folder), folder)
    except SystemExit:
        if not was_there and (folder / SUMMARY).exists():
            log.info("run: %s", name)
        raise
    finally:
        with suppress(OSError):  # only a folder without a run is empty
            folder.rmdir()
    log.info(run.summary.outcome())
    if run.summary.data == "digits" and run.config.model.get("init") == "normal":
        log.info("hint: the digits train best with model.init=he optimizer.lr=1.0")
    log.info("run: %s", name)
    if run.summary.status == "interrupted" and run.signal is not None:
        log.info("resume with: python train.py %s", shlex.quote(f"resume={quoted(name)}"))
        sys.exit(128 + run.signal)
    log.info("view with: tensorboard --logdir %s", shlex.quote(name))
    return _loss(run.summary)


def _checked(config: Config, folder: Path) -> Config:
    """The config of a run that may use this folder; on a resume, that of the run in it."""
    cwd = HydraConfig.get().runtime.cwd
    if folder == Path(cwd, "outputs"):
        key = "hydra.run.dir" if config.resume is None else "resume"
        raise UserError(
            f"{key}=outputs is not possible: that folder holds the runs; use {key}=outputs/NAME"
        )
    if config.resume is None:
        return config
    if not folder.samefile(Path(cwd, config.resume)):
        raise UserError(
            f"hydra.run.dir={folder} is not possible with resume={config.resume}: a resumed run "
            "stays in its folder"
        )
    return resumed(config, folder)


def _in_sweep(train: Train, cfg: DictConfig, folder: Path, name: str) -> float:
    """Print one line, whatever happens; an error does not stop the other jobs."""
    global _stopped_by  # noqa: PLW0603
    if _stopped_by is not None:  # in a worker that its launcher will end
        with suppress(OSError):
            folder.rmdir()
        return math.inf
    try:
        config = _config(cfg)
        earlier = earlier_run(config, folder)
        if earlier is not None and earlier.status in ENDED:
            # Printed, as a line in train.log would change a folder that has to stay as it is.
            said = f"{earlier.status} earlier, last loss {earlier.final_loss}"
            print(f"{name}: {said}", flush=True)
            return _loss(earlier)
        resume = None if earlier is None else str(folder)
        config = dataclasses.replace(config, progress=bool(config.progress), resume=resume)
        run = _train(train, config, folder)
    except AnotherRun as error:
        print(f"{name}: {error}", file=sys.stderr, flush=True)
        raise
    except Exception as error:
        log.error("%s: %s", name, one_line(error))
        if not (folder / SUMMARY).exists():
            file_log.error(user_traceback(error))
            keys: Any = OmegaConf.to_container(cfg)
            choices = HydraConfig.get().runtime.choices
            record_failure(folder, Summary.of_keys(keys, choices, typed_overrides()), error)
        return math.inf
    log.info("%s: %s", name, run.summary.outcome())
    _stopped_by = run.signal
    if run.signal is not None and sweep.current is not None:
        sys.exit(128 + run.signal)  # this process is the sweep's own, and no worker of it
    return _loss(run.summary)


def _loss(summary: Summary) -> float:
    """What a sweeper minimises."""
    loss = summary.final_loss if summary.status == "finished" else None
    return math.inf if loss is None else loss


def _config(cfg: DictConfig) -> Config:
    return validated(cfg, HydraConfig.get().runtime.choices, typed_overrides())


def _train(train: Train, config: Config, folder: Path) -> Run:
    # What another job of a sweep may have set; and matrix products in full float32, not in TF32.
    torch.set_default_dtype(torch.float32)
    torch.set_float32_matmul_precision("highest")
    try:
        return train(config, folder)
    except SystemExit as error:  # of the user's code: the lab raises none in there
        exited = RuntimeError(f"sys.exit({error.code!r}) is called here")
        raise exited.with_traceback(error.__traceback__) from None

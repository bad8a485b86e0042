"""Train a small network through a custom autograd Function and record its loss curve.

    python train.py function=myrelu device=cuda
    python train.py -m function=builtin,myrelu,relu

`train` is the lesson: make the parts, run the loop, keep what was learnt.
"""

from __future__ import annotations

import gc
import signal

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C during the imports ends without a word
    gc.disable()  # imports leave no garbage: 0.2 s less spent on looking for it

import logging
import math
import os
import shlex
import sys
from pathlib import Path
from typing import Any

import hydra
import torch
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig

from datasets import Data
from lab.composing.command_line import check_choices, composed
from lab.composing.config import DTYPES, build, check_function, checked
from lab.composing.names import quoted, register_resolvers
from lab.composing.sweep import sweep_job
from lab.devices import pick_device
from lab.errors import explained
from lab.recording.checkpoint import load_checkpoint, restore, resumed_config
from lab.recording.run import Run
from lab.recording.run_folder import leaving_no_trace, new_summary

log = logging.getLogger(__name__)
register_resolvers()


def train(summary: dict[str, Any], folder: Path, checkpoint: dict[str, Any] | None = None) -> Run:
    """Train one network and leave its run in `folder`.

    Args:
        summary: from `lab.recording.run_folder.new_summary`, with the config; kept up to date.
        folder: the run folder; it exists.
        checkpoint: from `lab.recording.checkpoint.load_checkpoint`, to go on from there.

    Returns:
        The closed run: its `summary` says how it went, its `signal` whether it was stopped.

    Raises:
        UserError: a part can't be made, or the loss is not finite (`lab.recording.run.Diverged`).
    """
    # Each part is a file in conf/. The seed comes first: x, y, w1 and w2 are drawn in this order,
    # on the CPU, and only then moved, so that every choice starts from the same numbers.
    config = summary["config"]
    # Whatever another job of a sweep set; and no TF32.
    torch.set_default_dtype(torch.float32)
    torch.set_float32_matmul_precision("highest")
    device, dtype = pick_device(config["device"]), DTYPES[config["dtype"]]
    summary["device"] = str(device)
    torch.manual_seed(config["seed"])
    data = build(config, "data").to(device, dtype)
    model = build(config, "model").to(device, dtype)
    check_function(model, summary["function"])
    optimizer = build(config, "optimizer", model.parameters())
    forward = torch.compile(model) if config["compile"] else model
    if checkpoint:
        restore(checkpoint, model, optimizer)
    first_step = checkpoint["step"] if checkpoint else 0
    log_every, checkpoint_every = config["log_every"], config["checkpoint_every"]

    with Run(folder, summary, model, first_step) as run:
        for step in run.steps():
            # Forward. The loss at this step is the one before its update.
            loss = data.loss(forward(data.x), data.y)
            run.record(step, loss)
            if data.x_test is not None and step % log_every == 0:
                run.record_scalar("test_accuracy", step, accuracy(model, data))

            # Backward. Autograd calls the backward of each Function that forward went through.
            optimizer.zero_grad()
            loss.backward()

            # Update.
            optimizer.step()
            if checkpoint_every and (step + 1) % checkpoint_every == 0:
                run.save_checkpoint(step + 1, optimizer)

        run.save_checkpoint(step + 1, optimizer)
    return run


@torch.no_grad()
def accuracy(model: torch.nn.Module, data: Data) -> torch.Tensor:
    """The fraction of the test set that the model puts into the right class, a scalar."""
    right = model(data.x_test).argmax(dim=1) == data.y_test
    return right.to(data.x_test.dtype).mean()


@hydra.main(version_base="1.3", config_path="conf", config_name="config")
def main(cfg: DictConfig) -> float:
    """Train what the config says; returns the last loss, so that a sweeper can minimise it."""
    hydra_cfg = HydraConfig.get()
    folder = Path(hydra_cfg.runtime.output_dir)
    shown = Path(os.path.relpath(folder, hydra_cfg.runtime.cwd))
    if hydra_cfg.mode == RunMode.MULTIRUN:
        run = sweep_job(start, cfg, folder, shown)
    else:
        try:
            with explained(), leaving_no_trace(folder):
                run = start(cfg, folder)
            log.info(run.outcome())
        finally:
            if folder.exists():
                log.info("run: %s", shown)
        if run.summary["status"] == "interrupted":
            log.info("go on: python train.py %s", shlex.quote(f"resume={quoted(shown)}"))
        else:
            log.info("see it: tensorboard --logdir %s", shlex.quote(str(shown.parent)))
        if run.summary["status"] == "diverged":
            sys.exit(1)
    if run is not None and run.signal is not None:
        sys.exit(128 + run.signal)
    return math.inf if run is None else run.summary["final_loss"]


def start(cfg: DictConfig, folder: Path) -> Run:
    """Check the config and train what it says, or go on with the run that it names."""
    hydra_cfg = HydraConfig.get()
    config, choices, checkpoint = checked(cfg), hydra_cfg.runtime.choices, None
    if config["progress"] is None and hydra_cfg.mode == RunMode.MULTIRUN:
        config["progress"] = False
    if config["resume"]:
        checkpoint = load_checkpoint(folder)
        config = resumed_config(checkpoint, config, choices, hydra_cfg.overrides.task)
        choices = checkpoint["summary"]
    return train(new_summary(config, choices), folder, checkpoint)


if __name__ == "__main__":
    # Hydra would print a traceback of its own; composed and explained speak instead.
    os.environ.setdefault("HYDRA_FULL_ERROR", "1")
    logging.raiseExceptions = False  # a full disk is told once, not at each line for train.log too
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # What is imported stays. Else the garbage collector looks through all of PyTorch again and
    # again while the config is composed: 0.3 s.
    gc.freeze()
    gc.enable()
    sys.path.append(os.getcwd())  # a Function in the folder that the user stands in
    try:
        with explained(), composed():
            check_choices(sys.argv[1:])
            main()
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is over, but for the last clean-up

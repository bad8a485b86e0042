"""Train a small network through a custom autograd Function and record its loss curve.

python train.py function=myrelu device=cuda
python train.py -m function=builtin,myrelu,relu
"""

from __future__ import annotations

if __name__ == "__main__":
    import lab.start  # noqa: F401  before torch: it saves 0.6 s, and Ctrl-C gives no traceback

from pathlib import Path

import hydra
import torch
from omegaconf import DictConfig

from datasets import Data
from lab.composing.command_line import command_line
from lab.composing.job import run_job
from lab.composing.names import register_resolvers
from lab.config import Config
from lab.devices import pick_device
from lab.parts import DTYPES, build, check_fits, threads_for
from lab.recording.run import Run

register_resolvers()


def train(config: Config, folder: Path) -> Run:
    """Make the parts, run the loop, and save the trained weights.

    Args:
        config: one attribute for each key of conf/config.yaml.
        folder: where the run is recorded; on a resume, the folder of the run to resume.

    Returns:
        The finished run: `run.summary` says how it went.
    """
    # Each part is a file in conf/. The seed comes first: x, y, w1 and w2 are drawn in this order,
    # on the CPU, and only then moved, so that every choice starts from the same numbers.
    device, dtype = pick_device(config.device), DTYPES[config.dtype]
    torch.manual_seed(config.seed)
    data = build(config, "data").to(device, dtype)
    model = build(config, "model").to(device, dtype)
    check_fits(model, config.choices["function"])
    optimizer = build(config, "optimizer", model.parameters())
    torch.set_num_threads(threads_for(config, data, model.parameters()))
    forward = torch.compile(model) if config.compile else model

    with Run(folder, config, model, optimizer) as run:
        for step in run.steps():
            # Forward. The loss at this step is the one before its update.
            loss = data.loss(forward(data.x), data.y)
            run.record(step, loss)
            if data.x_test is not None and run.is_point(step):
                run.record_scalar("test_accuracy", step, accuracy(model, data))

            # Backward. Autograd calls the backward of each Function that forward went through.
            optimizer.zero_grad()
            loss.backward()

            # Update.
            optimizer.step()
    return run


@torch.no_grad()
def accuracy(model: torch.nn.Module, data: Data) -> torch.Tensor:
    """The fraction of the test set that is classified correctly, a scalar."""
    assert data.x_test is not None
    training = [module for module in model.modules() if module.training]
    model.eval()  # without dropout
    correct = model(data.x_test).argmax(dim=1) == data.y_test
    for module in training:
        module.training = True
    return correct.to(data.x_test.dtype).mean()


@hydra.main(version_base="1.3", config_path="conf", config_name="config")
def main(cfg: DictConfig) -> float:
    """Train what Hydra composed from conf/ and the command line; return the last loss."""
    return run_job(train, cfg)


if __name__ == "__main__":
    with command_line():
        main()

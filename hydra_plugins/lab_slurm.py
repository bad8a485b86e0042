"""The launcher of conf/hydra/launcher/slurm.yaml; Hydra takes launchers from `hydra_plugins` alone.

What it does is in lab/composing/slurm.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hydra.core.utils import JobReturn
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig


class Slurm(Launcher):
    """Runs the jobs of a sweep as one job array, and waits for all of them.

    Args:
        settings: the keys of slurm.yaml.
    """

    def __init__(self, **settings: Any) -> None:
        self._settings = settings

    def setup(
        self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig
    ) -> None:
        from hydra_plugins.hydra_submitit_launcher.submitit_launcher import SlurmLauncher

        self._job = SlurmLauncher(**self._settings)
        self._job.setup(hydra_context=hydra_context, task_function=task_function, config=config)

    def launch(
        self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int
    ) -> Sequence[JobReturn]:
        from lab.composing.slurm import launch

        return launch(self._job, job_overrides, initial_job_idx)

"""The launcher of conf/hydra/launcher/slurm.yaml; Hydra takes launchers from `hydra_plugins` alone.

What it does is in lab/composing/slurm.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from hydra.core.utils import JobReturn

with suppress(ImportError):  # the package is optional
    from hydra_plugins.hydra_submitit_launcher.submitit_launcher import SlurmLauncher

    class Slurm(SlurmLauncher):
        """Runs the jobs of a sweep as one job array, and waits for all of them."""

        def launch(
            self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int
        ) -> Sequence[JobReturn]:
            from lab.composing.slurm import launch

            return launch(super().launch, self.params, job_overrides, initial_job_idx)

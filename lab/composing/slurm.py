"""A sweep on Slurm: submit, wait for every job, and say what became of those that were lost.

The submission is submitit's. Its waiting is not used: it needs Slurm's accounting, and ends at the
first job that was lost.
"""

from __future__ import annotations

import dataclasses
import math
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.core.singleton import Singleton
from hydra.core.utils import JobReturn, JobStatus

from lab.composing import sweep
from lab.errors import UserError

if TYPE_CHECKING:
    from hydra_plugins.hydra_submitit_launcher.submitit_launcher import SlurmLauncher

QUEUE_SECONDS = 5  # between two questions to Slurm
RESULT_SECONDS = 15  # a shared disk may show the result of a job after Slurm has reported its end
AT_AN_END = (
    "BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY",
    "PREEMPTED", "TIMEOUT",
)  # fmt: skip


def launch(
    job: SlurmLauncher, job_overrides: Sequence[Sequence[str]], first_number: int
) -> list[JobReturn]:
    """Run the jobs of a sweep as one array.

    Args:
        job: submitit's launcher, which is what a job of the array calls.
        job_overrides: the overrides of each job.
        first_number: of the first job in the sweep.

    Returns:
        What each job returned; inf for a job that was lost or refused, which `sweep.current` notes.

    Raises:
        UserError: there is no Slurm, or it refuses the array.
        KeyboardInterrupt: Ctrl-C; the jobs are cancelled then.
    """
    if shutil.which("sbatch") is None:
        raise UserError(
            "hydra/launcher=slurm is not possible: there is no sbatch here; use it on a login "
            "node of a cluster, or use hydra/launcher=cores"
        )
    submissions = Path(job.params["submitit_folder"]).parent
    try:
        _wait_for_earlier_start(submissions)
        jobs = _submit(job, job_overrides, first_number)
        print(f"submitted: Slurm jobs {jobs[0].job_id} to {jobs[-1].job_id}", flush=True)
        states = _wait(jobs)
    except KeyboardInterrupt:
        if arrays := _arrays(submissions):
            print(f"interrupted: scancel {' '.join(arrays)}", file=sys.stderr, flush=True)
            subprocess.run(["scancel", *arrays], check=False, capture_output=True)
            while _queue(arrays, alive=True):
                time.sleep(1)
        raise
    return [
        _returned(one, states[one.job_id], number, overrides)
        for number, (one, overrides) in enumerate(
            zip(jobs, job_overrides, strict=True), first_number
        )
    ]


def _submit(job: SlurmLauncher, job_overrides: Sequence[Sequence[str]], first: int) -> list[Any]:
    import submitit
    from hydra_plugins.hydra_submitit_launcher.config import BaseQueueConf
    from submitit.core.utils import FailedJobError

    shared = {key.name for key in dataclasses.fields(BaseQueueConf)}
    params = {
        key if key in shared else f"slurm_{key}": value
        for key, value in job.params.items()
        if key not in ("submitit_folder", "max_num_timeout")
    }
    threads = params["cpus_per_task"] or 1
    arguments = [
        (
            [*overrides, *_threads(overrides, threads)],
            "hydra.sweep.dir",
            number,
            f"job_id_for_{number}",
            Singleton.get_state(),
        )
        for number, overrides in enumerate(job_overrides, first)
    ]
    executor = submitit.AutoExecutor(job.params["submitit_folder"], cluster="slurm")
    executor.update_parameters(**params)
    try:
        return executor.map_array(job, *zip(*arguments, strict=True))
    except FailedJobError as error:
        reason = re.sub(r".*(error|failed): ", "", str(error).strip().splitlines()[-1])
        hint = ""
        if "partition" in reason:
            asked = ["sinfo", "--noheader", "--format=%R"]
            names = subprocess.run(asked, capture_output=True, text=True, check=False).stdout
            hint = f"; use hydra.launcher.partition=NAME, one of {', '.join(names.split())}"
        raise UserError(f"Slurm refuses the sweep: {reason}{hint}") from error


def _threads(overrides: Sequence[str], cpus: int) -> list[str]:
    """One thread for each CPU, unless the user has set a number."""
    if cpus == 1 or any(override.startswith("threads=") for override in overrides):
        return []
    return [f"threads={cpus}"]


def _arrays(submissions: Path) -> list[str]:
    """The ids of all arrays that were ever submitted for this sweep."""
    return sorted({path.name.partition("_")[0] for path in submissions.glob("[0-9]*")})


def _queue(arrays: Sequence[str], alive: bool = False) -> dict[str, str] | None:
    """The jobs that Slurm still knows, and their states; None if it does not answer.

    Args:
        alive: leave out those that have ended.
    """
    command = ["squeue", "--me", "--noheader", "--array", "--states=all", "--format=%i %T %r"]
    asked = subprocess.run(
        [*command, f"--jobs={','.join(arrays)}"], capture_output=True, text=True, check=False
    )
    if asked.returncode and "Invalid job id" not in asked.stderr:
        return None
    jobs = dict(line.split(" ", 1) for line in asked.stdout.splitlines())
    return {
        job: state for job, state in jobs.items() if not alive or state.split()[0] not in AT_AN_END
    }


def _wait_for_earlier_start(submissions: Path) -> None:
    """Let the jobs end whose launcher was killed: they train runs of this sweep."""
    arrays, told = _arrays(submissions), False
    while arrays and (queued := _queue(arrays, alive=True)):
        if not told:
            print(
                f"waiting for jobs of an earlier start of this sweep: {', '.join(queued)}; to end "
                f"them: scancel {' '.join(arrays)}",
                flush=True,
            )
            told = True
        time.sleep(QUEUE_SECONDS)


def _wait(jobs: Sequence[Any]) -> dict[str, str]:
    """Wait until each job has left a result, or Slurm has reported its end and no result came.

    Returns:
        The last state that Slurm gave for each job; "" for a job with a result.
    """
    ended: dict[str, str] = {}
    since: dict[str, float] = {}
    arrays, asked = sorted({job.job_id.partition("_")[0] for job in jobs}), 0.0
    known: dict[str, str] | None = {}
    while len(ended) < len(jobs):
        now = time.monotonic()
        if is_time := now - asked > QUEUE_SECONDS:
            known, asked = _queue(arrays), now
        for job in jobs:
            if job.job_id in ended:
                continue
            if job.paths.result_pickle.exists():
                ended[job.job_id] = ""
            elif is_time and known is not None:
                state = known.get(job.job_id, "unknown to Slurm")
                if state.split()[0] in AT_AN_END or job.job_id not in known:
                    if now - since.setdefault(job.job_id, now) > RESULT_SECONDS:
                        ended[job.job_id] = state
        time.sleep(1)
    return ended


def _returned(job: Any, state: str, number: int, overrides: Sequence[str]) -> JobReturn:
    from submitit.core.utils import pickle_load

    if not state:
        outcome, result = pickle_load(job.paths.result_pickle)
        if outcome == "success" and result.status == JobStatus.COMPLETED:
            return result
        # A job that was refused returns its error, one that could not start a traceback.
        error = result if outcome == "error" else str(result._return_value)
        state = error.strip().splitlines()[-1]
    note = f"job {number} ({' '.join(overrides)}) was lost: {state}; see {job.paths.stderr}"
    assert sweep.current is not None
    sweep.current.lost.append(note)
    lost = JobReturn(overrides=overrides, status=JobStatus.COMPLETED)
    lost.return_value = math.inf
    return lost

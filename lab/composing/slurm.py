"""A sweep on Slurm: submit, wait for every job, and say what became of those that were lost.

The submission is submitit's. Its waiting is not used: it needs Slurm's accounting, and it ends at
the first job that was lost.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import math
import re
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

RESULT_SECONDS = 15  # a shared disk may show the result of a job after Slurm has reported its end
SQUEUE = ("squeue", "--me", "--noheader", "--array", "--states=all", "--format=%i %T")
ENDS = (  # states of jobs that have ended, one way or another
    "BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY",
    "PREEMPTED", "TIMEOUT",
)  # fmt: skip


def launch(
    job: SlurmLauncher, job_overrides: Sequence[Sequence[str]], first_number: int
) -> list[JobReturn]:
    """Run the jobs of a sweep as one array.

    Args:
        job: submitit's launcher, which is what each job of the array calls.
        job_overrides: the overrides of each job.
        first_number: of the first job in the sweep.

    Returns:
        What each job returned; inf for a job that was lost, and a line in `sweep.current.lost`.

    Raises:
        UserError: there is no Slurm, or it refuses the array.
        KeyboardInterrupt: Ctrl-C; the jobs have then been cancelled and have ended.
    """
    submissions = Path(job.params["submitit_folder"]).parent
    try:
        if earlier := _arrays(submissions):  # their launcher may have been killed
            _wait(earlier, "waiting for Slurm jobs of an earlier start")
        submitted = _submit(job, job_overrides, first_number)
        print(f"submitted: Slurm jobs {submitted[0].job_id} to {submitted[-1].job_id}", flush=True)
        states = _wait(_arrays(submissions))
    except KeyboardInterrupt:
        if arrays := _arrays(submissions):
            print(f"interrupted: scancel {' '.join(arrays)}", file=sys.stderr, flush=True)
            subprocess.run(["scancel", *arrays], check=False, capture_output=True)
            _wait(arrays)
        raise
    deadline = time.monotonic() + RESULT_SECONDS
    while time.monotonic() < deadline and not all(_has_result(one) for one in submitted):
        time.sleep(1)
    return [
        _returned(one, f"job {number} ({' '.join(overrides)})", states.get(one.job_id, "unknown"))
        for number, (one, overrides) in enumerate(
            zip(submitted, job_overrides, strict=True), first_number
        )
    ]


def _submit(job: SlurmLauncher, job_overrides: Sequence[Sequence[str]], first: int) -> list[Any]:
    import submitit
    from hydra_plugins.hydra_submitit_launcher.config import BaseQueueConf

    params = dict(job.params)
    folder, _ = params.pop("submitit_folder"), params.pop("max_num_timeout")
    shared = {key.name for key in dataclasses.fields(BaseQueueConf)}
    params = {key if key in shared else f"slurm_{key}": params[key] for key in params}
    threads = f"threads={params['cpus_per_task'] or 1}"
    arguments = []
    for number, overrides in enumerate(job_overrides, first):
        # One thread for each CPU, which `threads: auto` is for one CPU.
        if threads != "threads=1" and not any(word.startswith("threads=") for word in overrides):
            overrides = [*overrides, threads]
        state = Singleton.get_state()
        arguments.append((list(overrides), "hydra.sweep.dir", number, f"job {number}", state))
    try:
        executor = submitit.AutoExecutor(folder, cluster="slurm", slurm_max_num_timeout=0)
        executor.update_parameters(**params)
        with contextlib.redirect_stderr(io.StringIO()):  # submitit copies what sbatch says to it
            return executor.map_array(job, *zip(*arguments, strict=True))
    except RuntimeError as error:
        raise UserError(_why_refused(str(error))) from error


def _why_refused(text: str) -> str:
    """What sbatch or submitit said, and what to do."""
    if "srun" in text:
        return (
            "hydra/launcher=slurm is not possible: there is no Slurm on this machine; use a login "
            "node of a cluster, or hydra/launcher=cores"
        )
    reason = re.sub(r".*(error|failed): ", "", text.strip().splitlines()[-1])
    if "partition" in reason:
        command = ["sinfo", "--noheader", "--format=%R"]
        names = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
        reason += f"; use hydra.launcher.partition=NAME, one of {', '.join(names)}"
    return f"Slurm refuses the sweep: {reason}"


def _arrays(submissions: Path) -> list[str]:
    """The ids of all job arrays that were ever submitted for this sweep."""
    return sorted({path.name.partition("_")[0] for path in submissions.glob("[0-9]*")})


def _wait(arrays: Sequence[str], why: str = "") -> dict[str, str]:
    """Wait until every job of these arrays has ended; return the last state of each."""
    last: dict[str, str] = {}
    started = time.monotonic()
    while True:
        command = [*SQUEUE, f"--jobs={','.join(arrays)}"]
        asked = subprocess.run(command, capture_output=True, text=True, check=False)
        known = dict(line.split() for line in asked.stdout.splitlines())
        last |= known
        # Slurm forgets a job some minutes after its end.
        answered = asked.returncode == 0 or "Invalid job id" in asked.stderr
        if answered and all(state in ENDS for state in known.values()):
            return last
        if why:
            print(f"{why}: {' '.join(arrays)}; to end them: scancel {' '.join(arrays)}", flush=True)
            why = ""
        time.sleep(min(30, 1 + (time.monotonic() - started) / 20))


def _has_result(job: Any) -> bool:
    return job.paths.result_pickle.exists()


def _returned(job: Any, name: str, state: str) -> JobReturn:
    """What a job returned; a line in `sweep.current.lost` if that is nothing."""
    from submitit.core.utils import pickle_load

    if state not in ENDS:
        state = f"it left Slurm's queue, where it was last {state}"
    if _has_result(job):
        outcome, result = pickle_load(job.paths.result_pickle)
        if outcome == "success" and result.status == JobStatus.COMPLETED:
            return result
        # The error of a job that was refused, or the traceback of one that could not start.
        state = str(result if outcome == "error" else result._return_value).splitlines()[-1]
    assert sweep.current is not None
    sweep.current.lost.append(f"{name} was lost: {state}; see {job.paths.stderr}")
    lost = JobReturn(status=JobStatus.COMPLETED)
    lost.return_value = math.inf
    return lost

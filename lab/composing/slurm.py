"""A sweep on Slurm: submit, wait for every job, and say what became of those that were lost.

The submission is submitit's. Its waiting is not used: it needs Slurm's accounting, and it ends at
the first job that was lost.
"""

from __future__ import annotations

import contextlib
import io
import math
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from hydra.core.utils import JobReturn, JobStatus

from lab.composing import sweep
from lab.errors import UserError

RESULT_SECONDS = 15  # a shared disk may show the result of a job after Slurm has reported its end
SQUEUE = ("squeue", "--me", "--noheader", "--array", "--states=all", "--format=%i %T")
ENDS = (  # states of jobs that have ended, one way or another
    "BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY",
    "PREEMPTED", "TIMEOUT",
)  # fmt: skip


def launch(
    submit: Callable[..., Sequence[Any]],
    params: dict[str, Any],
    job_overrides: Sequence[Sequence[str]],
    first_number: int,
) -> list[JobReturn]:
    """Run the jobs of a sweep as one array.

    Args:
        submit: the `launch` of submitit's launcher.
        params: of that launcher, the keys of slurm.yaml.
        job_overrides: the overrides of each job.
        first_number: of the first job in the sweep.

    Returns:
        What each job returned; inf for a job that was lost, which is named on stderr.

    Raises:
        UserError: Slurm is not installed, or it refuses the array.
        KeyboardInterrupt: Ctrl-C; the jobs have then been cancelled and have ended.
    """
    submissions = Path(params["submitit_folder"]).parent
    # One thread for each CPU, which `threads: auto` is for one CPU; what was typed comes later.
    cpus = params["cpus_per_task"] or 1
    threads = [f"threads={cpus}"] if cpus > 1 else []
    try:
        if earlier := _arrays(submissions):  # their launcher may have been killed
            ids = " ".join(earlier)
            print(
                f"waiting for Slurm jobs of an earlier start: {ids}; to end them: scancel {ids}",
                flush=True,
            )
            _wait(earlier)
        jobs = _submitted(submit, [[*threads, *words] for words in job_overrides], first_number)
        print(f"submitted: Slurm jobs {jobs[0].job_id} to {jobs[-1].job_id}", flush=True)
        states = _wait(_arrays(submissions))
    except KeyboardInterrupt:
        if arrays := _arrays(submissions):
            print(f"interrupted: scancel {' '.join(arrays)}", file=sys.stderr, flush=True)
            subprocess.run(["scancel", *arrays], check=False, capture_output=True)
            _wait(arrays)
        raise
    deadline = time.monotonic() + RESULT_SECONDS
    returned = []
    for number, (job, overrides) in enumerate(zip(jobs, job_overrides, strict=True), first_number):
        while not job.paths.result_pickle.exists() and time.monotonic() < deadline:
            time.sleep(1)
        name = f"job {number} ({' '.join(overrides)})"
        returned.append(_returned(job, name, states.get(job.job_id, "unknown")))
    return returned


def _submitted(submit: Callable[..., Sequence[Any]], *jobs: Any) -> Sequence[Any]:
    """The jobs of the array as submitit has them, and not, as it would, their results."""
    from submitit import SlurmJob

    unheard = contextlib.redirect_stderr(io.StringIO())  # submitit copies what sbatch says to it
    try:
        with mock.patch.object(SlurmJob, "results", lambda job: [job]), unheard:
            return submit(*jobs)
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
        reason += "; use hydra.launcher.partition=NAME with a name that sinfo lists"
    return f"Slurm refuses the sweep: {reason}"


def _arrays(submissions: Path) -> list[str]:
    """The ids of all job arrays that were ever submitted for this sweep."""
    return sorted({path.name.partition("_")[0] for path in submissions.glob("[0-9]*")})


def _wait(arrays: Sequence[str]) -> dict[str, str]:
    """Wait until every job of these arrays has ended; return the last state of each."""
    command = [*SQUEUE, f"--jobs={','.join(arrays)}"]
    last: dict[str, str] = {}
    started = time.monotonic()
    while True:
        asked = subprocess.run(command, capture_output=True, text=True, check=False)
        known = dict(line.split() for line in asked.stdout.splitlines())
        last |= known
        # Slurm forgets a job some minutes after its end.
        answered = asked.returncode == 0 or "Invalid job id" in asked.stderr
        if answered and all(state in ENDS for state in known.values()):
            return last
        time.sleep(min(30, 1 + (time.monotonic() - started) / 20))


def _returned(job: Any, name: str, state: str) -> JobReturn:
    """What a job returned; inf, and a line on stderr, if that is nothing."""
    from submitit.core.utils import pickle_load

    reason = f"its last state in Slurm's queue was {state}"
    if job.paths.result_pickle.exists():
        outcome, result = pickle_load(job.paths.result_pickle)
        if outcome == "success" and result.status == JobStatus.COMPLETED:
            return result
        # The error of a job that was refused, or the traceback of one that could not start.
        reason = str(result if outcome == "error" else result._return_value).splitlines()[-1]
    assert sweep.current is not None
    sweep.current.has_lost = True
    print(f"{name} was lost: {reason}; see {job.paths.stderr}", file=sys.stderr, flush=True)
    return JobReturn(status=JobStatus.COMPLETED, _return_value=math.inf)

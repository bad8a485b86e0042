"""A sweep: a job whose fault stays its own, and the table, picture and exit code at the end."""

from __future__ import annotations

import logging
import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf

from lab.errors import UserError, explained, one_line, user_traceback
from lab.recording.run import Run
from lab.recording.run_folder import new_summary, record_failure, refuse_used_folder

log = logging.getLogger(__name__)


def sweep_job(
    start: Callable[[DictConfig, Path], Run], cfg: DictConfig, folder: Path, shown: Path
) -> Run | None:
    """Do one job of a sweep: one line on the screen, and no fault in it stops the others.

    Args:
        start: trains what the config says, in the folder.
        cfg: the job's config.
        folder: its run folder.
        shown: the same, as the screen is to show it.

    Returns:
        The closed run; None where it failed or diverged, which its summary then says.
    """
    try:
        refuse_used_folder(folder)
        run = start(cfg, folder)
    except Exception as error:
        log.error("%s: %s", shown, one_line(error))
        if not isinstance(error, UserError):
            logging.getLogger("lab.file_only").error(user_traceback(error))
        choices = HydraConfig.get().runtime.choices
        record_failure(folder, new_summary(OmegaConf.to_container(cfg), choices), error)
        return None
    log.info("%s: %s", shown, run.outcome())
    if run.signal is not None:
        log.info("the sweep stops; see it: python compare.py %s", shlex.quote(str(shown.parent)))
    return run


class CompareRuns(Callback):
    """Compares the runs of a sweep in its folder, whatever launched them."""

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        # Hydra makes a warning of an exception in a callback; an exit it lets through.
        with explained():
            compare_sweep(Path(config.hydra.sweep.dir))


def compare_sweep(folder: Path) -> None:
    """Print the table of the runs in a sweep's folder and write `comparison.png` there.

    Raises:
        SystemExit: a job did not finish: 130 if one was interrupted, else 1.
        UserError: there is no run at all, or the picture can't be written.
    """
    # Only a sweep pays for matplotlib's imports.
    from lab.comparing.numbers import compare
    from lab.comparing.picture import draw
    from lab.comparing.table import table, terminal_width
    from lab.recording.curves import notes, read_runs

    runs, skipped = read_runs([folder])
    for line in notes(skipped):
        print(line, file=sys.stderr)
    if not runs:
        raise UserError(f"no job of the sweep left a run in {folder}")
    comparison = compare(runs)
    print(table(comparison, terminal_width()), flush=True)
    draw(comparison, folder / "comparison.png")
    print(f"picture: {os.path.relpath(folder / 'comparison.png')}")
    print(f"see it: tensorboard --logdir {shlex.quote(os.path.relpath(folder))}", flush=True)
    if any(run.status == "interrupted" for run in runs):
        raise SystemExit(130)
    if skipped or any(run.status != "finished" for run in runs):
        raise SystemExit(1)

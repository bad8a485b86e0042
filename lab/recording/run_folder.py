"""The folder of a run: who may have it, and what `summary.json` says of the run in it."""

from __future__ import annotations

import json
import shutil
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch

from lab.errors import UserError, one_line
from lab.files import write_whole
from lab.jsonable import jsonable
from lab.recording.curves import CURVE, HEADER, SUMMARY, Damaged, read_run, summary_crc32


def refuse_used_folder(folder: Path) -> None:
    """Keep two runs out of one folder.

    Raises:
        UserError: the folder holds a run.
    """
    if (folder / SUMMARY).exists() or (folder / CURVE).exists():
        raise UserError(
            f"{folder}: holds a run already; name another folder, or go on with resume={folder}"
        )


@contextmanager
def leaving_no_trace(folder: Path) -> Iterator[None]:
    """Take a folder that Hydra made away again, if what failed never became a run."""
    try:
        yield
    except BaseException:
        if not (folder / SUMMARY).exists():
            shutil.rmtree(folder / ".hydra", ignore_errors=True)
            (folder / "train.log").unlink(missing_ok=True)
            with suppress(OSError):  # whatever else is in it is not ours
                folder.rmdir()
        raise


def new_summary(config: dict[str, Any], choices: Mapping[str, str]) -> dict[str, Any]:
    """What `summary.json` says of a run before its first step.

    Args:
        config: the whole config, resolved.
        choices: Hydra's, group to file name: what was really chosen.
    """
    groups = {group: choices[group] for group in ("function", "optimizer", "model", "data")}
    return groups | {
        "device": config["device"],
        "dtype": config["dtype"],
        "seed": config["seed"],
        "lr": (config.get("optimizer") or {}).get("lr"),
        "steps": config["steps"],
        "status": "running",
        "first_loss": None,
        "final_loss": None,
        "steps_per_second": None,
        "torch": str(torch.__version__),
        "error": None,
        "config": config,
        "curve_bytes": 0,
        "curve_crc32": 0,
    }


def write_summary(folder: Path, summary: dict[str, Any]) -> None:
    """Replace `summary.json`, and put its own checksum into it.

    Raises:
        UserError: no space; the old one is still there.
    """
    summary = jsonable(summary)
    summary["summary_crc32"] = summary_crc32(summary)
    write_whole(folder / SUMMARY, (json.dumps(summary, indent=2) + "\n").encode())


def record_failure(folder: Path, summary: dict[str, Any], error: Exception) -> None:
    """Leave a summary and an empty curve for a job of a sweep that failed before its first step."""
    if not (folder / SUMMARY).exists():
        summary |= {"status": "failed", "steps": 0, "error": one_line(error)}
        curve = HEADER + b"\n"
        summary |= {"curve_bytes": len(curve), "curve_crc32": zlib.crc32(curve)}
        write_whole(folder / CURVE, curve)
        write_summary(folder, summary)


def points_before(first_step: int, folder: Path, log_every: int) -> list[tuple[int, float]]:
    """Steps and losses of the run in a folder that a resumed run keeps.

    A point off the beat of `log_every`, written where the run stopped, is not among them.

    Raises:
        UserError: the run can't be read, or points are missing.
    """
    try:
        run = read_run(folder)
    except Damaged as damage:
        raise UserError(f"resume={folder}: {damage}") from damage
    losses = dict(zip(run.steps.tolist(), run.losses.tolist(), strict=True))
    beats = range(0, first_step, log_every)
    if not losses.keys() >= set(beats):
        raise UserError(
            f"resume={folder}: its checkpoint is of step {first_step}, but its {CURVE} does not "
            "reach that far"
        )
    return [(step, losses[step]) for step in beats]

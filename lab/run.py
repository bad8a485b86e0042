"""One run on disk: its curve, written while it grows, and how it ended.

Whatever happens to the process, what was recorded up to the last flush can be read, and
`summary.json` says how far the run came: `running` there means that it was killed.
"""

from __future__ import annotations

import json
import logging
import math
import shutil
import signal
import threading
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

import torch
from torch import Tensor, nn
from tqdm import tqdm

from lab.checkpoint import save_checkpoint
from lab.curves import CURVE, HEADER, SUMMARY, parse_curve, summary_crc32
from lab.errors import UserError
from lab.events import EventFile, cut_events
from lab.files import append_whole, write_whole

log = logging.getLogger(__name__)

BAR_SECONDS = 0.25  # between two redraws


class Diverged(UserError):
    """The loss at a step is not finite."""

    exit_code = 1


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
    except Exception:
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
    }


def record_failure(folder: Path, summary: dict[str, Any], error: Exception) -> None:
    """Leave a summary and an empty curve for a job of a sweep that failed before its first step."""
    if not (folder / SUMMARY).exists():
        summary |= {"status": "failed", "steps": 0, "error": _one_line(error)}
        write_whole(folder / CURVE, lambda file: file.write(HEADER + b"\n"))
        _write_summary(folder, summary, zlib.crc32(HEADER + b"\n"))


class Run:
    """A training that is going on, and its folder; a context manager around the loop.

    Args:
        folder: the run folder; it exists.
        summary: from `new_summary`; kept up to date. Of its config count here: steps, log_every
            (steps between two points of the curve, the last step is always one), flush_seconds
            (between two writes, and so the most that a power cut costs), stop_on_nonfinite and
            progress.
        model: whose gradients are named where they are missing or not finite.
        first_step: 0, or where a resumed run goes on; its curve is cut back to there.

    Attributes:
        signal: the signal that asked the run to stop, or None.
    """

    def __init__(
        self, folder: Path, summary: dict[str, Any], model: nn.Module, first_step: int = 0
    ) -> None:
        self.folder = folder
        self.summary = summary
        self.signal: int | None = None
        self._config = summary["config"]
        self._log_every = self._config["log_every"]
        self._model = model
        self._first_step = first_step
        # (tag, step, seconds since the epoch, value)
        self._unread: list[tuple[str, int, float, float | Tensor]] = []
        self._latest: tuple[int, float, float] | None = None
        self._written_step = first_step - 1
        self._last_finite: float | None = None
        self._curve_crc32 = 0
        self._started = self._ended = time.perf_counter()

    def __enter__(self) -> Self:
        lines = self._cut_back() if self._first_step else HEADER + b"\n"
        write_whole(self.folder / CURVE, lambda file: file.write(lines))
        self._curve_crc32 = zlib.crc32(lines)
        self._curve = (self.folder / CURVE).open("ab", buffering=0)
        self._events = EventFile(self.folder)
        if not self._first_step:
            self._describe()
        _write_summary(self.folder, self.summary, self._curve_crc32)
        self._handlers = {}
        # Python admits handlers in the main thread alone.
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._handlers[number] = signal.signal(number, self._stop_after_step)
        self._bar = tqdm(disable=True)
        return self

    def steps(self) -> Iterator[int]:
        """Count the steps under a bar, from the first on; end early when asked to stop."""
        steps, progress = self._config["steps"], self._config["progress"]
        self._bar = tqdm(
            total=steps,
            initial=self._first_step,
            unit=" steps",
            mininterval=BAR_SECONDS,
            dynamic_ncols=True,
            disable=None if progress is None else not progress,
        )
        self.summary["steps"] = self._first_step
        self._started = time.perf_counter()
        self._next_flush = self._started + self._config["flush_seconds"]
        self._next_show = self._started
        for step in range(self._first_step, steps):
            yield step
            self.summary["steps"] = step + 1
            self._bar.update()
            if self.signal is not None:
                break
        self.flush()
        self._ended = time.perf_counter()

    def record(self, step: int, loss: Tensor) -> None:
        """Take note of the loss at a step, before its update.

        On the CPU the loss is read at once; on an accelerator it stays there until the next flush,
        so that no step waits, and a loss that is not finite is found then.

        Raises:
            Diverged: the loss is not finite.
        """
        value = loss.item() if loss.is_cpu else loss.detach()
        self._unread.append(("loss", step, time.time(), value))
        if step == self._first_step + 1:
            self._name_missing_gradients()
        now = time.perf_counter()
        if now >= self._next_flush or (loss.is_cpu and not math.isfinite(value)):
            self.flush()
            self._next_flush = now + self._config["flush_seconds"]
        if now >= self._next_show:
            self._show(value if loss.is_cpu else self.summary["final_loss"])
            self._next_show = now + BAR_SECONDS

    def record_scalar(self, tag: str, step: int, value: Tensor) -> None:
        """Take note of another scalar: a tag in TensorBoard, its last value in the summary."""
        self._unread.append((tag, step, time.time(), value.detach()))

    def save_checkpoint(self, step: int, optimizer: Any) -> None:
        """Keep the state in front of a step, once the curve up to it is on disk."""
        self.flush()
        save_checkpoint(self.folder, step, self._model, optimizer, self.summary)

    def flush(self) -> None:
        """Read and write what was recorded since the last flush.

        Raises:
            Diverged: a loss in it is not finite; the curve ends there.
            UserError: no space is left; what was written before is whole.
        """
        unread, self._unread = self._unread, []
        points, diverged = [], None
        for (tag, step, when, _), value in zip(unread, _read(unread), strict=True):
            if tag != "loss":
                self._events.add_scalar(tag, value, step, when)
                self.summary[tag] = value
                continue
            self._latest = (step, when, value)
            if math.isfinite(value):
                self._last_finite = value
            elif self._config["stop_on_nonfinite"]:
                diverged = Diverged(self._words_on(step, value))
                break
            if step % self._log_every == 0:
                points.append(self._latest)
        if diverged:
            points.append(self._latest)
        self._write(points)
        if diverged:
            raise diverged

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.flush()
            if self._latest and self._latest[0] > self._written_step:
                self._write([self._latest])
        except UserError as late:
            error = late
            raise
        finally:
            done = self.summary["steps"] - self._first_step
            if self._ended > self._started:
                self.summary["steps_per_second"] = done / (self._ended - self._started)
            self.summary["status"] = self._status(error)
            self.summary["error"] = None if error is None else _one_line(error)
            self._curve.close()
            self._events.close()
            self._show(self.summary["final_loss"])
            self._bar.close()
            for number, handler in self._handlers.items():
                signal.signal(number, handler)
            _write_summary(self.folder, self.summary, self._curve_crc32)

    def _cut_back(self) -> bytes:
        """The curve before the first step, without points off the beat, written at a stop."""
        steps, losses, _ = parse_curve((self.folder / CURVE).read_bytes())
        kept = [
            (step, loss)
            for step, loss in zip(steps.tolist(), losses.tolist(), strict=True)
            if step < self._first_step and step % self._log_every == 0
        ]
        if kept:
            self.summary["first_loss"], self.summary["final_loss"] = kept[0][1], kept[-1][1]
        cut_events(self.folder, self._first_step, self._log_every)
        return HEADER + b"\n" + b"".join(_line(step, loss) for step, loss in kept)

    def _describe(self) -> None:
        hparams = {
            key: self.summary[key]
            for key in ("function", "optimizer", "lr", "seed", "device", "dtype", "model", "data")
            if self.summary[key] is not None
        }
        self._events.add_hparams(hparams, metric="loss")
        config = json.dumps(self.summary["config"], indent=2)
        self._events.add_text("config", "    " + config.replace("\n", "\n    "))
        self._events.flush()

    def _write(self, points: list[tuple[int, float, float]]) -> None:
        for step, when, loss in points:
            self._events.add_scalar("loss", loss, step, when)
        lines = b"".join(_line(step, loss) for step, _, loss in points)
        try:
            append_whole(self._curve, lines)
            self._curve_crc32 = zlib.crc32(lines, self._curve_crc32)
            if points:
                self._written_step = points[-1][0]
                self.summary["final_loss"] = points[-1][2]
                if self.summary["first_loss"] is None:
                    self.summary["first_loss"] = points[0][2]
            self._events.flush()
        except OSError as error:
            raise UserError(f"{self.folder}: {error.strerror}") from error

    def _status(self, error: BaseException | None) -> str:
        if isinstance(error, Diverged):
            return "diverged"
        if isinstance(error, KeyboardInterrupt) or (error is None and self.signal is not None):
            return "interrupted"
        if error is not None:
            return "failed"
        return "finished" if self._latest is None or math.isfinite(self._latest[2]) else "diverged"

    def _stop_after_step(self, number: int, frame: FrameType | None) -> None:
        self.signal = number
        for other, handler in self._handlers.items():
            signal.signal(other, handler)  # a second one stops at once

    def _show(self, loss: float | None) -> None:
        if loss is not None:
            self._bar.set_postfix_str(f"loss {loss:.6g}", refresh=False)

    def _name_missing_gradients(self) -> None:
        # The gradients of the step before are still there: they are cleared after the loss.
        for name, parameter in self._model.named_parameters():
            if parameter.grad is None:
                log.warning("%s gets no gradient: no backward reaches it", name)
            elif not parameter.grad.any():
                log.warning("the gradient of %s is zero everywhere: it does not learn", name)

    def _words_on(self, step: int, loss: float) -> str:
        words = [f"diverged: the loss at step {step} is {loss}"]
        if self._last_finite is not None:
            words.append(f"the last finite loss was {self._last_finite:.6g}")
        words += [
            f"the gradient of {name} is not finite"
            for name, parameter in self._model.named_parameters()
            if parameter.grad is not None and not parameter.grad.isfinite().all()
        ]
        if self.summary["lr"]:
            words.append(f"try a smaller step, optimizer.lr={self.summary['lr'] / 10:.1e}")
        return "; ".join(words)


def _write_summary(folder: Path, summary: dict[str, Any], curve_crc32: int) -> None:
    closed = summary["status"] != "running"
    summary = {key: _plain(value) for key, value in summary.items()}
    summary["curve_crc32"] = curve_crc32 if closed else None
    summary["summary_crc32"] = summary_crc32(summary)
    text = json.dumps(summary, indent=2) + "\n"
    try:
        write_whole(folder / SUMMARY, lambda file: file.write(text.encode()))
    except OSError as error:
        raise UserError(f"{folder / SUMMARY}: {error.strerror}") from error


def _read(unread: list[tuple[str, int, float, float | Tensor]]) -> list[float]:
    """All values as numbers, with one read of the device for all that are still there."""
    values = [value for *_, value in unread]
    tensors = [value for value in values if isinstance(value, Tensor)]
    numbers = iter(torch.stack(tensors).tolist() if tensors else ())
    return [next(numbers) if isinstance(value, Tensor) else value for value in values]


def _line(step: int, loss: float) -> bytes:
    return f"{step},{loss!r}\n".encode()


def _plain(value: Any) -> Any:
    """JSON has no nan and no inf."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _one_line(error: BaseException) -> str:
    text = (str(error).strip() or type(error).__name__).splitlines()[0]
    return text if isinstance(error, UserError) else f"{type(error).__name__}: {text}"

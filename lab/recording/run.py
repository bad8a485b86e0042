"""One run on disk: its curve, written while it grows, and how it ended.

Whatever happens to the process, what was recorded up to the last flush can be read, and
`summary.json` says how far the run came: `running` there means that it was killed.
"""

from __future__ import annotations

import json
import logging
import math
import signal
import threading
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

import torch
from torch import Tensor, nn
from tqdm import tqdm

from lab.errors import UserError, one_line
from lab.files import append_whole, locked, named, write_whole
from lab.recording.checkpoint import save_checkpoint
from lab.recording.curves import CURVE, HEADER
from lab.recording.events import EventFile, cut_events
from lab.recording.run_folder import points_before, refuse_used_folder, write_summary

log = logging.getLogger(__name__)

BAR_SECONDS = 0.25  # between two redraws


class Diverged(UserError):
    """The loss at a step is not finite."""

    exit_code = 1


class Run:
    """A training that is going on, and its folder; a context manager around the loop.

    Args:
        folder: the run folder; it exists.
        summary: from `run_folder.new_summary`; kept up to date. Of its config count here:
            steps, log_every (steps between two points of the curve, the last step is always one),
            flush_seconds (between two writes, and so the most that a power cut costs),
            stop_on_nonfinite and progress.
        model: whose gradients are named where they are missing or not finite.
        first_step: 0, or where a resumed run goes on; its curve is cut back to there.

    Raises:
        UserError: on entry, the folder is another run's, or what is to go on is damaged.

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
        self._stops_on_nonfinite = self._config["stop_on_nonfinite"]
        self._model = model
        self._first_step = first_step
        # (tag, step, seconds since the epoch, value)
        self._unread: list[tuple[str, int, float, float | Tensor]] = []
        # (tag, value, step, seconds since the epoch)
        self._latest: tuple[str, float, int, float] | None = None
        self._written_step = first_step - 1
        self._last_finite: float | None = None
        self._handlers: dict[int, Any] = {}
        self._bar = tqdm(disable=True)
        self._started = self._ended = time.perf_counter()

    def __enter__(self) -> Self:
        with ExitStack() as closing:
            closing.callback(self._stop_listening)
            self._listen()
            closing.enter_context(locked(self.folder))
            points = self._points_so_far()
            # The summary first: what it vouches for is in the old curve as in the new.
            content = HEADER + b"\n" + _lines(points)
            self._vouch_for(content)
            write_whole(self.folder / CURVE, content)
            for half_done in self.folder.glob("*.part"):  # the process before was killed
                half_done.unlink()
            kept_steps = cut_events(self.folder, self._first_step, self._log_every)
            with named(self.folder):
                self._curve = (self.folder / CURVE).open("ab", buffering=0)
                closing.callback(self._curve.close)
                self._events = EventFile(self.folder)
                closing.callback(self._events.close)
            if not self._first_step:
                self._describe()
            for step, loss in points:
                if step not in kept_steps:  # the event file was damaged, the curve is not
                    self._events.add_scalar("loss", loss, step, time.time())
            self._closing = closing.pop_all()
        return self

    def steps(self) -> Iterator[int]:
        """Count the steps under a bar, from the first on; end early when asked to stop.

        Raises:
            Diverged: a loss, or what the last step made of the weights, is not finite.
        """
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
            if step == self._first_step:
                self._name_missing_gradients()
            self._bar.update()
            if self.signal is not None:
                break
        self.flush()
        if torch.device(self.summary["device"]).type != "cpu":
            torch.accelerator.synchronize()  # the last update is a step's work too
        self._ended = time.perf_counter()
        if self._stops_on_nonfinite and self._nonfinite_gradients():
            raise Diverged(self._words(f"the weights after step {step} are not finite"))

    def record(self, step: int, loss: Tensor) -> None:
        """Take note of the loss at a step, before its update.

        On the CPU the loss is read at once; on an accelerator it stays there until the next flush,
        so that no step waits, and a loss that is not finite is found then.

        Raises:
            Diverged: the loss is not finite.
        """
        value = loss.item() if loss.is_cpu else loss.detach()
        self._unread.append(("loss", step, time.time(), value))
        now = time.perf_counter()
        stop = loss.is_cpu and self._stops_on_nonfinite and not math.isfinite(value)
        if now >= self._next_flush or stop:
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
            UserError: no space is left; what was written before is whole, the rest is kept.
        """
        scalars, diverged = [], False
        for (tag, step, when, _), value in zip(self._unread, _read(self._unread), strict=True):
            if tag != "loss":
                scalars.append((tag, value, step, when))
                self.summary[tag] = value
                continue
            self._latest = ("loss", value, step, when)
            if math.isfinite(value):
                self._last_finite = value
            else:
                diverged = self._stops_on_nonfinite
            if step % self._log_every == 0 or diverged:
                scalars.append(self._latest)
            if diverged:
                break
        self._write(scalars)
        if diverged:
            self.summary["steps"] = step  # on an accelerator more have been done since
            raise Diverged(self._words(f"the loss at step {step} is {value}"))

    def outcome(self) -> str:
        """How it went, in one line."""
        summary = self.summary
        accuracy, rate = summary.get("test_accuracy"), summary["steps_per_second"]
        return (
            f"{summary['status']} on {summary['device']}: "
            f"loss {summary['first_loss']:.8g} at step 0, "
            f"{summary['final_loss']:.8g} at step {summary['steps'] - 1}"
            + ("" if accuracy is None else f", test accuracy {accuracy:.1%}")
            + ("" if rate is None else f"; {rate:,.0f} steps a second")
        )

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._closing:
            try:
                self.flush()
                if self._latest and self._latest[2] > self._written_step:
                    self._write([self._latest])
            except Exception as late:
                if error is None:  # else what ended the run is what is told
                    error = late
                    raise
            finally:
                done = self.summary["steps"] - self._first_step
                if self._ended > self._started:
                    self.summary["steps_per_second"] = done / (self._ended - self._started)
                self.summary["status"] = self._status(error)
                self.summary["error"] = None if error is None else one_line(error)
                self._show(self.summary["final_loss"])
                self._bar.close()
                write_summary(self.folder, self.summary)

    def _listen(self) -> None:
        # Python admits handlers in the main thread alone.
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._handlers[number] = signal.signal(number, self._stop_after_step)

    def _stop_after_step(self, number: int, frame: FrameType | None) -> None:
        self.signal = number
        self._stop_listening()  # a second one stops at once

    def _stop_listening(self) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def _points_so_far(self) -> list[tuple[int, float]]:
        if not self._first_step:
            refuse_used_folder(self.folder)
            return []
        points = points_before(self._first_step, self.folder, self._log_every)
        self.summary["first_loss"], self.summary["final_loss"] = points[0][1], points[-1][1]
        return points

    def _vouch_for(self, more: bytes) -> None:
        """Say in the summary how long the curve is, and its checksum."""
        self.summary["curve_bytes"] += len(more)
        self.summary["curve_crc32"] = zlib.crc32(more, self.summary["curve_crc32"])
        write_summary(self.folder, self.summary)

    def _describe(self) -> None:
        hparams = {
            key: self.summary[key]
            for key in ("function", "optimizer", "lr", "seed", "device", "dtype")
            if self.summary[key] is not None
        }
        self._events.add_hparams(hparams, metric="loss")
        config = json.dumps(self.summary["config"], indent=2)
        self._events.add_text("config", "    " + config.replace("\n", "\n    "))
        self._events.flush()

    def _write(self, scalars: list[tuple[str, float, int, float]]) -> None:
        points = [(step, value) for tag, value, step, _ in scalars if tag == "loss"]
        lines = _lines(points)
        append_whole(self.folder / CURVE, self._curve, lines)
        self._unread = []
        for scalar in scalars:
            self._events.add_scalar(*scalar)
        if points:
            self._written_step, self.summary["final_loss"] = points[-1]
            if self.summary["first_loss"] is None:
                self.summary["first_loss"] = points[0][1]
            self._vouch_for(lines)
        self._events.flush()

    def _status(self, error: BaseException | None) -> str:
        if isinstance(error, Diverged):
            return "diverged"
        if isinstance(error, KeyboardInterrupt):
            return "interrupted"
        if error is not None:
            return "failed"
        if self.summary["steps"] < self._config["steps"]:
            return "interrupted"
        return "finished" if self._latest is None or math.isfinite(self._latest[1]) else "diverged"

    def _show(self, loss: float | None) -> None:
        if loss is not None:
            self._bar.set_postfix_str(f"loss {loss:.6g}", refresh=False)

    def _name_missing_gradients(self) -> None:
        for name, parameter in self._model.named_parameters():
            if parameter.grad is None:
                log.warning("%s gets no gradient: no backward reaches it", name)
            elif not parameter.grad.any():
                log.warning("the gradient of %s is zero everywhere: it does not learn", name)

    def _nonfinite_gradients(self) -> list[str]:
        return [
            name
            for name, parameter in self._model.named_parameters()
            if parameter.grad is not None and not parameter.grad.isfinite().all()
        ]

    def _words(self, what: str) -> str:
        words = [f"diverged: {what}"]
        if self._last_finite is not None:
            words.append(f"the last finite loss was {self._last_finite:.6g}")
        words += [f"the gradient of {name} is not finite" for name in self._nonfinite_gradients()]
        if self.summary["lr"]:
            words.append(f"try a smaller step, optimizer.lr={self.summary['lr'] / 10:.1e}")
        return "; ".join(words)


def _read(unread: list[tuple[str, int, float, float | Tensor]]) -> list[float]:
    """All values as numbers, with one read of the device for all that are still there."""
    values = [value for *_, value in unread]
    tensors = [value for value in values if isinstance(value, Tensor)]
    numbers = iter(torch.stack(tensors).tolist() if tensors else ())
    return [next(numbers) if isinstance(value, Tensor) else value for value in values]


def _lines(points: Iterable[tuple[int, float]]) -> bytes:
    return "".join(f"{step},{loss!r}\n" for step, loss in points).encode()

"""A run: it counts the steps of the training loop, records the losses and saves everything.

Whatever happens to the process, the points up to the last flush can be read, and `summary.json`
says how far the run came. Its status `running` means that the run is training or was killed.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import math
import textwrap
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, nn
from tqdm.contrib.logging import logging_redirect_tqdm

from lab.config import Config
from lab.devices import pick_device
from lab.errors import UserError, is_interruption, one_line, user_traceback
from lab.files import locked
from lab.parts import Optimizer
from lab.recording.checkpoint import load_checkpoint, restore, save_checkpoint
from lab.recording.curve import append_points, start_curve
from lab.recording.diagnosis import Diverged, nonfinite, why_diverged, zero_gradients
from lab.recording.events import EventFile, cut_events
from lab.recording.folder import make_folder, points_to_keep, resume_refused
from lab.recording.interruption import first_signal_to
from lab.recording.progress import Progress
from lab.recording.reading import read_summary
from lab.recording.summary import Summary

log = logging.getLogger(__name__)
file_log = logging.getLogger("lab.file_only")  # in train.log, not on the screen


class Scalar(NamedTuple):
    """One number of one step, `seconds` since the epoch."""

    tag: str
    value: Any  # a float, or a tensor on an accelerator that is not read yet
    step: int
    seconds: float


class Run:
    """A training and its folder; a context manager around the loop.

    Args:
        folder: the run folder. It is made, and must be empty, unless `config.resume` is set: then
            the run in it continues from its own `checkpoint.pt`.
        config: of the run; used are steps, log_every, flush_seconds, checkpoint_every, progress
            and resume.
        model, optimizer: restored on a resume, saved at every checkpoint and at the end.

    Raises:
        UserError: on entry, when the folder may not be used or the run in it can't be resumed.

    Attributes:
        summary: kept up to date; its `status` says how the run went.
        signal: the number of the signal that asked the run to stop, or None.
    """

    def __init__(
        self, folder: Path, config: Config, model: nn.Module, optimizer: Optimizer
    ) -> None:
        self.folder, self.config = folder, config
        self.summary = Summary.of_keys(config.keys, config.choices, config.overrides)
        self.signal: int | None = None
        self._device = pick_device(config.device)
        self.summary.device = str(self._device)
        self.summary.torch, self.summary.threads = str(torch.__version__), torch.get_num_threads()
        self._model, self._optimizer = model, optimizer
        self._unwritten: list[Scalar] = []
        self._first_step = 0
        self._last_step: int | None = None  # once it is known
        self._finite_loss: float | None = None  # the last one that was read

    def __enter__(self) -> Self:
        with ExitStack() as closing:
            closing.enter_context(first_signal_to(self._stop))
            closing.enter_context(logging_redirect_tqdm())  # log lines go above the bar
            if self.config.resume is None:
                make_folder(self.folder)
                closing.enter_context(locked(self.folder))
                make_folder(self.folder)  # another run may have used it before the lock was taken
                self._start()
            else:
                closing.enter_context(locked(self.folder))
                self._resume()
            for unfinished in self.folder.glob("*.part"):  # of a process that was killed
                unfinished.unlink()
            self._closing = closing.pop_all()
        return self

    def _stop(self, signal: int) -> None:
        self.signal = signal

    def _start(self) -> None:
        """Write a curve without points, and tell TensorBoard what the run is.

        The HParams tab gets a row, the Text tab the config.
        """
        start_curve(self.folder, self.summary)
        names = ("function", "optimizer", "data", "lr", "seed", "device", "dtype", "threads")
        hparams = {name: getattr(self.summary, name) for name in names}
        hparams |= {"steps": self.config.steps, "momentum": self.config.optimizer.get("momentum")}
        hparams |= {name: self.config.model.get(name) for name in ("hidden", "init")}
        self._events = EventFile(self.folder)
        self._events.add_run(
            {name: value for name, value in hparams.items() if value is not None},
            ["loss", "test_accuracy"],
            textwrap.indent(json.dumps(self.summary.config, indent=2), "    "),
        )
        self._events.flush()

    def _resume(self) -> None:
        with resume_refused(self.folder):
            checkpoint = load_checkpoint(self.folder)
            first = self._first_step = self.summary.steps = checkpoint["step"]
            if self.config.steps <= first:
                recorded = read_summary(self.folder)
                whole = self.config.steps == first == (recorded.config or {}).get("steps")
                if whole and recorded.status in ("running", "failed", "interrupted"):
                    # It was stopped after its last step: what its end writes is missing.
                    self.summary = dataclasses.replace(recorded, steps=first, error=None)
                    self._events = EventFile(self.folder)
                    restore(checkpoint, self._model, self._optimizer, self._device)
                    return
                raise UserError(
                    f"resume={self.folder} has nothing to do: the run has done {first} steps; ask "
                    f"for more, such as steps={2 * first}"
                )
            points = points_to_keep(first, self.folder, self.config.log_every)
            self._finite_loss = points[-1][1] if points else None
        restore(checkpoint, self._model, self._optimizer, self._device)
        start_curve(self.folder, self.summary, points)
        kept_steps = cut_events(self.folder, first, self.config.log_every)
        self._events = EventFile(self.folder)
        for step, loss in points:
            if step not in kept_steps:  # the event file was damaged, the curve was not
                self._events.add_scalar("loss", loss, step, time.time())

    def steps(self) -> Iterator[int]:
        """Count the steps under a progress bar; stop one step after a signal.

        Raises:
            Diverged: a loss, a gradient or a weight is not finite.
            NoGradient: the first backward pass did not reach a parameter.
        """
        every = self.config.checkpoint_every
        self._progress = Progress(self.config, self._first_step)
        self._closing.callback(self._progress.close)
        started = time.perf_counter()
        self._next_flush = started + self.config.flush_seconds
        for step in range(self._first_step, self.config.steps):
            # Decided before the step, so that it is recorded with all that belongs to a point.
            if self.signal is not None or step == self.config.steps - 1:
                self._last_step = step
            yield step
            self.summary.steps = step + 1
            if step == self._first_step:
                for name in zero_gradients(self._model):
                    what = "is zero everywhere, so this layer will not learn"
                    log.warning("%s: the gradient of %s %s", self.folder.name, name, what)
            self._progress.advance()
            if step == self._last_step:
                break
            if every and (step + 1) % every == 0:
                self.flush()
                self._save()
        self.flush()
        if self._device.type != "cpu":
            torch.accelerator.synchronize(self._device)  # waits for the last update
        done, seconds = self.summary.steps - self._first_step, time.perf_counter() - started
        self.summary.steps_per_second = done / seconds if done else self.summary.steps_per_second
        self._save()

    def is_point(self, step: int) -> bool:
        """Whether this step is recorded: each multiple of `log_every`, and the last step."""
        return step % self.config.log_every == 0 or step == self._last_step

    def record(self, step: int, loss: Tensor) -> None:
        """Record the loss at a step, before its update.

        A loss on the CPU is read at once. On an accelerator it stays there until the next flush, so
        that no step waits for it, and a loss that is not finite is found then.

        Raises:
            Diverged: the loss is not finite.
        """
        if step == self._first_step and not (isinstance(loss, Tensor) and loss.numel() == 1):
            what = tuple(loss.shape) if isinstance(loss, Tensor) else type(loss).__name__
            raise UserError(f"the loss must be a tensor of one element, and it is {what}")
        value: Any = loss.item() if loss.is_cpu else loss.detach()
        self._unwritten.append(Scalar("loss", value, step, time.time()))
        may_wait = math.isfinite(value) if loss.is_cpu else not self._progress.has_line(step)
        if loss.is_cpu and may_wait:
            self._finite_loss = value
        now = time.perf_counter()
        if not may_wait or now >= self._next_flush:
            self.flush()
            self._next_flush = now + self.config.flush_seconds
        if self._finite_loss is not None:
            self._progress.show(step, self._finite_loss)

    def record_scalar(self, tag: str, step: int, value: Tensor) -> None:
        """Record another scalar: all values in TensorBoard, the last one in the summary."""
        self._unwritten.append(Scalar(tag, value.detach(), step, time.time()))

    def flush(self) -> None:
        """Read and write what was recorded since the last flush.

        Raises:
            Diverged: a loss is not finite; the curve ends there.
            UserError: no space is left; earlier points are complete, the rest is written later.
        """
        scalars = self._read()
        wanted = [s for s in scalars if s.tag != "loss" or self.is_point(s.step)]
        points = [(s.step, s.value) for s in wanted if s.tag == "loss"]
        append_points(self.folder, self.summary, points)
        # A last loss between two points waits: the run may end with it.
        self._unwritten = [scalar for scalar in scalars[-1:] if scalar not in wanted]
        for scalar in wanted:
            self._events.add_scalar(*scalar)
            if scalar.tag == "test_accuracy":
                self.summary.test_accuracy = scalar.value
        if points:
            self.summary.write(self.folder)
        self._events.flush()
        if points and not math.isfinite(points[-1][1]):
            step, loss = points[-1]
            # An accelerator has done more steps since: its gradients are those of a later step.
            at_once = self.summary.steps == step
            self.summary.steps = step
            gradients = nonfinite(self._model, gradients=True) if at_once else []
            raise self._diverged(f"the loss at step {step} is {loss}", gradients)

    def _read(self) -> list[Scalar]:
        """What waits, with one read of the device; it ends with a loss that is not finite."""
        tensors = [scalar.value for scalar in self._unwritten if isinstance(scalar.value, Tensor)]
        floats = iter(torch.stack(tensors).tolist() if tensors else ())
        scalars = []
        for scalar in self._unwritten:
            value = next(floats) if isinstance(scalar.value, Tensor) else scalar.value
            scalars.append(scalar._replace(value=value))
            if scalar.tag == "loss" and not math.isfinite(value):
                self._last_step = scalar.step
                break
            if scalar.tag == "loss":
                self._finite_loss = value
        return scalars

    def _save(self) -> None:
        """Save a checkpoint if all weights and gradients are finite."""
        step = self.summary.steps
        gradients = nonfinite(self._model, gradients=True)
        if broken := nonfinite(self._model, gradients=False) or gradients:
            raise self._diverged(f"{broken[0]} is not finite after step {step - 1}", gradients)
        save_checkpoint(self.folder, step, self._model, self._optimizer, self._device)

    def _diverged(self, what: str, gradients: list[str]) -> Diverged:
        summary = self.summary
        return why_diverged(what, gradients, summary.first_loss, self._finite_loss, summary.lr)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        with self._closing:
            try:
                if self.summary.steps == 0 and self._status(error) == "failed":
                    self._unwritten = []  # a run without a step has no curve to compare
                elif self._unwritten:
                    self._last_step = self._unwritten[-1].step
                self.flush()
            except Exception as late:
                if error is None:  # else the run ends with the error that came first
                    error = late
                    raise
            finally:
                self.summary.status = self._status(error)
                if error is not None:
                    self.summary.error = one_line(error)
                    told = isinstance(error, UserError)
                    file_log.error(self.summary.error if told else user_traceback(error))
                self.summary.write(self.folder)

    def _status(self, error: BaseException | None) -> str:
        if error is None:
            return "interrupted" if self.summary.steps < self.config.steps else "finished"
        if isinstance(error, Diverged):
            return "diverged"
        return "interrupted" if is_interruption(error) else "failed"

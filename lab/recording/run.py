"""A run: it counts the steps of the training loop, records the losses and saves everything.

Whatever happens to the process, the points up to the last flush can be read, and `summary.json`
says how far the run came. Its status `running` means that the run is training or was killed.
"""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

import torch
from torch import Tensor, nn
from tqdm.contrib.logging import logging_redirect_tqdm

from lab.config import Config
from lab.devices import pick_device
from lab.errors import UserError, is_interruption, one_line, user_traceback
from lab.files import locked
from lab.parts import Optimizer
from lab.recording.checkpoint import load_checkpoint, restore, save_checkpoint
from lab.recording.curve import CurveFile, Point
from lab.recording.diagnosis import (
    Diverged,
    NoGradient,
    nonfinite_gradients,
    nonfinite_weights,
    why_diverged,
    with_zero_gradient,
    without_gradient,
)
from lab.recording.events import EventFile, cut_events
from lab.recording.folder import make_folder, points_to_keep
from lab.recording.interruption import Interruption
from lab.recording.points import Scalar, Unread
from lab.recording.progress import Progress
from lab.recording.summary import Summary

log = logging.getLogger(__name__)
file_log = logging.getLogger("lab.file_only")  # in train.log, not on the screen


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
        self.folder = folder
        self.config = config
        self.summary = Summary.of(config)
        self._device = pick_device(config.device)
        self.summary.device = str(self._device)
        self.summary.torch, self.summary.threads = str(torch.__version__), torch.get_num_threads()
        self._model, self._optimizer = model, optimizer
        self._interruption = Interruption()
        self._unread = Unread()
        self._first_step = 0
        self._last_step: int | None = None  # once it is known
        self._written_step = -1
        self._latest: Scalar | None = None
        self._last_finite_loss: float | None = None
        self._started = self._ended = time.perf_counter()

    @property
    def signal(self) -> int | None:
        return self._interruption.signal

    def __enter__(self) -> Self:
        with ExitStack() as closing:
            closing.enter_context(self._interruption)
            closing.enter_context(logging_redirect_tqdm())  # log lines go above the bar
            points: list[Point] = []
            if self.config.resume is None:
                make_folder(self.folder)
                closing.enter_context(locked(self.folder))
                make_folder(self.folder)  # another run may have used it before the lock was taken
            else:
                closing.enter_context(locked(self.folder))
                points = self._resume()
            self._curve = closing.enter_context(CurveFile(self.folder, self.summary, points))
            for unfinished in self.folder.glob("*.part"):  # of an earlier process, which was killed
                unfinished.unlink()
            kept_steps = cut_events(self.folder, self._first_step, self.config.log_every)
            self._events = closing.enter_context(EventFile(self.folder))
            if self.config.resume is None:
                self._describe()
            for step, loss in points:
                if step not in kept_steps:  # the event file was damaged, the curve was not
                    self._events.add_scalar("loss", loss, step, time.time())
            self._closing = closing.pop_all()
        return self

    def _resume(self) -> list[Point]:
        checkpoint = load_checkpoint(self.folder)
        self._first_step = checkpoint["step"]
        if self.config.steps <= self._first_step:
            raise UserError(
                f"resume={self.folder} has nothing to do: the run has done {self._first_step} "
                f"steps; ask for more, such as steps={2 * self._first_step}"
            )
        points = points_to_keep(self._first_step, self.folder, self.config.log_every)
        restore(checkpoint, self._model, self._optimizer, self._device)
        self.summary.steps, self._written_step = self._first_step, points[-1][0]
        return points

    def _describe(self) -> None:
        """Tell TensorBoard what the run is: a row for the HParams tab, the config for Text."""
        summary = self.summary
        names = ("function", "optimizer", "data", "lr", "seed", "device", "dtype", "threads")
        hparams = {name: getattr(summary, name) for name in names}
        hparams |= {"steps": self.config.steps, "momentum": self.config.optimizer.get("momentum")}
        hparams |= {name: self.config.model.get(name) for name in ("hidden", "init")}
        self._events.add_hparams(
            {name: value for name, value in hparams.items() if value is not None},
            metrics=["loss", "test_accuracy"],
        )
        config = json.dumps(summary.config, indent=2)
        self._events.add_text("config", "    " + config.replace("\n", "\n    "))
        self._events.flush()

    def steps(self) -> Iterator[int]:
        """Count the steps under a progress bar; stop one step after a signal.

        Raises:
            Diverged: a loss, a gradient or a weight is not finite.
            NoGradient: the first backward pass did not reach a parameter.
        """
        every = self.config.checkpoint_every
        self._progress = Progress(self.config, self._first_step)
        self._closing.callback(self._progress.close)
        self._started = time.perf_counter()
        self._next_flush = self._started + self.config.flush_seconds
        for step in range(self._first_step, self.config.steps):
            # Decided before the step, so that it is recorded with all that belongs to a point.
            if self.signal is not None or step == self.config.steps - 1:
                self._last_step = step
            yield step
            self.summary.steps = step + 1
            if step == self._first_step:
                self._check_gradients()
            self._progress.update()
            if step == self._last_step:
                break
            if every and (step + 1) % every == 0:
                self._save()
        self.flush()
        if self._device.type != "cpu":
            torch.accelerator.synchronize(self._device)  # waits for the last update
        self._ended = time.perf_counter()
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
        value = float(loss.item()) if loss.is_cpu else loss.detach()
        self._unread.add("loss", step, value)
        now = time.perf_counter()
        if now >= self._next_flush or (isinstance(value, float) and not math.isfinite(value)):
            self.flush()
            self._next_flush = now + self.config.flush_seconds
        if self._progress.is_due(step):
            if self._progress.has_lines and not isinstance(value, float):
                self.flush()
            self._show(step, value)

    def record_scalar(self, tag: str, step: int, value: Tensor) -> None:
        """Record another scalar: all values in TensorBoard, the last one in the summary."""
        self._unread.add(tag, step, value.detach())

    def flush(self) -> None:
        """Read and write what was recorded since the last flush.

        Raises:
            Diverged: a loss is not finite; the curve ends there.
            UserError: no space is left; earlier points are complete, the rest is written later.
        """
        scalars = self._unread.read()
        diverged = None
        for number, scalar in enumerate(scalars):
            if scalar.tag != "loss":
                continue
            self._latest = scalar
            if not math.isfinite(scalar.value):
                diverged, scalars = scalar, scalars[: number + 1]
                self._last_step = scalar.step
                break
            self._last_finite_loss = scalar.value
        self._write([s for s in scalars if s.tag != "loss" or self.is_point(s.step)])
        if diverged is not None:
            # An accelerator has done more steps since: its gradients are those of a later step.
            at_once = self.summary.steps == diverged.step
            self.summary.steps = diverged.step
            what = f"the loss at step {diverged.step} is {diverged.value}"
            raise self._diverged(what, nonfinite_gradients(self._model) if at_once else [])

    def _write(self, scalars: list[Scalar]) -> None:
        points = [(scalar.step, scalar.value) for scalar in scalars if scalar.tag == "loss"]
        self._curve.append(points)
        self._unread.clear()
        for scalar in scalars:
            self._events.add_scalar(scalar.tag, scalar.value, scalar.step, scalar.seconds)
            if scalar.tag == "test_accuracy":
                self.summary.test_accuracy = scalar.value
        if points:
            self._written_step = points[-1][0]
            self.summary.write(self.folder)
        self._events.flush()

    def _save(self) -> None:
        """Save a checkpoint, once the curve up to it is on disk and all weights are finite."""
        self.flush()
        step = self.summary.steps
        gradients = nonfinite_gradients(self._model)
        if broken := nonfinite_weights(self._model) or gradients:
            raise self._diverged(f"{broken[0]} is not finite after step {step - 1}", gradients)
        save_checkpoint(self.folder, step, self._model, self._optimizer, self._device)

    def _check_gradients(self) -> None:
        """Look at the gradients of the first step.

        Raises:
            NoGradient: a parameter has none.
        """
        if missing := without_gradient(self._model):
            raise NoGradient(
                f"no gradient reached {', '.join(missing)}; a backward returns None there, or an "
                "output was detached"
            )
        for name in with_zero_gradient(self._model):
            log.warning(
                "%s: the gradient of %s is zero everywhere, so this layer will not learn",
                self.folder.name, name,
            )  # fmt: skip

    def _diverged(self, what: str, gradients: list[str]) -> Diverged:
        losses = [self.summary.first_loss, self._last_finite_loss]
        finite = [loss for loss in losses if loss is not None]
        return why_diverged(what, gradients, finite, self.summary.lr)

    def _show(self, step: int, value: float | Tensor) -> None:
        """Show a loss, or, where it lies on an accelerator, the last one that was read."""
        if isinstance(value, float):
            self._progress.show(step, value)
        elif self._latest is not None:
            self._progress.show(self._latest.step, self._latest.value)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._closing:
            try:
                if self.summary.steps == 0 and self._status(error) == "failed":
                    self._unread.clear()  # a run without a step has no curve to compare
                self.flush()
                if self._latest and self._latest.step > self._written_step:
                    self._write([self._latest])
            except Exception as late:
                if error is None:  # else the run ends with the error that came first
                    error = late
                    raise
            finally:
                done = self.summary.steps - self._first_step
                if self._ended > self._started:
                    self.summary.steps_per_second = done / (self._ended - self._started)
                self.summary.status = self._status(error)
                self.summary.error = None if error is None else one_line(error)
                if error is not None:
                    file_log.error(
                        self.summary.error
                        if isinstance(error, UserError)
                        else user_traceback(error)
                    )
                self.summary.write(self.folder)

    def _status(self, error: BaseException | None) -> str:
        if isinstance(error, Diverged):
            return "diverged"
        if is_interruption(error):
            return "interrupted"
        if error is not None:
            return "failed"
        return "interrupted" if self.summary.steps < self.config.steps else "finished"

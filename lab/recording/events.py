"""A TensorBoard event file, written when the caller flushes it."""

from __future__ import annotations

import io
import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter
from torch.utils.tensorboard import summary

from lab.files import append_whole, write_whole

VERSION = Event(file_version="brain.Event:2")


class EventFile:
    """A new event file in a run folder.

    `SummaryWriter` passes each scalar to a thread that competes with the training for the
    interpreter, which costs 55 to 150 µs a step. Batches of TensorBoard's own record writer cost 7.

    Args:
        folder: the run folder, whose name is TensorBoard's name for the run.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / f"events.out.tfevents.{time.time_ns()}"
        self._unwritten = io.BytesIO()
        self._records = RecordWriter(self._unwritten)
        self.add(VERSION)

    def add(self, event: Event) -> None:
        """Add one event; if it has no time, it gets the current one."""
        event.wall_time = event.wall_time or time.time()
        self._records.write(event.SerializeToString())

    def add_scalar(self, tag: str, value: float, step: int, wall_time: float) -> None:
        """Add one point, `wall_time` in seconds since the epoch. TensorBoard keeps float32.

        A loss above 0 gets a second tag, its base-10 logarithm, because on TensorBoard's linear
        axis a loss that falls by many powers of ten looks like an L.
        """
        points = [Summary.Value(tag=tag, simple_value=value)]
        if tag == "loss" and value > 0:
            points.append(Summary.Value(tag="loss_log10", simple_value=math.log10(value)))
        self.add(Event(step=step, wall_time=wall_time, summary=Summary(value=points)))

    def add_run(self, hparams: Mapping[str, object], metrics: Sequence[str], config: str) -> None:
        """Add what the run is; `SummaryWriter` would make a second run of it.

        Args:
            hparams: names and values, shown as columns of the HParams tab.
            metrics: tags whose last value is a column too.
            config: Markdown for the Text tab.
        """
        parts = summary.hparams(dict(hparams), dict.fromkeys(metrics))
        for part in (*parts, summary.text("config", config)):
            self.add(Event(summary=part))

    def flush(self) -> None:
        """Write and sync everything that was added, or nothing if that fails."""
        append_whole(self._path, self._unwritten.getvalue())
        self._unwritten.seek(0)
        self._unwritten.truncate()


def cut_events(folder: Path, before_step: int, log_every: int) -> set[int]:
    """Drop the scalars that a resumed run will write again, and everything after a torn record.

    Args:
        folder: the run folder; each of its event files is replaced.
        before_step: the first step that will be written again.
        log_every: steps between two points; the point in between at which the run stopped is
            dropped too.

    Returns:
        The steps whose loss is still there.
    """
    # These imports take a third of a second, and only a resumed run needs them.
    from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader

    steps = set()
    for path in folder.glob("events.out.tfevents.*"):
        kept = io.BytesIO()
        records = RecordWriter(kept)
        for data in RawEventFileLoader(str(path)).Load():
            event = Event.FromString(data)
            tags = {value.tag for value in event.summary.value if value.HasField("simple_value")}
            if not tags or (event.step < before_step and event.step % log_every == 0):
                records.write(data)
                if "loss" in tags:
                    steps.add(event.step)
        write_whole(path, kept.getvalue())
    return steps

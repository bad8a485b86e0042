"""Event files: cut back for a resumed run, whole or damaged."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.compat.proto.event_pb2 import Event

from lab.recording.events import EventFile, cut_events
from tests.recorded import damaged


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run folder with 50 losses, an accuracy at every tenth, and a row for the HParams tab."""
    events = EventFile(tmp_path)
    events.add_run({"function": "myrelu"}, metrics=["loss"], config="steps: 50")
    for step in range(50):
        events.add_scalar("loss", step / 4, step, wall_time=1e9 + step)
        if step % 10 == 0:
            events.add_scalar("test_accuracy", 0.5, step, wall_time=1e9 + step)
    events.flush()
    return tmp_path


def losses_before(content: bytes, end: int) -> int:
    """How many losses of the first 30 are whole before a byte, by the layout of TensorFlow."""
    count = start = 0
    while start < len(content):
        (length,) = struct.unpack_from("<Q", content, start)
        event = Event.FromString(content[start + 12 : start + 12 + length])
        start += 12 + length + 4
        if start <= end and event.step < 30:
            count += any(value.tag == "loss" for value in event.summary.value)
    return count


def points(folder: Path, tag: str = "loss") -> list[tuple[int, float]]:
    events = EventAccumulator(str(folder), size_guidance={"scalars": 0}).Reload()
    tags = events.Tags()["scalars"]
    return [(point.step, point.value) for point in events.Scalars(tag)] if tag in tags else []


def test_what_will_be_written_again_is_cut(folder):
    assert cut_events(folder, before_step=23, log_every=1) == set(range(23))
    assert points(folder) == [(step, step / 4) for step in range(23)]
    assert points(folder, "test_accuracy") == [(0, 0.5), (10, 0.5), (20, 0.5)]
    assert b"hparams" in next(folder.iterdir()).read_bytes()


def test_points_off_the_beat_are_cut(folder):
    assert cut_events(folder, before_step=50, log_every=7) == set(range(0, 50, 7))


def test_of_200_damaged_files_what_is_before_the_damage_is_kept(folder):
    (file,) = folder.iterdir()
    whole = file.read_bytes()
    chance = random.Random(0)
    for _ in range(200):
        content, at = damaged(whole, chance)
        file.write_bytes(content)
        kept = cut_events(folder, before_step=30, log_every=1)
        assert kept == set(range(losses_before(whole, at)))
        assert points(folder) == [(step, step / 4) for step in range(len(kept))]

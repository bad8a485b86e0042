"""Reading runs back: whole ones exactly, damaged ones by name or not at all."""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np
import pytest

from lab.recording.folder import record_failure
from lab.recording.reading import (
    Damaged,
    find_runs,
    read_run,
    read_runs,
)
from lab.recording.summary import Summary
from tests.recorded import write_run

LOSSES = [29428666.0, 0.1 + 0.2, 5e-324, 1.7976931348623157e308]


def damage(file: Path, old: bytes, new: bytes) -> None:
    content = file.read_bytes()
    assert content.count(old) == 1
    file.write_bytes(content.replace(old, new))


def test_losses_come_back_bit_for_bit(tmp_path):
    run = read_run(write_run(tmp_path / "a", LOSSES))
    assert run.losses.tolist() == LOSSES
    assert run.steps.tolist() == [0, 1, 2, 3]
    assert (run.summary.first_loss, run.summary.final_loss) == (LOSSES[0], LOSSES[-1])
    assert run.config == {"seed": 0, "optimizer.lr": 1e-6, "data.samples": 64} | {
        "data": "random",
        "model": "two_layer_net",
    }


@pytest.mark.parametrize("last", [math.nan, math.inf, -math.inf])
def test_a_diverged_run_keeps_its_last_loss(tmp_path, last):
    run = read_run(write_run(tmp_path / "a", [2.0, last], status="diverged", error="a\n\x1bb"))
    assert np.array_equal(run.losses, [2.0, last], equal_nan=True)
    assert run.summary.error == "a  b"


def test_a_run_that_failed_before_its_first_step_is_a_run(tmp_path):
    run = read_run(write_run(tmp_path / "a", [], status="failed", error="no"))
    assert run.summary.first_loss is None
    assert len(run.steps) == 0


@pytest.mark.parametrize("wrong", ["x", None, 1.5, [0], {"a": 1}, "a\nb"])
def test_a_run_that_failed_for_a_value_of_a_wrong_type_is_a_run(tmp_path, wrong):
    choices = dict.fromkeys(("function", "model", "data", "optimizer"), "x")
    keys = dict.fromkeys(("device", "dtype", "seed", "log_every", "optimizer"), wrong)
    keys["optimizer"] = {"lr": wrong}
    record_failure(tmp_path, Summary.of_keys(keys, choices, ()), ValueError("no"))
    run = read_run(tmp_path)
    assert (run.summary.status, run.summary.seed) == ("failed", wrong)
    assert run.summary.device == str(wrong)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("summary.json", None, "summary.json is missing"),
        ("summary.json", b"", "summary.json is not the summary"),
        ("summary.json", b'{"seed": ' + b"9" * 10_000 + b"}", "summary.json is not the summary"),
        ("curve.csv", None, "curve.csv is missing"),
        ("curve.csv", b"", "curve.csv has changed"),
        ("curve.csv", b"step,loss\n0,3.0\n1,2.0\n", "curve.csv has changed"),
        ("curve.csv", b"step,loss\n0,3.0\n1,2.0\n2,1.5\n", "curve.csv has changed"),
        ("curve.csv", b"step,loss\n0,3.0\n1,2.0\n2,1.0\n3,1.0\n", "curve.csv has changed"),
    ],
)
def test_damage_is_named(tmp_path, name, content, reason):
    folder = write_run(tmp_path / "a", [3.0, 2.0, 1.0])
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_bytes(content)
    with pytest.raises(Damaged, match=reason):
        read_run(folder)


def test_a_folder_or_a_pipe_under_the_name_of_a_file_is_no_file(tmp_path):
    folder = write_run(tmp_path / "a", [3.0])
    (folder / "curve.csv").unlink()
    os.mkfifo(folder / "curve.csv")
    with pytest.raises(Damaged, match=r"curve.csv is missing"):
        read_run(folder)
    (folder / "curve.csv").unlink()
    (folder / "curve.csv").mkdir()
    with pytest.raises(Damaged, match=r"curve.csv is missing"):
        read_run(folder)


def test_of_an_unfinished_run_the_steps_that_its_summary_vouches_for_are_used(tmp_path):
    folder = write_run(tmp_path / "a", [3.0, 2.0], status="running", steps=500)
    with (folder / "curve.csv").open("ab") as file:
        file.write(b"2,1.0\n3,0.")
    assert read_run(folder).losses.tolist() == [3.0, 2.0]
    damage(folder / "curve.csv", b"1,2.0", b"1,7.0")
    with pytest.raises(Damaged, match="its checksum differs"):
        read_run(folder)


def test_runs_are_found_once_in_natural_order_and_empty_folders_named(tmp_path):
    for name in ("s/10_a", "s/2_a", "b"):
        write_run(tmp_path / name, [1.0])
    (tmp_path / "empty/below").mkdir(parents=True)
    (tmp_path / "s/.submitit").mkdir()
    found, empty = find_runs(tmp_path)
    assert [str(run.relative_to(tmp_path)) for run in found] == ["b", "s/2_a", "s/10_a"]
    assert empty == [tmp_path / "empty"]
    runs, skipped = read_runs([tmp_path / "b/curve.csv", tmp_path, tmp_path / "none"])
    assert len(runs) == 3
    assert [one.path.name for one in skipped] == ["empty", "none"]


def test_a_file_stands_for_a_run_folder_alone(tmp_path):
    run = write_run(tmp_path / "a", [3.0])
    (run / "weights.pt").touch()
    (tmp_path / "README.md").touch()
    for name in ("curve.csv", "summary.json", "weights.pt"):
        assert find_runs(run / name) == ([run], [])
    assert find_runs(tmp_path / "README.md") == ([], [tmp_path / "README.md"])


def test_a_link_in_a_circle_ends(tmp_path):
    write_run(tmp_path / "a", [1.0])
    (tmp_path / "circle").symlink_to(tmp_path)
    assert find_runs(tmp_path)[0] == [tmp_path / "a"]

"""Reading runs back: whole ones exactly, damaged ones by name or not at all."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import numpy as np
import pytest

from lab.comparing.numbers import compare
from lab.comparing.table import table
from lab.recording.curves import (
    Damaged,
    find_runs,
    flat,
    parse_curve,
    read_run,
    read_runs,
    summary_crc32,
)
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
    assert (run.first_loss, run.final_loss) == (LOSSES[0], LOSSES[-1])
    assert run.config == {"seed": 0, "optimizer.lr": 1e-6, "data.samples": 64} | {
        "data": "random",
        "model": "two_layer_net",
    }


@pytest.mark.parametrize("last", [math.nan, math.inf, -math.inf])
def test_a_diverged_run_keeps_its_last_loss(tmp_path, last):
    run = read_run(write_run(tmp_path / "a", [2.0, last], status="diverged", error="a\n\x1bb"))
    assert np.array_equal(run.losses, [2.0, last], equal_nan=True)
    assert run.error == "a  b"


def test_a_run_that_failed_before_its_first_step_is_a_run(tmp_path):
    run = read_run(write_run(tmp_path / "a", [], status="failed", error="no"))
    assert run.first_loss is None
    assert len(run.steps) == 0


@pytest.mark.parametrize("wrong", ["x", None, 1.5, [0], {"a": 1}, "a\nb"])
def test_a_run_that_failed_for_a_value_of_a_wrong_type_is_a_run(tmp_path, wrong):
    values = dict.fromkeys(("function", "optimizer", "device", "dtype", "seed"), wrong)
    changes = {"status": "failed", "error": "no", "config": {"log_every": wrong}} | values
    run = read_run(write_run(tmp_path / "a", [], **changes))
    assert run.seed == wrong
    assert run.device.isprintable()
    text = table(compare([run, read_run(write_run(tmp_path / "b", [3.0]))]))
    assert "not comparable: no step" in text
    with pytest.raises(Damaged, match="is no summary of a run"):
        read_run(write_run(tmp_path / "c", [3.0], **changes))


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("summary.json", None, "summary.json is missing"),
        ("summary.json", b"", "summary.json is empty"),
        ("summary.json", b"{", "summary.json is no summary"),
        ("summary.json", b"[]", "not an object"),
        ("summary.json", b"\xff\x00\x80", "summary.json is no summary"),
        ("summary.json", b"[" * 100_000, "summary.json is no summary"),
        ("summary.json", b"{}", "no 'status'"),
        ("summary.json", b'{"seed": ' + b"9" * 10_000 + b"}", "summary.json is no summary"),
        ("curve.csv", None, "curve.csv is missing"),
        ("curve.csv", b"", "curve.csv is empty"),
        ("curve.csv", b"step,loss\n0,3.0\n1,2.0\n", "curve.csv is not as the run left it"),
    ],
)
def test_damage_is_named(tmp_path, name, content, reason):
    folder = write_run(tmp_path / "a", [3.0, 2.0, 1.0])
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_bytes(content)
    with pytest.raises(Damaged, match=reason):
        read_run(folder)


def test_a_folder_or_a_pipe_under_the_name_of_a_file_is_named(tmp_path):
    folder = write_run(tmp_path / "a", [3.0])
    (folder / "curve.csv").unlink()
    os.mkfifo(folder / "curve.csv")
    with pytest.raises(Damaged, match="is no file"):
        read_run(folder)
    (folder / "curve.csv").unlink()
    (folder / "curve.csv").mkdir()
    with pytest.raises(Damaged, match="is no file"):
        read_run(folder)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"seed": 0,\n "steps"', b'"seed": 1,\n "steps"'),
        (b"1234.5", b"1234.7"),
        (b'"summary_crc32"', b'"summary_crc33"'),
        (b'"curve_crc32"', b'"curve_crc3r"'),
    ],
)
def test_one_changed_character_of_a_summary_is_found(tmp_path, old, new):
    folder = write_run(tmp_path / "a", [3.0, 2.0])
    damage(folder / "summary.json", old, new)
    with pytest.raises(Damaged, match="checksum differs"):
        read_run(folder)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"first_loss": 4.0}, "says first_loss 4.0"),
        ({"final_loss": "nan"}, "says final_loss nan"),
        ({"steps": 2}, "finished after 2 steps"),
        ({"steps": 4}, "finished after 4 steps"),
        ({"status": "happy"}, "status is 'happy'"),
        ({"function": 7}, "function is 7"),
        ({"device": "\x1b[2J"}, "device is"),
        ({"config": []}, "config is"),
        ({"config": {"log_every": "x"}}, "no summary of a run"),
    ],
)
def test_without_checksums_summary_and_curve_must_agree(tmp_path, changes, reason):
    folder = write_run(tmp_path / "a", [3.0, 2.0, 1.0])
    summary = json.loads((folder / "summary.json").read_text()) | changes
    for key in ("summary_crc32", "curve_crc32", "curve_bytes"):
        del summary[key]
    (folder / "summary.json").write_text(json.dumps(summary))
    with pytest.raises(Damaged, match=reason):
        read_run(folder)


def test_a_torn_last_line_is_no_record():
    steps, losses, problem = parse_curve(b"step,loss\n0,2.5\n1,1.2")
    assert (steps.tolist(), losses.tolist(), problem) == ([0], [2.5], None)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"2",
        b"2,",
        b"2,x",
        b"-2,1.0",
        b"2,1.0,3",
        b"2,1_0",
        b"2, 1.0",
        b"2,0x1p3",
        b"2,1.0\r",
        b"2," + b"9" * 5000,
        b"9" * 5000 + b",1.0",
        b"\xff\x00,1.0",
    ],
)
def test_the_curve_ends_before_the_first_line_that_is_no_record(line):
    steps, _, problem = parse_curve(b"step,loss\n0,3.0\n1,2.0\n" + line + b"\n3,1.0\n")
    assert steps.tolist() == [0, 1]
    assert problem == "line 4 is no step and loss"


@pytest.mark.parametrize("step", [b"0", b"1"])
def test_where_steps_go_backwards_both_are_doubted(step):
    steps, _, problem = parse_curve(b"step,loss\n0,3.0\n1,2.0\n" + step + b",1.0\n")
    assert steps.tolist() == [0]
    assert problem == f"line 4 goes from step 1 to step {step.decode()}"


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


def test_the_checksum_of_a_summary_does_not_depend_on_its_layout():
    assert summary_crc32({"a": 1, "b": 0.1}) == summary_crc32({"b": 0.1, "a": 1})
    assert summary_crc32({"a": 1}) != summary_crc32({"a": 2})


def test_flat():
    assert flat({"a": {"b": {"c": 1}, "d": [2]}, "e": {}}) == {"a.b.c": 1, "a.d": [2]}

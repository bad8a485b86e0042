"""summary.json: written and read back, an older one, a changed one."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import pytest
from conftest import HOME, config_of

from lab.recording.folder import recorded_config
from lab.recording.reading import read_run
from lab.recording.summary import Damaged, Summary

OLD_RUN = HOME / "tests/lab/recording/first_edition_run"


def a_summary() -> Summary:
    return Summary(
        "myrelu", "manual_sgd", "two_layer_net", "random", "cpu", "float32", 0, config={"seed": 0}
    )


@pytest.mark.parametrize("loss", [0.1 + 0.2, 5e-324, math.inf, -math.inf, math.nan])
def test_what_is_written_comes_back(loss):
    summary = a_summary()
    summary.final_loss, summary.status = loss, "diverged"
    again = Summary.from_json(summary.to_json())
    assert repr(again) == repr(summary)


def test_the_checksum_does_not_depend_on_the_layout():
    content = json.loads(a_summary().to_json())
    assert Summary.from_json(json.dumps(content, indent=7, sort_keys=True)) == a_summary()


@pytest.mark.parametrize(
    ("old", "new"), [('"seed": 0', '"seed": 1'), ("cpu", "cpv"), ("summary_crc32", "summary_crc33")]
)
def test_one_changed_character_is_found(old, new):
    text = a_summary().to_json()
    with pytest.raises(Damaged, match=r"checksum differs|is not the summary"):
        Summary.from_json(text.replace(old, new, 1))


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", "3", b"\xff\x00", "[" * 100_000])
def test_what_is_no_summary_is_told(text):
    with pytest.raises(Damaged, match=r"summary.json is not the summary of a run"):
        Summary.from_json(text)


def test_a_run_of_the_first_edition_is_read(tmp_path):
    """The folder was written by the first edition; keys that it lacks are None."""
    run = read_run(OLD_RUN)
    assert (run.summary.status, run.summary.function, len(run.losses)) == ("finished", "myrelu", 20)
    assert (run.summary.threads, run.summary.overrides) == (None, None)
    assert run.config["optimizer.lr"] == 1e-6


def test_a_run_of_the_first_edition_is_resumed_bit_for_bit(tmp_path, run_in):
    import dataclasses

    import train

    folder = Path(shutil.copytree(OLD_RUN, tmp_path / "old"))
    config = dataclasses.replace(
        recorded_config(folder), resume=str(folder), steps=40, progress=False
    )
    resumed = train.train(config, folder)
    assert resumed.summary.status == "finished"
    whole = run_in("steps=40", "data.features=5", "model.hidden=4")
    assert read_run(folder).losses[20:].tolist() == pytest.approx(
        read_run(whole.folder).losses[20:].tolist(), rel=1e-5
    )


def test_the_config_in_it_is_the_config_of_the_run(run_in):
    run = run_in("steps=2", "function=custom", "model.hidden=7")
    config = config_of("steps=2", "function=custom", "model.hidden=7")
    assert recorded_config(run.folder) == config

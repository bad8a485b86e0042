"""The recorded curve as TensorBoard's own server serves it."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator

import pytest


@pytest.fixture
def server(run_in, tmp_path) -> Iterator[tuple[str, list]]:
    runs = [run_in("steps=40", "function=relu", folder="one")]
    runs.append(run_in("steps=30", "seed=1", folder="two"))
    # As `tensorboard` on the command line, which may not be on the PATH of the tests.
    options = ["--port=0", "--host=127.0.0.1", "--load_fast=false", "--reload_interval=1"]
    process = subprocess.Popen(
        [sys.executable, "-m", "tensorboard.main", f"--logdir={tmp_path}", *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        for line in process.stderr:
            if found := re.search(r"http://127\.0\.0\.1:\d+/", line):
                yield found[0], runs
                break
        else:
            pytest.fail("tensorboard ended before it served anything")
    finally:
        process.terminate()
        process.wait(timeout=20)
        process.stderr.close()


def fetch(url: str, body: bytes | None = None) -> object:
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.loads(answer.read())


def test_curve_hyperparameters_and_config_are_served(server):
    url, runs = server
    # Until the first load is through the answer is an empty list.
    deadline = time.monotonic() + 30
    while len(names := fetch(url + "data/runs")) < len(runs) and time.monotonic() < deadline:
        pass
    assert sorted(names) == ["one", "two"]  # no second run for the hyper-parameters

    for name, run in zip(("one", "two"), runs, strict=True):
        query = urllib.parse.urlencode({"run": name, "tag": "loss"})
        points = fetch(f"{url}data/plugin/scalars/scalars?{query}")
        rows = (run.folder / "curve.csv").read_text().splitlines()[1:]
        assert [step for _, step, _ in points] == list(range(len(rows)))
        losses = [float(row.partition(",")[2]) for row in rows]
        assert [value for *_, value in points] == losses  # float32 losses fit TensorBoard's float32

    points = fetch(f"{url}data/plugin/scalars/scalars?run=two&tag=loss_log10")
    assert [value for *_, value in points] == pytest.approx(
        [math.log10(loss) for loss in losses], rel=1e-6
    )

    text = fetch(f"{url}data/plugin/text/text?run=one&tag=config/text_summary")
    assert "torch.relu" in text[0]["text"]

    experiment = fetch(url + "data/plugin/hparams/experiment", b"{}")
    assert {info["name"] for info in experiment["hparamInfos"]} == {
        "function", "optimizer", "data", "lr", "seed", "device", "dtype", "threads", "steps",
        "hidden", "init",
    }  # fmt: skip
    columns = {"colParams": [], "startIndex": 0, "sliceSize": 10}
    columns["allowedStatuses"] = ["STATUS_UNKNOWN", "STATUS_RUNNING", "STATUS_SUCCESS"]
    groups = fetch(url + "data/plugin/hparams/session_groups", json.dumps(columns).encode())
    rows = {group["name"]: group for group in groups["sessionGroups"]}
    assert {name: row["hparams"]["function"] for name, row in rows.items()} == {
        "one": "relu",
        "two": "myrelu",
    }
    for name, run in zip(("one", "two"), runs, strict=True):
        (metric,) = rows[name]["metricValues"]  # no test accuracy for this data
        assert metric["value"] == pytest.approx(run.summary.final_loss)

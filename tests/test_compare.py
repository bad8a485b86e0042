"""compare.py as it is typed, and on run folders damaged in every way."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import compare
from tests.recorded import write_run

ROOT = Path(compare.__file__).parent


def run_compare(*arguments):
    """Standard output, standard error and exit code of compare.py, in this process."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            with compare.errors_as_messages():
                compare.main([str(argument) for argument in arguments])
        except SystemExit as exit:
            code = exit.code
    return out.getvalue(), err.getvalue(), code


def test_as_it_is_typed(tmp_path):
    write_run(tmp_path / "s/a", [3.0, 2.0, 1.0], function="builtin")
    write_run(tmp_path / "s/b", [3.0, 2.0, 1.5])
    result = subprocess.run(
        [sys.executable, ROOT / "compare.py", "s"],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert "50 % at step 2" in result.stdout
    assert (tmp_path / "s/comparison.png").exists()


def test_a_closed_screen_is_no_traceback(tmp_path):
    for name in ("a", "b"):
        write_run(tmp_path / name, [3.0, 2.0])
    done = subprocess.run(
        f"{sys.executable} {ROOT / 'compare.py'} a b >&-",
        cwd=tmp_path, shell=True, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    assert (tmp_path / "comparison.png").exists()


def test_it_does_not_wait_for_torch():
    code = "import compare, lab.comparing.plot, sys; print({'torch', 'hydra'} & {*sys.modules})"
    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert result.stdout == "set()\n"


def test_a_reader_that_stops_early_sees_no_traceback(tmp_path):
    for i in range(400):
        write_run(tmp_path / f"{i}", [3.0])
    read, write = os.pipe()
    os.close(read)
    result = subprocess.run(
        [sys.executable, ROOT / "compare.py", tmp_path, "--csv"],
        stdout=write, stderr=subprocess.PIPE, text=True, timeout=60, check=False,
    )  # fmt: skip
    os.close(write)
    assert result.stderr == ""
    assert result.returncode == 141  # as a shell counts a program that a closed pipe ended


def test_nothing_left_is_an_error(tmp_path):
    (tmp_path / "empty").mkdir()
    out, err, code = run_compare(tmp_path)
    assert (out, code) == ("", 2)
    assert f"skipped {tmp_path}: no run in it" in err
    assert "holds no run to compare" in err


@pytest.mark.parametrize(
    ("path", "said"),
    [
        (["README.md"], "README.md holds no run to compare; name a run or sweep folder"),
        (["typo"], "typo does not exist; name a folder under outputs/"),
        (["a", "typo"], "typo does not exist; name a folder under outputs/"),
        ([""], "'' does not exist; name a folder under outputs/"),
        ([], "outputs does not exist here; make a run with python train.py"),
    ],
)
def test_a_path_that_holds_no_run_is_named(tmp_path, monkeypatch, path, said):
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path / "a", [3.0])
    (tmp_path / "README.md").touch()
    out, err, code = run_compare(*path)
    assert (out, code) == ("", 2)
    assert err.endswith(f"error: {said}\n")


def test_one_damaged_run_does_not_hide_the_others(tmp_path):
    write_run(tmp_path / "a", [3.0])
    (write_run(tmp_path / "b", [3.0]) / "curve.csv").write_text("")
    out, err, code = run_compare(tmp_path, "--json")
    assert code == 0
    assert [run["name"] for run in json.loads(out)["runs"]] == ["a"]
    assert err.startswith(f"skipped {tmp_path / 'b'}: curve.csv has changed")
    assert err.count("\n") == 1
    assert not (tmp_path / "comparison.png").exists()


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (["--reference", "none"], "--reference none fits 0 rows"),
        (["--tolerance", "-1"], "not a number of at least 0"),
        (["--tolerance", "nan"], "not a number of at least 0"),
        (["--tolerance", "abc"], "'abc' is not a number of at least 0"),
        (["--last", "0"], "'0' is not a whole number of at least 1"),
        (["--last", "x"], "'x' is not a whole number of at least 1"),
        (["--filter", "relu"], "'relu' is not KEY=VALUE"),
        (["--filter", "=relu"], "'=relu' is not KEY=VALUE"),
        (["--filter", "seed=7"], "--filter seed=7 fits no run; seed is 0"),
        (["--plot", "/none/a.png"], "--plot /none/a.png: No such file"),
        (["--json", "--csv"], "not allowed with"),
    ],
)
def test_a_mistake_is_one_message(tmp_path, option, said):
    write_run(tmp_path / "a", [3.0])
    _, err, code = run_compare(tmp_path, *option)
    assert code == 2
    assert said in err


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("", "--plot '' is not the name of a file\n"),
        ("a.xyz", "--plot a.xyz: xyz is not a supported image format"),
        ("folder", "--plot folder is a folder"),
        ("pipe", "--plot pipe is a device or a pipe"),
        ("/dev/null", "--plot /dev/null is a device or a pipe"),
    ],
)
def test_a_plot_that_cannot_be_is_refused_before_the_table(tmp_path, monkeypatch, file, said):
    write_run(tmp_path / "a", [3.0])
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.chdir(tmp_path)
    out, err, code = run_compare("a", "--plot", file)
    assert (out, code) == ("", 2)
    assert err.startswith(f"error: {said}")
    assert err.count("\n") == 1


def test_the_plot_is_named_as_seen_from_here(tmp_path, monkeypatch):
    write_run(tmp_path / "s/a", [3.0])
    monkeypatch.chdir(tmp_path)
    assert run_compare("s")[1] == "plot: s/comparison.png\n"
    assert run_compare(tmp_path / "s", "--plot", "b.pdf")[1] == "plot: b.pdf\n"
    assert (tmp_path / "b.pdf").read_bytes().startswith(b"%PDF")


def test_a_comparison_png_that_cannot_be_written_is_a_warning(tmp_path, monkeypatch):
    write_run(tmp_path / "s/a", [3.0])
    (tmp_path / "s/comparison.png").mkdir()
    monkeypatch.chdir(tmp_path)
    out, err, code = run_compare("s/a")
    assert "last loss" in out
    assert (err, code) == ("warning: no plot: s/comparison.png is a folder; name a file\n", 0)


def test_runs_of_another_problem_are_named_with_their_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for i in range(3):
        write_run(tmp_path / f"a b/r{i}", [3.0], lr=i, seed=i == 2)
    write_run(tmp_path / "a b/fourth", [3.0, 2.0], data="digits", function="relu")
    write_run(tmp_path / "a b/failed", [], status="failed", error="no such device")
    out, _, code = run_compare("a b")
    assert code == 0
    assert "fourth" not in out.split("not shown")[0]
    (line,) = [line for line in out.splitlines() if line.startswith("1 run never")]
    assert "no such device" in line
    count, command = out.splitlines()[-1].strip().split(": ")
    assert (count, command) == ("1 run", "python compare.py 'a b' --filter data=digits")
    out, _, _ = run_compare(*shlex.split(command)[2:], "--json")
    assert [run["name"] for run in json.loads(out)["runs"]] == ["fourth"]


def test_filters_stay_in_the_commands(tmp_path):
    for i, data in enumerate("xxyz"):
        write_run(tmp_path / f"{i}", [3.0], data=data, function="relu")
    out, _, _ = run_compare(tmp_path, "--filter", "function=relu", "--filter", "seed=0")
    assert out.splitlines()[-1].endswith("--filter function=relu --filter seed=0 --filter data=z")


def test_the_last_runs(tmp_path):
    for i in range(5):
        folder = write_run(tmp_path / f"{i}", [3.0], lr=i)
        os.utime(folder / "summary.json", (i, i))
    out, _, _ = run_compare(tmp_path, "--last", 2, "--json")
    assert [run["name"] for run in json.loads(out)["runs"]] == ["3", "4"]


def test_nothing_but_failed_runs_is_an_error(tmp_path):
    write_run(tmp_path / "a", [], status="failed", error="no such device")
    out, err, code = run_compare(tmp_path)
    assert (out, code) == ("", 2)
    assert "no such device" in err


def test_any_folder_in_any_locale(tmp_path):
    names = [b"two\nlines", b"no utf-8 \xff", b"$x^2$", b"\xe6\xbc\xa2"]
    for name in names:
        write_run(Path(os.fsdecode(os.fsencode(tmp_path) + b"/s/" + name)), [3.0])
    for locale in ("C", "C.UTF-8"):
        done = subprocess.run(
            [sys.executable, ROOT / "compare.py", "s"],
            cwd=tmp_path, capture_output=True, timeout=60, check=False,
            env=os.environ | {"LC_ALL": locale, "PYTHONUTF8": "0"},
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, b"plot: s/comparison.png\n")
        assert done.stdout.count(b"equal bit for bit") == 3
        assert (tmp_path / "s/comparison.png").stat().st_size > 10_000
        (tmp_path / "s/comparison.png").unlink()


def test_help_shows_examples():
    out, _, code = run_compare("--help")
    assert code == 0
    assert out.count("  python compare.py ") == 4


def test_200_damaged_runs(tmp_path):
    """Every change to a file that is read is either named or harmless; no number is ever wrong."""
    chance = random.Random(0)
    losses = np.random.default_rng(0).random(40, dtype=np.float32).tolist()
    whole = {
        status: write_run(
            tmp_path / "whole" / status, losses, function=status, status=status, dtype="float32",
            steps=40 if status == "finished" else 500,
        )
        for status in ("finished", "running", "interrupted")
    }  # fmt: skip
    out, err, _ = run_compare(tmp_path / "whole", "--json")
    assert err == ""
    told_whole = {run["function"]: run for run in json.loads(out)["runs"]}

    ways = {}
    for i in range(200):
        status = chance.choice(list(whole))
        folder = tmp_path / "damaged" / f"{i}"
        shutil.copytree(whole[status], folder)
        file = folder / chance.choice(["summary.json", "curve.csv"])
        content = bytearray(file.read_bytes())
        way = chance.choice(["cut", "flip", "junk"])
        at = chance.randrange(len(content))
        if way == "cut":
            content = content[:at]
        elif way == "flip":
            content[at] ^= 1 << chance.randrange(8)
        else:
            content[at : at + 20] = chance.randbytes(20)
        file.write_bytes(content)
        ways[str(i)] = (status, file.name, way)
    write_run(tmp_path / "damaged/whole", losses, function="builtin", dtype="float32")

    out, err, code = run_compare(tmp_path / "damaged", "--json")
    assert code == 0
    told = {run["name"]: run for run in json.loads(out)["runs"]}
    assert told["whole"]["status"] == "finished"
    for name, (status, file, way) in ways.items():
        named = f"{tmp_path / 'damaged' / name}:" in err
        if name not in told:
            assert named, (name, status, file, way)
            continue
        # What is told of a damaged run: its own steps, as far as they can be trusted.
        run, truth = told[name], told_whole[status]
        assert status == "running" or file == "summary.json", (name, status, file, way)
        shown = ("function", "optimizer", "device", "dtype", "seed", "status", "steps_per_second")
        assert [run[key] for key in shown] == [truth[key] for key in shown]
        assert run["steps"] <= truth["steps"]
        if run["steps"]:
            assert run["final_loss"] == losses[run["steps"] - 1], (name, status, file, way)
            assert run["first_difference"] is None, (name, status, file, way)
        # A curve that is still being written may end anywhere; any other damage is named.
        assert named or way == "cut" or run["steps"] >= truth["steps"] - 2, (name, file, way)

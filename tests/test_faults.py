"""Mistakes as people typed them: one line, the right exit code, nothing left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import HOME, THREADS

from tests.faulty import faulty
from tests.typed import typed

SHORT = ("steps=3", "data.features=5", "model.hidden=4")


def summaries(cwd: Path) -> list[dict]:
    return [json.loads(path.read_text()) for path in sorted(cwd.rglob("summary.json"))]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["function=myrelo"], "did you mean myrelu?"),
        (["function=MyReLU"], "did you mean myrelu?"),
        (["experiment=kinks"], "did you mean kink?"),
        (["lr=1e-6"], "did you mean optimizer.lr?"),
        (["epochs=5"], "did you mean steps?"),
        (["batch_size=8"], "data.samples"),
        (["--steps", "100"], "write steps=100"),
        (["steps=1e3"], "write steps=1000"),
        (["optimizer=adam", "optimizer.momentum=0.9"], "+optimizer.momentum=VALUE"),
        (["optimizer=adam", "+optimizer.momentum=0.9"], "it takes params, lr, betas"),
        (["function.activation._target_=functions.MyReLU"], "write MyReLU.apply"),
        (["function.activation._target_=functions.MyRelu.apply"], "did you mean MyReLU?"),
        (["function.layout=out_in"], "function.layout can't be changed"),
        (["experiment=descend", "data=random"], "it needs data=nothing"),
        (["hydra.run.dir=outputs"], "hydra.run.dir=outputs is not possible"),
        (["resume=outputs/NOPE"], "there is no run in it"),
        (["--experimental-rerun", "nofile"], "nofile"),
        (["device=gpu"], "device=gpu is not a device; use cpu"),
    ],
)
def test_a_mistake_is_one_line(tmp_path, arguments, says):
    with typed(*arguments, cwd=tmp_path) as run:
        assert run.wait() == 2
    line = run.err.splitlines()[-1]
    assert line.startswith("error: ")
    assert says in line
    assert "Traceback" not in run.err
    assert summaries(tmp_path) == []


@pytest.mark.parametrize(
    ("yaml", "says"),
    [
        ("activation: {_target_: torch.tanh}", "defaults: [_activation]"),
        ("defaults: [_activation]\nactivation:\n  _target_: [x", "not valid YAML"),
        ("defaults: [_activation]\nactivation:\n_target_: torch.tanh", "function._target_"),
    ],
)
def test_a_mistake_in_a_function_file_says_what_to_write(tmp_path, yaml, says):
    (tmp_path / "conf/function").mkdir(parents=True)
    (tmp_path / "conf/function/mine.yaml").write_text(yaml)
    with typed("--config-dir", "conf", "function=mine", cwd=tmp_path) as run:
        assert run.wait() == 2
    (line,) = run.err.splitlines()
    assert says in line


def test_choices_of_the_user_are_suggested_too(tmp_path):
    (tmp_path / "conf/function").mkdir(parents=True)
    (tmp_path / "conf/function/swish.yaml").touch()
    with typed("--config-dir", "conf", "function=swihs", cwd=tmp_path) as run:
        assert run.wait() == 2
    assert "did you mean swish?" in run.err


def test_a_replaced_activation_is_recorded(tmp_path):
    with typed(*SHORT, "function.activation._target_=torch.relu", cwd=tmp_path) as run:
        assert run.wait() == 0, run.err
    (summary,) = summaries(tmp_path)
    assert summary["function"] == "myrelu with activation._target_=torch.relu"


@pytest.mark.parametrize("name", ["2024", "true", "a b", "x=1", "it's", "null"])
def test_the_printed_resume_command_works(tmp_path, name):
    import shlex
    import signal

    quoted = f'hydra.run.dir="{name}"'
    with typed("steps=1000000000", *SHORT[1:], quoted, cwd=tmp_path) as run:
        run.wait_for((tmp_path / name / "curve.csv").exists)
        run.signal(signal.SIGTERM)
        assert run.wait() == 143, run.err
    printed = run.out.splitlines()[-1].partition("python train.py ")[2]
    done = json.loads((tmp_path / name / "summary.json").read_text())["steps"]
    with typed(*shlex.split(printed), f"steps={done + 2}", cwd=tmp_path) as run:
        assert run.wait() == 0, run.err
    assert json.loads((tmp_path / name / "summary.json").read_text())["steps"] == done + 2


def test_a_run_is_resumed_by_its_checkpoint_and_with_plus_plus(tmp_path):
    with typed(*SHORT, "hydra.run.dir=run", cwd=tmp_path) as run:
        assert run.wait() == 0, run.err
    with typed("resume=run/checkpoint.pt", "++steps=5", cwd=tmp_path) as run:
        assert run.wait() == 0, run.err
    assert [summary["steps"] for summary in summaries(tmp_path)] == [5]


def test_a_resumed_run_stays_in_its_folder(tmp_path):
    for name in ("a", "b"):
        with typed(*SHORT, f"hydra.run.dir={name}", cwd=tmp_path) as run:
            assert run.wait() == 0, run.err
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.json")}
    with typed("resume=a", "hydra.run.dir=b", "steps=9", cwd=tmp_path) as run:
        assert run.wait() == 2
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.json")} == before


def test_a_function_that_gets_no_gradient_stops_at_once(tmp_path):
    with typed(faulty("NoGradient"), cwd=tmp_path) as run:
        assert run.wait() == 1
    assert "no gradient reached linear1.weight" in run.err
    (log,) = tmp_path.rglob("train.log")
    assert "no gradient reached linear1.weight" in log.read_text()


def test_the_log_of_a_run_holds_the_traceback(tmp_path):
    with typed(faulty("BackwardRaises"), cwd=tmp_path) as run:
        assert run.wait() == 1
    (log,) = tmp_path.rglob("train.log")
    assert "grad_output.mm(grad_output)" in log.read_text()
    # A run that did not complete a step has no point that could be compared.
    (summary,) = summaries(tmp_path)
    assert (summary["status"], summary["steps"], summary["first_loss"]) == ("failed", 0, None)


@pytest.mark.parametrize("option", ["hydra.job.name=a/b", "hydra.job.name=${nothere}"])
def test_the_name_of_the_job_makes_no_folder(tmp_path, option):
    with typed(*SHORT, option, cwd=tmp_path) as run:
        run.wait()
    assert len(list(tmp_path.glob("outputs/*"))) == len(summaries(tmp_path))


def test_an_outputs_that_leads_nowhere_is_one_line(tmp_path):
    (tmp_path / "outputs").symlink_to("nowhere/at/all")
    with typed(*SHORT, cwd=tmp_path) as run:
        assert run.wait() == 2
    (line,) = run.err.splitlines()
    assert line.startswith("error: ")


def test_too_little_memory_is_one_line(tmp_path):
    code = (
        "import resource, runpy, sys; "
        "resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30)); "
        "sys.argv = ['train.py', 'data.samples=30000', 'data.features=33000', 'model.hidden=1']; "
        f"sys.path.insert(0, {str(HOME)!r}); runpy.run_path({str(HOME / 'train.py')!r}, "
        "run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=os.environ | THREADS,
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert done.stderr.splitlines()[-1].startswith("error: there is not enough memory")
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize(("redirect", "code"), [("> /dev/full", 2), ("2>&-", 0)])
def test_a_screen_that_can_not_be_written(tmp_path, redirect, code):
    arguments = " ".join([*SHORT, "hydra.run.dir=run"])
    done = subprocess.run(
        f"{sys.executable} {HOME / 'train.py'} {arguments} {redirect}",
        cwd=tmp_path, shell=True, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert [summary["status"] for summary in summaries(tmp_path)] == ["finished"]


def test_digits_with_the_wrong_defaults_give_a_hint(tmp_path):
    with typed("data=digits", "steps=3", cwd=tmp_path) as run:
        assert run.wait() == 0, run.err
    assert "model.init=he optimizer.lr=1.0" in run.out

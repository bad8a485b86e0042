"""Mistakes as people typed them: one line, the right exit code, nothing left behind."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import HOME, THREADS

from lab.recording.summary import Summary
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
        (["resume=outputs/NOPE"], "outputs/NOPE does not exist"),
        (['resume="~/x"'], "~/x does not exist"),
        (["resume=."], "there is no run in it"),
        (["--lr", "0.1"], "write optimizer.lr=0.1"),
        (["--epochs=10"], "write steps=10"),
        (["steps=3", "-m", "seed=0,1"], "put -m first"),
        (["experiment=kink,official"], "one experiment at a time"),
        (["device=0"], "device=0 is not valid"),
        (["model=cubic"], "it needs data=sine"),
        (["model=point", "data=sine"], "it needs data=nothing"),
        (["data=sine"], "experiment=sine fits data=sine"),
        (["function.activation=null"], "function.activation is missing"),
        (["data._target_=builtins.dict"], "has no x; see docs/parts.md"),
        (["optimizer._target_=builtins.list", "~optimizer.lr"], "has no step; see docs/parts.md"),
        (["function.activation._target_=torch.Tensor.double"], "must keep the dtype"),
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
    assert not [path for path in tmp_path.iterdir() if path.is_dir() and path.name != "outputs"]


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


def test_a_warning_before_the_run_begins_stops_nothing(tmp_path):
    (tmp_path / "warns.py").write_text(
        "import warnings\nimport torch\n\n\n"
        "def relu(x):\n    warnings.warn('mind')\n    return torch.relu(x)\n"
    )
    with typed(*SHORT, "function.activation._target_=warns.relu", cwd=tmp_path) as run:
        assert run.wait() == 0, run.err


def test_a_reader_of_the_lines_that_ends_stops_no_training(tmp_path):
    line = (
        f"{sys.executable} {HOME / 'train.py'} steps=3000 hydra.run.dir=run {' '.join(SHORT[1:])}"
    )
    subprocess.run(["bash", "-c", f"{line} 2>&1 | head -1"], cwd=tmp_path, check=True)
    assert summaries(tmp_path)[0]["status"] == "finished"


def test_a_run_that_was_stopped_at_its_end_is_ended(tmp_path):
    with typed(*SHORT, "log_every=2", "hydra.run.dir=run", cwd=tmp_path) as run:
        assert run.wait() == 0, run.err
    folder = tmp_path / "run"
    curve = (folder / "curve.csv").read_bytes()
    before = Summary.from_json((folder / "summary.json").read_bytes())
    dataclasses.replace(before, status="running").write(folder)
    (folder / "weights.pt").unlink()
    with typed("resume=run", cwd=tmp_path) as run:
        assert run.wait() == 0, run.err
    assert (folder / "weights.pt").is_file()
    assert (folder / "curve.csv").read_bytes() == curve
    assert Summary.from_json((folder / "summary.json").read_bytes()) == before
    with typed("resume=run", cwd=tmp_path) as run:
        assert run.wait() == 2
    assert "has nothing to do" in run.err


def test_a_run_that_diverged_is_not_ended_at_its_checkpoint(tmp_path):
    words = ("optimizer.lr=1e-3", "steps=40", "checkpoint_every=2", "hydra.run.dir=run")
    with typed(*words, cwd=tmp_path) as run:
        assert run.wait() == 1
    with typed("resume=run", "steps=2", cwd=tmp_path) as run:
        assert run.wait() == 2
    assert "has nothing to do" in run.err
    assert summaries(tmp_path)[0]["status"] == "diverged"


def test_a_flag_for_a_sweep_may_come_last(tmp_path):
    with typed("seed=0,1", *SHORT, "-m", cwd=tmp_path) as run:
        assert run.wait() == 0, run.err
    assert len(summaries(tmp_path)) == 2


def test_a_model_without_sizes_fits_any_data(tmp_path):
    words = ("model._target_=torch.nn.Linear", "data.features=9", "data.targets=4", "steps=3")
    gone = [
        f"~model.{key}" for key in ("features", "hidden", "targets", "init", "linear", "layout")
    ]
    sizes = (
        "+model.in_features=9",
        "+model.out_features=4",
        "~model.activation",
        "model.bias=true",
    )
    with typed(*words, *gone, *sizes, cwd=tmp_path) as run:
        assert run.wait() == 0, run.err


def test_a_resumed_run_keeps_its_settings(tmp_path):
    with typed(*SHORT, "hydra.run.dir=run", cwd=tmp_path) as run:
        assert run.wait() == 0, run.err
    with typed("resume=run", "steps=9", "experiment=sine", cwd=tmp_path) as run:
        assert run.wait() == 2
    assert "experiment=sine is not possible" in run.err


@pytest.mark.parametrize("sweep", [[], ["-m", "seed=0"]])
def test_a_function_that_calls_exit_is_an_error(tmp_path, sweep):
    (tmp_path / "exits.py").write_text("import sys\n\n\ndef relu(x):\n    sys.exit(0)\n")
    chosen = "function.activation._target_=exits.relu"
    with typed(*sweep, *SHORT, chosen, cwd=tmp_path) as run:
        assert run.wait() == 1
    assert "sys.exit(0) is called here" in run.err + run.out


def test_a_fault_in_a_file_of_the_user_is_shown_where_it_is(tmp_path):
    (tmp_path / "broken.py").write_text("raise ValueError('at import')\n")
    with typed(*SHORT, "function.activation._target_=broken.relu", cwd=tmp_path) as run:
        assert run.wait() == 1
    assert "broken.py" in run.err and "ValueError: at import" in run.err


def test_a_sweep_does_not_go_into_the_folder_of_a_run(tmp_path):
    with typed(*SHORT, "hydra.run.dir=run", cwd=tmp_path) as run:
        assert run.wait() == 0, run.err
    with typed("-m", *SHORT, "seed=0,1", "hydra.sweep.dir=run", cwd=tmp_path) as run:
        assert run.wait() == 2
    assert "holds a run" in run.err and len(summaries(tmp_path)) == 1


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

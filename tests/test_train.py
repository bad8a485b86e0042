"""The main job: the official curve, from every choice, on every device, as a user types it."""

from __future__ import annotations

import csv
import json
import math
import re
import shutil
from pathlib import Path

import pytest
import torch
import yaml
from conftest import HOME, command, composed, config_of
from omegaconf import OmegaConf

import train
from benchmarks import plain, plain_sine
from datasets import Data
from lab.recording.checkpoint import load_checkpoint
from tests.typed import typed

OPTIMIZERS = sorted(path.stem for path in (HOME / "conf/optimizer").glob("*.yaml"))
# Those of the network itself; the others come with the lessons and may fail on purpose.
NETWORK = ["builtin", "relu", "nn", "myrelu", "linearfunction", "linearfunction_in_out", "custom"]


def official_losses(steps: int, **options: object) -> list[float]:
    """What the plain script prints, which the benchmark too stands beside."""
    losses: list[float] = []
    plain.fit(range(steps), record=lambda step, loss: losses.append(loss), **options)
    return losses


def curve(folder: Path) -> list[float]:
    with (folder / "curve.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["step"]) for row in rows] == list(range(len(rows)))
    return [float(row["loss"]) for row in rows]


@pytest.fixture(scope="module")
def official() -> list[float]:
    return official_losses(500)


def test_command_line_gives_the_official_losses_bit_for_bit(tmp_path, official):
    done = command("train.py", "function=myrelu", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    # Without a terminal there are lines instead of a bar.
    shown = [line.split() for line in done.stderr.splitlines()]
    assert [int(step) for _, step, *_ in shown] == [0, 99, 199, 299, 399, 499]
    outcome, where, how = done.stdout.splitlines()
    assert outcome.startswith("finished on cpu: loss 2942866") and "steps a second" in outcome
    (folder,) = (tmp_path / "outputs").iterdir()
    assert where == f"run: outputs/{folder.name}"
    assert how == f"view with: tensorboard --logdir outputs/{folder.name}"
    assert folder.name.startswith("myrelu_manual_sgd_cpu_20")

    losses = curve(folder)
    assert losses == official
    assert [float(loss) for *_, loss in shown] == pytest.approx(
        [losses[int(step)] for _, step, *_ in shown], rel=1e-5
    )
    # The last digit of the first loss depends on the processor, the late ones on more.
    assert losses[0] == pytest.approx(29428666.0, rel=1e-6)
    assert losses[99] == pytest.approx(427.82, rel=1e-3)
    assert losses[499] == pytest.approx(3e-5, rel=0.1)

    summary = json.loads((folder / "summary.json").read_text())
    wanted = {
        "function": "myrelu",
        "optimizer": "manual_sgd",
        "device": "cpu",
        "dtype": "float32",
        "seed": 0,
        "steps": 500,
        "status": "finished",
        "first_loss": losses[0],
        "final_loss": losses[-1],
        "torch": torch.__version__,
        "threads": 1,
    }
    assert {key: summary[key] for key in wanted} == wanted
    assert summary["steps_per_second"] > 0
    weights = torch.load(folder / "weights.pt")
    assert {name: tuple(tensor.shape) for name, tensor in weights.items()} == {
        "linear1.weight": (1000, 100),
        "linear2.weight": (100, 10),
    }
    names = {path.name for path in folder.iterdir()}
    assert {"train.log", "checkpoint.pt"} < names
    assert outcome in (folder / "train.log").read_text()


@pytest.mark.parametrize("function", ["builtin", "linearfunction_in_out"])
def test_same_arithmetic_same_bits(run_in, official, function):
    run = run_in(f"function={function}")
    assert curve(run.folder) == official


@pytest.mark.parametrize("function", ["nn", "linearfunction", "linearfunction_in_out", "custom"])
def test_float64_agrees_over_500_steps(run_in, function):
    losses = curve(run_in(f"function={function}", "dtype=float64").folder)
    assert losses == pytest.approx(official_losses(500, dtype=torch.float64), rel=1e-9, abs=0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("function", NETWORK)
def test_every_choice_learns(run_in, device, function, optimizer, dtype):
    run = run_in(
        f"function={function}",
        f"optimizer={optimizer}",
        f"dtype={dtype}",
        f"device={device}",
        "steps=20",
    )
    losses = curve(run.folder)
    assert len(losses) == 20
    assert losses[-1] < losses[0]
    assert run.summary.status == "finished"


@pytest.mark.parametrize("function", NETWORK)
@pytest.mark.parametrize("optimizer", ["manual_sgd", "adam"])
def test_same_start_for_every_choice(run_in, device, official, function, optimizer):
    run = run_in(
        f"function={function}", f"optimizer={optimizer}", f"device={device}", "steps=1",
        "model.bias=true" if function != "builtin" else "model.bias=false",
    )  # fmt: skip
    assert curve(run.folder)[0] == pytest.approx(official[0], rel=1e-6)


def test_seed_zero_is_a_seed_and_another_one_starts_elsewhere(run_in):
    first = curve(run_in("steps=3", folder="first").folder)
    torch.manual_seed(99)  # what ran before in the process must not matter
    assert curve(run_in("steps=3", "seed=0", folder="again").folder) == first
    assert curve(run_in("steps=3", "seed=1", folder="other").folder) == official_losses(3, seed=1)


def test_manual_sgd_and_torch_sgd_agree(run_in):
    manual = run_in("dtype=float64", "optimizer=manual_sgd", folder="manual")
    torch_sgd = run_in("dtype=float64", "optimizer=sgd", folder="torch")
    assert curve(manual.folder) == pytest.approx(curve(torch_sgd.folder), rel=1e-9, abs=0)


def test_weights_are_updated_in_place_on_the_same_leaves(run_in, device, monkeypatch):
    import train

    seen = []

    def spy(config, group, *args):
        part = build(config, group, *args)
        if group == "optimizer":
            seen.extend(part.params)
        return part

    build = train.build
    monkeypatch.setattr(train, "build", spy)
    run = run_in("steps=3", "dtype=float64", f"device={device}")
    assert [weight.is_leaf for weight in seen] == [True, True]
    saved = torch.load(run.folder / "weights.pt")
    for weight, kept in zip(seen, saved.values(), strict=True):
        assert torch.equal(weight.detach().cpu(), kept)
        assert kept.dtype == torch.float64 and kept.device.type == "cpu"


def test_a_job_leaves_nothing_to_the_next(tmp_path, official):
    """What one job sets in the process changes neither the bits nor the flags of the next."""
    functions = "tests.faulty.SetsFlags.apply,functions.MyReLU.apply"
    with typed("-m", f"function.activation._target_={functions}", "steps=3", cwd=tmp_path) as run:
        assert run.wait() == 0, run.err
    (second,) = tmp_path.glob("outputs/*/1_*")
    assert curve(second) == official[:3]


def test_kink_first_differs_at_an_exact_step(tmp_path):
    done = command("train.py", "experiment=kink", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (sweep,) = (tmp_path / "outputs").iterdir()
    myrelu, relu = (curve(folder) for folder in sorted(sweep.glob("[01]_*")))
    first = next(step for step in range(500) if myrelu[step] != relu[step])
    (row,) = [line for line in done.stdout.splitlines() if line.startswith("relu ")]
    assert f" step {first} " in row
    assert (sweep / "comparison.png").stat().st_size > 10_000


def test_main_returns_the_last_loss_to_a_sweeper(tmp_path, monkeypatch):
    from hydra.core.hydra_config import HydraConfig
    from hydra.types import RunMode

    import train

    for name, overrides, wanted in (
        ("good", [], lambda loss: loss == pytest.approx(29428666, rel=1e-6)),
        ("diverging", ["steps=9", "optimizer.lr=1e-5"], lambda loss: loss == math.inf),
    ):
        cfg, _ = composed("steps=1", "progress=false", *overrides)
        hydra_cfg = OmegaConf.create(
            {
                "mode": "MULTIRUN",
                "overrides": {"task": []},
                "runtime": {"output_dir": str(tmp_path / name), "cwd": str(tmp_path)},
            }
        )
        choices = {"function": "myrelu", "optimizer": "manual_sgd"}
        hydra_cfg.runtime.choices = choices | {"model": "two_layer_net", "data": "random"}
        hydra_cfg.mode = RunMode.MULTIRUN
        (tmp_path / name).mkdir()
        monkeypatch.setattr(HydraConfig, "get", lambda hydra_cfg=hydra_cfg: hydra_cfg)
        assert wanted(train.main.__wrapped__(cfg)), name


def test_digits_reach_their_accuracy(run_in):
    run = run_in(
        "function=custom", "data=digits", "model.init=he", "optimizer.lr=1.0", "log_every=50"
    )
    assert run.summary.test_accuracy >= 0.95


def test_log_every_keeps_the_beat_and_the_last_step(run_in, official):
    run = run_in("steps=25", "log_every=10")
    rows = (run.folder / "curve.csv").read_text().splitlines()[1:]
    assert [int(row.partition(",")[0]) for row in rows] == [0, 10, 20, 24]
    assert run.summary.final_loss == official[24]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA")
def test_cuda_and_cpu_agree_at_the_start(run_in):
    cpu = curve(run_in("steps=5", "device=cpu", folder="cpu").folder)
    cuda = curve(run_in("steps=5", "device=cuda", folder="cuda").folder)
    assert cuda[0] == pytest.approx(cpu[0], rel=1e-6)


def test_device_auto_says_what_it_took(run_in):
    device = run_in("device=auto", "steps=1").summary.device
    assert torch.device(device).type in ("cpu", "cuda", "mps")
    assert device.startswith("cuda") == torch.cuda.is_available()


def test_shipped_numbers_are_numbers_to_every_yaml_reader():
    def strings(node: object) -> list[str]:
        if isinstance(node, dict):
            node = list(node.values())
        if isinstance(node, list):
            return [text for part in node for text in strings(part)]
        return [node] if isinstance(node, str) else []

    for path in (HOME / "conf").rglob("*.yaml"):
        for text in strings(yaml.safe_load(path.read_text())):
            assert not re.fullmatch(r"[-+]?[\d.]+(e[-+]?\d+)?", text), path


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["optimizer.lr=abc"], "optimizer.lr=abc is not valid; use a finite number"),
        (["+devise=cuda"], "did you mean device?"),
        (["function=MyReLU"], "function=MyReLU is not a choice"),
        (["function=null"], "function=null is not valid"),
        (["experiment=nope"], "experiment=nope is not a choice"),
        (["seed=${nope}"], "Interpolation key 'nope' not found"),
        (["steps==3"], "steps==3 is not valid"),
        (["function.activation._target_=nopkg.Nope"], "No module named 'nopkg'"),
        (["hydra.run.dir=/proc/nope/run"], "No such file or directory"),
    ],
)
def test_bad_input_on_the_command_line(tmp_path, args, says):
    with typed(*args, cwd=tmp_path) as run:
        assert run.wait() == 2
    assert run.out == ""
    (line,) = run.err.splitlines()
    assert line.startswith("error: ")
    assert says in line
    assert list(tmp_path.glob("outputs/*")) == []


def test_help_and_config_can_be_shown(tmp_path):
    done = command("train.py", "--help", cwd=tmp_path)
    assert done.returncode == 0
    assert "linearfunction_in_out" in done.stdout
    done = command("train.py", "--cfg", "job", "function=relu", cwd=tmp_path)
    assert done.returncode == 0
    assert "_target_: torch.relu" in done.stdout


def test_two_runs_at_once_get_a_folder_each(tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(2) as pool:
        jobs = [
            pool.submit(command, "train.py", "steps=5", "hydra.job.chdir=true", cwd=tmp_path)
            for _ in range(2)
        ]
    assert [job.result().returncode for job in jobs] == [0, 0]
    folders = list((tmp_path / "outputs").iterdir())
    assert len(folders) == 2
    assert all(len(curve(folder)) == 5 for folder in folders)


def test_a_function_that_is_no_activation_is_told_in_a_line(tmp_path):
    done = command(
        "train.py", "function.activation._target_=functions.LinearFunction.apply", cwd=tmp_path
    )
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "does not fit" in line
    assert list(tmp_path.glob("outputs/*")) == []


def test_descend_lands_on_the_known_minimum(run_in):
    run = run_in("experiment=descend")
    weights = torch.load(run.folder / "weights.pt")
    assert weights["x"].item() == pytest.approx(2 ** (2 / 3), abs=1e-4)
    assert weights["y"].item() == pytest.approx(0, abs=1e-4)
    assert run.summary.final_loss == pytest.approx(1.88988, abs=1e-5)


def test_sine_gives_the_losses_of_a_plain_script_bit_for_bit(run_in):
    losses: list[float] = []
    weights = plain_sine.fit(record=lambda step, loss: losses.append(loss))
    run = run_in("experiment=sine")
    assert curve(run.folder) == losses
    assert len(losses) == 2000
    # The numbers of conf/experiment/sine.yaml; the best cubic has a loss of 8.817.
    assert losses[0] == pytest.approx(461.9026, rel=1e-5)
    assert losses[-1] == pytest.approx(8.9436, rel=1e-3)
    saved = torch.load(run.folder / "weights.pt")
    assert [saved[name].item() for name in "abcd"] == weights


@pytest.mark.skipif(shutil.which("c++") is None, reason="torch.compile needs a C++ compiler")
def test_a_compiled_run_uses_our_backward(run_in):
    """A wrong backward makes the same wrong curve, compiled or not."""
    overrides = ["function=mistake_no_mask", "steps=3", "optimizer.lr=1.0e-3", "data.features=20"]
    eager = curve(run_in(*overrides, folder="eager").folder)
    compiled = curve(run_in(*overrides, "compile=true", folder="compiled").folder)
    right = curve(run_in(*overrides, "function=relu", folder="right").folder)
    assert compiled == pytest.approx(eager, rel=1e-5)
    assert not math.isclose(eager[2], right[2], rel_tol=1e-3)


def test_checkpoint_is_plain_data(run_in):
    run = run_in("steps=2")
    checkpoint = load_checkpoint(run.folder)
    assert checkpoint["step"] == 2


def test_every_function_file_has_the_same_keys():
    for path in (HOME / "conf/function").glob("[!_]*.yaml"):
        cfg, choices = composed(f"function={path.stem}")
        assert set(cfg.function) == {"linear", "layout", "activation"}, path
        assert choices["function"] == path.stem
        config_of(f"function={path.stem}")
        assert OmegaConf.to_container(cfg, resolve=True)


def test_measuring_the_accuracy_changes_no_mode_of_the_model():
    model = torch.nn.Sequential(torch.nn.BatchNorm1d(2), torch.nn.Dropout(0.5))
    model[0].eval()
    x, y = torch.eye(2), torch.tensor([0, 1])
    data = Data(x, y, torch.nn.functional.cross_entropy, x_test=x, y_test=y)
    assert train.accuracy(model, data).item() == 1.0
    assert [module.training for module in model] == [False, True]

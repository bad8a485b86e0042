"""The cause of the first difference, each against a calculation in plain PyTorch."""

from __future__ import annotations

import dataclasses
import os
import re
import sys

import pytest
import torch
from conftest import HOME
from torch.nn.functional import mse_loss

import compare
from lab.comparing.why import why
from lab.recording.diagnosis import Diverged
from lab.recording.reading import read_run

SMALL = ("data.samples=8", "data.features=5", "model.hidden=4", "data.targets=2", "steps=3")


@pytest.fixture
def explain(run_in):
    """Train two short runs, each with its own overrides and the common ones; why they differ."""

    def explained(first: str, second: str, *common: str, steps: int = 3) -> str:
        runs = [
            read_run(run_in(*own.split(), f"steps={steps}", *common, folder=str(i)).folder)
            for i, own in enumerate((first, second))
        ]
        torch.set_num_threads(1)
        text = why(*runs)
        assert torch.get_num_threads() == 1
        return words(text)

    return explained


def official(seed: int = 0, dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    """x, y, w1 and w2 as the official script draws them."""
    torch.manual_seed(seed)
    return [torch.randn(*size).to(dtype) for size in ((64, 1000), (64, 10), (1000, 100), (100, 10))]


def gradients(x, y, w1, w2):
    """Of the hidden layer's output, of w1 and of w2; its pre-activation."""
    before = x.mm(w1)
    hidden = before.clamp(min=0)
    grad = 2 * (hidden.mm(w2) - y)
    grad_hidden = grad.mm(w2.t())
    return grad_hidden, x.t().mm(grad_hidden * (before >= 0)), hidden.t().mm(grad), before


def words(text: str) -> str:
    return " ".join(text.split())


def first_kink():
    """The first step with an input of exactly 0, where, and its gradient; processors differ."""
    x, y, w1, w2 = official()
    step, differs = -1, torch.tensor(False)
    while not differs.any():
        grad_hidden, grad_w1, grad_w2, before = gradients(x, y, w1, w2)
        differs = (before == 0) & (grad_hidden != 0)
        w1, w2 = w1 - 1e-6 * grad_w1, w2 - 1e-6 * grad_w2
        step += 1
    return step, differs, grad_hidden


def test_kink(explain):
    step, differs, grad_hidden = first_kink()
    text = explain("function=myrelu", "function=relu", steps=step + 10)
    assert f"gradients first differ at step {step}, so the losses from step {step + 1}" in text
    assert "First tensor that differs: the gradient of the output of linear1" in text
    at = differs.nonzero()[0].tolist()
    value = f"{grad_hidden[*at].item():.9g}"
    assert f"{int(differs.sum())} of 6,400, the first is {at}: {value} in myrelu, 0 in relu" in text
    assert f"from: input 0, grad_output {value}" in text
    assert "Cause: a kink" in text
    assert "0 on the left and 1 on the right" in text
    lines = (HOME / "functions/myrelu.py").read_text().splitlines()
    line = next(number for number, code in enumerate(lines, 1) if "def backward" in code)
    file = os.path.relpath(HOME / "functions/myrelu.py")
    assert f"MyReLU ({file}:{line}) in myrelu, torch.relu in relu" in text


def test_no_kink_where_the_slopes_are_the_same(explain):
    text = explain("function=black_box", "function.activation._target_=torch.tanh")
    assert "Cause: a different backward" in text and "kink" not in text


def test_a_setting_that_was_typed_beside_another_function_is_named(explain):
    text = explain("function=builtin", "function=relu model.init=he", *SMALL)
    assert "model.init=normal and model.init=he" in text


def test_a_loss_that_is_not_finite_at_once(run_in, tmp_path):
    with pytest.raises(Diverged, match="no update was made before it"):
        run_in("function.activation._target_=torch.log", *SMALL, folder="log")
    runs = [read_run(run_in(*SMALL, folder="relu").folder), read_run(tmp_path / "log")]
    assert "The outputs first differ at step 0" in words(why(*runs))


def test_a_wrong_gradient(explain):
    text = explain("function=myrelu", "function=mistake_no_mask")
    grad_hidden, _, _, before = gradients(*official())
    differs = (before < 0) & (grad_hidden != 0)
    at = differs.nonzero()[0].tolist()
    value, input = grad_hidden[*at].item(), before[*at].item()
    assert "gradients first differ at step 0, so the losses from step 1" in text
    assert f"elements: {int(differs.sum()):,} of 6,400, the first is {at}: 0 in myrelu" in text
    assert f"{value:.9g} in mistake_no_mask" in text
    assert f"from: input {input:.9g}, grad_output {value:.9g}" in text
    assert "a different backward" in text
    assert "derivative of forward is 0, but ReLUNoMask passes" in text
    assert "check.py functions.mistakes.ReLUNoMask" in text
    assert "check.py functions.myrelu" not in text


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("function", ["linearfunction", "nn"])
def test_rounding(explain, function, dtype):
    x, _, w1, w2 = official(dtype=getattr(torch, dtype))
    text = explain("function=builtin", f"function={function}", f"dtype={dtype}")
    hidden = x.mm(w1).clamp(min=0)
    layers = {"linear1": (x, w1), "linear2": (hidden, w2)}
    products = {
        name: (input.mm(weight), input.mm(weight.t().contiguous().t()))
        for name, (input, weight) in layers.items()
    }
    differing = [name for name, (one, other) in products.items() if (one != other).any()]
    if not differing:  # this processor gives the same bits for both layouts of a weight
        assert "First tensor that differs: the output of" not in text
        return
    name = differing[0]
    one, other = products[name]
    differs = one != other
    at = differs.nonzero()[0].tolist()
    unit = torch.finfo(one.dtype).eps * 2 ** one[*at].abs().log2().floor()
    units = round(((one[*at] - other[*at]).abs() / unit).item())
    assert f"First tensor that differs: the output of {name}" in text
    assert f"{int(differs.sum()):,} of {differs.numel():,}, the first is {at}" in text
    assert "Cause: rounding" in text
    assert f"{units} unit" in text


def test_rounding_does_not_hide_a_wrong_backward(explain):
    text = explain("function=myrelu", "function=mistake_bias_averaged", "model.bias=true")
    # On some processors the products of both layouts have the same bits; there is then no rounding.
    if "Cause: rounding" in text:
        assert "the gradient of linear1.bias differs by more than rounding" in text
    else:
        assert "First tensor that differs: the gradient of linear1.bias" in text
    assert "check.py functions.mistakes.LinearBiasAveraged" in text


@pytest.mark.parametrize(
    ("first", "second", "step", "says"),
    [
        ("manual_sgd", "sgd", 0, "Cause: rounding. To 2 units in the last place, both compute"),
        ("sgd", "momentum", 1, "Cause: the update. The weights and gradients are equal, but not"),
        ("sgd", "momentum", 1, "momentum=0.0 and momentum=0.9"),
        ("manual_sgd", "momentum", 0, "Cause: the update. In this step, to 2 units"),
        ("manual_sgd", "momentum", 0, "momentum=none and momentum=0.9"),
        ("manual_sgd", "adam", 0, "optimizers.ManualSGD(lr=1e-06) and torch.optim.Adam(lr=0.01)"),
    ],
)
def test_optimizers(explain, first, second, step, says):
    text = explain(f"optimizer={first}", f"optimizer={second}")
    assert f"weights first differ after the update of step {step}" in text
    assert "First tensor that differs: linear1.weight after the update" in text
    assert says in text


@pytest.mark.parametrize("function", ["builtin", "nn"])
def test_learning_rate(explain, function):
    text = explain("seed=0", "optimizer.lr=2e-6", f"function={function}")
    _, grad_w1, _, _ = gradients(*official())
    w1 = official()[2]
    assert "update of step 0, so the losses from step 1" in text
    assert "100,000 of 100,000, the first is [0, 0]" in text
    weight, gradient = w1[0, 0].item(), grad_w1[0, 0].item()
    assert f"from: weight {weight:.9g}, gradient " in text
    assert f"gradient {gradient:.5g}"[:14] in text
    assert "lr=1e-06 and lr=2e-06" in text


def test_precision(explain):
    text = explain("dtype=float64", "dtype=float32")
    x, _, w1, _ = official()
    exact, rounded = x.double().mm(w1.double()), x.mm(w1)
    assert "outputs first differ at step 0, so the losses from step 0" in text
    assert "First tensor that differs: the output of linear1" in text
    assert f"{int((exact != rounded.double()).sum()):,} of 6,400" in text
    assert f"{exact[0, 0].item():.9g} in float64, {rounded[0, 0].item():.9g} in float32" in text
    assert "Cause: dtype=float64 and dtype=float32" in text


@pytest.mark.parametrize(
    ("first", "second", "tensor", "cause"),
    [
        ("seed=0", "seed=1", "x", "seed=0 and seed=1"),
        ("seed=0", "seed=1 data=digits", "x", "data=random and data=digits"),
        ("data=digits seed=0", "data=digits seed=1", "linear1.weight", "seed=0 and seed=1"),
        ("seed=0", "model.init=he", "linear1.weight", "model.init=normal and model.init=he"),
        ("seed=0", "data.samples=32", "x", "data.samples=64 and data.samples=32"),
    ],
)
def test_other_numbers_at_the_start(explain, first, second, tensor, cause):
    text = explain(first, second)
    assert "initial numbers differ, so the losses from step 0" in text
    assert f"First tensor that differs: {tensor} " in text
    assert "Cause: different numbers at the start" in text
    assert cause in text


def test_another_seed_in_numbers(explain):
    text = explain("seed=0", "seed=1")
    values = [official(seed)[0][0, 0].item() for seed in (0, 1)]
    assert "64,000 of 64,000, the first is [0, 0]" in text
    assert f"{values[0]:.9g} in seed=0, {values[1]:.9g} in seed=1" in text


def test_threads(explain):
    """At a size where the sum over the loss is added up in another order by two threads."""
    differ = []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            torch.manual_seed(0)
            x, y = torch.randn(4096, 100), torch.randn(4096, 10)
            w1, w2 = torch.randn(100, 100), torch.randn(100, 10)
            output = x.mm(w1).clamp(min=0).mm(w2)
            differ.append(mse_loss(output, y, reduction="sum").item())
    finally:
        torch.set_num_threads(1)
    if differ[0] == differ[1]:
        pytest.skip("one and two threads give the same bits on this machine")
    size = ("data.samples=4096", "data.features=100", "model.hidden=100")
    text = explain("threads=1", "threads=2", *size)
    assert "differ at step 0" in text
    assert "Cause: threads=1 and threads=2" in text


@pytest.mark.parametrize("second", ["myrelu", "mistake_edits_grad_output"])
def test_never(explain, second):
    text = explain("function=builtin", f"function={second}", steps=120)
    assert "Never: all outputs, gradients and weights are equal, bit for bit" in text
    assert "in all 120 steps" in text


def test_a_function_in_place(explain):
    """Its input is overwritten, and yet the values that went in are right."""
    activation = "function.activation._target_="
    text = explain(
        f"{activation}exercises.solutions.e25_in_place.InPlace.apply",
        f"{activation}torch.nn.functional.leaky_relu +function.activation.negative_slope=0.1",
    )
    assert "First tensor that differs: the output of activation" in text
    x, _, w1, _ = official()
    at = [int(i) for i in re.search(r"the first is \[(\d+), (\d+)\]", text).groups()]
    assert f"from: input {x.mm(w1)[*at].item():.9g}" in text
    assert "Cause: rounding. Both compute the same function" in text


def test_a_function_that_draws_random_numbers(explain):
    """Each training continues with random numbers of its own, as it did alone."""
    common = "function.activation._target_=torch.nn.functional.dropout"
    text = explain("seed=0", "optimizer.lr=2e-6", common)
    assert "does not give the recorded losses" not in text
    assert "lr=1e-06 and lr=2e-06" in text


def test_a_kink_inside_a_larger_function_is_not_called_rounding(explain):
    network = "model=exercise_network model.network._target_=tests.faulty.NetworkStopsAtZero.apply"
    step, _, _ = first_kink()
    text = explain(network, "function=builtin", steps=step + 6)
    assert f"at step {step}" in text
    assert "linear1.weight" in text
    assert "rounding" not in text
    assert "python check.py tests.faulty.NetworkStopsAtZero" in text


def test_the_whole_network_in_one_function(explain):
    network = "model=exercise_network model.network._target_=exercises.solutions.e18_network"
    text = explain(f"{network}.Network.apply", "function=myrelu")
    assert "Never: all outputs" in text
    assert "bit for bit, in all 3 steps" in text


def test_two_causes(explain):
    text = explain("dtype=float64 function=builtin", "function=relu optimizer.lr=2e-6")
    assert "Cause: dtype=float64 and dtype=float32" in text
    assert "Other settings differ too: function=builtin and function=relu" in text


def test_a_surrogate(explain):
    text = explain("function=sign", "function=sign_ste", *SMALL[:4])
    assert "the derivative of forward is 0, but SignSTE passes grad_output on" in text


def test_another_forward(explain):
    text = explain("function=relu", "function=numpy_softplus", *SMALL[:4])
    assert "First tensor that differs: the output of activation" in text
    assert "Cause: a different forward" in text


def test_a_point(explain):
    text = explain("experiment=descend", "experiment=descend optimizer.lr=0.2")
    assert "First tensor that differs: x after the update" in text
    gradient = 1 / (2 * 3**0.5) - 1 / 9  # of sqrt(x) + 1/x at x = 3
    assert f"weight 3, gradient {gradient:.6g}"[:28] in text


def test_a_replay_that_differs_from_the_record_says_so_first(run_in):
    first = read_run(run_in("function=builtin", *SMALL, folder="0").folder)
    second = read_run(run_in("function=linearfunction", *SMALL, folder="1").folder)
    then = dataclasses.replace(second.summary, torch="1.0.0")
    second = dataclasses.replace(second, losses=second.losses * [1, 2, 2], summary=then)
    lines = words(why(first, second))
    assert "does not give the recorded losses of linearfunction: step 1 gives" in lines
    assert "PyTorch 1.0.0" in lines
    assert "a possible cause, but not shown" in lines
    assert "recorded losses of builtin" not in lines


def test_a_run_that_cannot_be_trained_again(run_in, tmp_path, monkeypatch):
    (tmp_path / "gone.py").write_text("import torch\nrelu = torch.relu\n")
    monkeypatch.syspath_prepend(tmp_path)
    chosen = "function.activation._target_=gone.relu"
    run = read_run(run_in(chosen, *SMALL).folder)
    other = read_run(run_in(*SMALL, folder="other").folder)
    (tmp_path / "gone.py").unlink()
    monkeypatch.delitem(sys.modules, "gone")
    text = why(run, other)
    assert "can't be trained again" in text
    assert "gone" in text
    assert len(text.splitlines()) <= 2
    failed = dataclasses.replace(
        run,
        summary=dataclasses.replace(run.summary, steps=0, error="it broke"),
        steps=run.steps[:0],
    )
    assert "did not complete a step: it broke" in words(why(other, failed))


def test_as_it_is_typed(run_in, capsys):
    folders = [str(run_in(f"seed={i}", *SMALL, folder=str(i)).folder) for i in (0, 1)]
    compare.main([*folders, "--why"])
    out = words(capsys.readouterr().out)
    assert out.index("last loss") < out.index("Why do seed=0 and seed=1 differ?")
    with pytest.raises(compare.UserError, match="--why needs two runs, and there are 1"):
        compare.main([folders[0], "--why"])

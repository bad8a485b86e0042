"""The plot of a check: which kind is drawn, what is marked as wrong, and what is refused."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch

import check
from functions import LinearFunction, MyReLU, SignSTE
from functions.mistakes import ReLUNoMask
from lab import HOME
from lab.checking.children import plot_of
from lab.checking.plot import figure_of, save_plot
from lab.checking.samples import Case
from lab.errors import UserError

HOW = {"device": "cpu", "seed": 0, "eps": 1e-6, "atol": 1e-5}
X = torch.tensor([[-1.5, 0.3, 2.0]], dtype=torch.float64)


def legend(figure) -> set[str]:
    return {text.get_text() for text in figure.legends[0].get_texts()}


def curve(axes, label: str) -> tuple[np.ndarray, np.ndarray]:
    (line,) = [line for line in axes.lines if line.get_label() == label]
    return line.get_xdata(), line.get_ydata()


class TransposedByMistake(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a @ b

    @staticmethod
    def backward(ctx, grad_output):
        a, b = ctx.saved_tensors
        return grad_output @ b.T, (a.T @ grad_output).T


def test_elementwise_function_is_drawn_as_curves_with_its_kink():
    figure = figure_of([Case(MyReLU, (X,))])
    above, below = figure.axes
    x, y = curve(above, "forward")
    assert np.allclose(y, np.maximum(x, 0))
    x, backward = curve(below, "backward, with grad_output 1")
    assert np.array_equal(backward[np.abs(x) > 0.005], (x[np.abs(x) > 0.005] > 0).astype(float))
    _, numeric = curve(below, "numerical gradient of forward")
    assert np.isnan(numeric).sum() == 1
    assert "kink or jump" in legend(figure)
    assert "backward is wrong" not in legend(figure)


def test_wrong_stretch_is_shaded():
    figure = figure_of([Case(ReLUNoMask, (X,))])
    assert "backward is wrong" in legend(figure)
    (shade,) = figure.axes[1].collections
    x = shade.get_paths()[0].vertices[:, 0]
    assert -3.01 < x.min() < -2.99 and -0.03 < x.max() < 0


def test_surrogate_is_drawn_beside_forward():
    figure = figure_of([Case(SignSTE, (X,))])
    assert {"surrogate", "numerical gradient of surrogate"} <= legend(figure)
    assert "backward is wrong" not in legend(figure)


def test_other_functions_are_drawn_as_jacobians_of_the_faulty_sample():
    right = torch.ones(1, 1, dtype=torch.float64)
    wrong = torch.eye(2, dtype=torch.float64)
    figure = figure_of([Case(TransposedByMistake, (arg, arg)) for arg in (right, wrong)])
    titles = [axes.get_title() for axes in figure.axes]
    assert titles[:3] == [
        "backward: gradient for a",
        "numerical gradient for a",
        "difference: 0 of 16 entries are wrong",
    ]
    assert titles[5] == "difference: 4 of 16 entries are wrong"
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == [
        "a[0, 0]",
        "a[0, 1]",
        "a[1, 0]",
        "a[1, 1]",
    ]
    assert figure.axes[0].get_yticklabels()[0].get_text() == "output[0, 0]"
    image = figure.axes[3].images[0].get_array()
    blue, orange = image[0, 0], image[1, 2]
    assert blue[2] > blue[0] and orange[0] > orange[2]


def test_one_row_for_each_input():
    assert len(figure_of([Case(LinearFunction, (X, X))]).axes) == 6


@pytest.mark.parametrize(
    ("suffix", "start"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")]
)
def test_format_follows_the_suffix(tmp_path, suffix, start):
    file = tmp_path / f"plot.{suffix}"
    assert save_plot(MyReLU, file, **HOW) == ""
    assert file.read_bytes().startswith(start)


def test_function_that_cannot_be_drawn_says_why(tmp_path):
    class NoBackward(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

    assert "backward" in save_plot(NoBackward, tmp_path / "a.png", **HOW)
    assert list(tmp_path.iterdir()) == []


# ---- As users type it ---------------------------------------------------------------------------


@pytest.mark.slow
def test_command_writes_the_plot_and_says_where(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert check.main(["MyReLU", "--plot", "myrelu.svg"]) == 0
    assert capsys.readouterr().err == "plot: myrelu.svg\n"
    assert (tmp_path / "myrelu.svg").read_bytes().startswith(b"<?xml")


@pytest.mark.parametrize("name", ["a.xyz", "a", ""])
def test_unknown_suffix_is_refused_by_name(tmp_path, capsys, name):
    with pytest.raises(SystemExit) as refused:
        check.main(["MyReLU", "--plot", str(tmp_path / name)])
    assert refused.value.code == 2
    said = capsys.readouterr().err
    assert ".png, .svg, .pdf" in said and (".xyz" in said) == (name == "a.xyz")


@pytest.mark.parametrize("target", [[], ["exercises.relu"]])
def test_plot_wants_one_function(target):
    with pytest.raises(UserError, match="--plot"):
        check.main([*target, "--plot", "a.png"])


def test_several_functions_are_listed(tmp_path):
    file = tmp_path / "several.py"
    file.write_text(
        "from torch.autograd import Function\nclass A(Function): 1\nclass B(Function): 1"
    )
    with pytest.raises(UserError, match="A, B"):
        plot_of(str(file), tmp_path / "a.png", 20, **HOW)


def test_matplotlib_is_imported_only_when_asked():
    code = "import check, sys; print('matplotlib' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], cwd=HOME, capture_output=True, check=True)
    assert ran.stdout == b"False\n"

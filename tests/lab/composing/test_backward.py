"""`show=backward`: one step in words, its numbers against plain PyTorch."""

from __future__ import annotations

import pytest
import torch
from conftest import HOME, config_of

from lab.composing.backward import backward_in_words
from lab.errors import UserError
from tests.typed import typed


def shown(*overrides: str) -> dict[str, list[str]]:
    """The title of each block and its lines."""
    _, *blocks = backward_in_words(config_of(*overrides)).split("\n\n")
    return {block.splitlines()[0]: block.splitlines()[1:] for block in blocks}


def line(direction: str, gradient: torch.Tensor) -> str:
    return f"  {direction} {tuple(gradient.shape)!s:13} norm {gradient.norm().item():.4g}"


@pytest.mark.parametrize("function", ["myrelu", "nn"])
def test_the_gradients_of_a_step(function):
    torch.manual_seed(0)
    x, y, w1, w2 = (torch.randn(*size) for size in ((64, 1000), (64, 10), (1000, 100), (100, 10)))
    before = x.mm(w1)
    hidden = before.clamp(min=0)
    grad = 2 * (hidden.mm(w2) - y)
    grad_hidden = grad.mm(w2.t())
    grad_before = grad_hidden * (before >= 0)
    transposed = function == "nn"
    blocks = shown(f"function={function}")
    words = [line for lines in blocks.values() for line in lines]
    assert words[:3] == ["  in  ()            norm 1", line("out", grad), "  out None"]
    for gradient in (grad, grad_hidden, grad_before):
        assert line("in ", gradient) in words
        assert line("out", gradient) in words
    for name, gradient in (
        ("linear1.weight.grad", x.t().mm(grad_before)),
        ("linear2.weight.grad", hidden.t().mm(grad)),
    ):
        assert blocks[name] == [line("in ", gradient.t() if transposed else gradient)]


def test_what_forward_saved_and_where_backward_is(monkeypatch):
    monkeypatch.chdir(HOME)
    code = (HOME / "functions/linear.py").read_text().splitlines()
    here = next(i for i, text in enumerate(code, 1) if "def backward" in text)
    titles = [*shown("function=linearfunction", "dtype=float64", "model.bias=true")]
    place = f"LinearFunctionBackward, functions/linear.py:{here}"
    # input and weight, 8 bytes an element; the relu saves its input
    assert f"{place}, {8 * (64 * 100 + 100 * 10):,} bytes saved" in titles
    assert f"{place}, {8 * (64 * 1000 + 1000 * 100):,} bytes saved" in titles
    assert f"ClampBackward1, {8 * 64 * 100:,} bytes saved" in titles
    assert titles[-1] in ("linear1.weight.grad", "linear1.bias.grad")


def test_a_point_has_no_layers():
    assert [*shown("experiment=descend")][-1].endswith(".grad")


def test_it_is_what_the_lesson_shows(monkeypatch):
    monkeypatch.chdir(HOME)
    text = backward_in_words(config_of("function=custom"))
    assert f"\n```\n{text}\n```\n" in (HOME / "lessons.md").read_text()


def test_it_shows_no_later_step():
    with pytest.raises(UserError, match="show=backward is not possible with resume"):
        backward_in_words(config_of("resume=outputs/run"))


def test_it_leaves_no_run(tmp_path):
    with typed("function=myrelu", "show=backward", cwd=tmp_path / "one") as run:
        assert run.wait() == 0, run.err
        assert "MyReLUBackward" in run.out
    assert not [*tmp_path.glob("one/outputs/*")]


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (["show=forward"], "show=forward is not valid; use backward or null"),
        (["show=backward", "steps=0"], "steps=0 is not valid"),
        (["-m", "function=relu,myrelu", "show=backward"], "not possible in a sweep"),
        (["show=backward", "experiment=kink"], "not possible in a sweep"),
    ],
)
def test_refused(tmp_path, overrides, says):
    with typed(*overrides, cwd=tmp_path / "one") as run:
        assert run.wait() == 2
        assert says in run.err
    assert not [*tmp_path.glob("one/outputs/*")]

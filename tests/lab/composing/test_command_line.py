"""What Hydra refuses to compose, in words that help; as a user types it."""

from __future__ import annotations

import pytest

from tests.typed import typed


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["~optimizer.lr"], "'lr'"),
        (["~steps"], "~steps is not possible"),
        (["+function=relu"], "function"),
        (["function=relu,myrelu"], "python train.py -m function=relu,myrelu"),
        (["function=[relu,myrelu]"], "function"),
        (["-m", "function=relu,3"], "function=relu,3 is not valid"),
        (["function=null"], "function=null is not valid"),
        (["function="], "function= is not a choice"),
        (["model=3"], "model=3 is not valid"),
        (["experiment=null"], "experiment=null is not valid"),
        (["-m", "experiment=kink,official"], "one experiment at a time"),
        (["-m", "resume=a"], "resume=a is not possible in a sweep"),
        (["steps==3"], "steps==3 is not valid"),
        (["seed=${nope}"], "seed"),
        (["+devise=cuda"], "did you mean device?"),
    ],
)
def test_refused_in_one_line(tmp_path, arguments, says):
    with typed(*arguments, cwd=tmp_path) as run:
        assert run.wait() == 2
    (line,) = run.err.splitlines()
    assert line.startswith("error: ")
    assert says in line
    assert not list(tmp_path.glob("outputs/*/summary.json"))


def test_a_config_can_be_shown_without_a_folder(tmp_path):
    with typed("--cfg", "all", "--resolve", cwd=tmp_path) as run:
        assert run.wait() == 0, run.err
    assert "functions.MyReLU.apply" in run.out
    assert not (tmp_path / "outputs").exists()

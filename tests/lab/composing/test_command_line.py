"""What is typed, refused in words that help."""

from __future__ import annotations

import pytest
from omegaconf import OmegaConf

from lab.composing.command_line import check_choices, composed
from lab.composing.names import register_resolvers
from lab.errors import UserError


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["~steps"], "~steps: a run needs each key"),
        (["~optimizer.lr"], "~optimizer.lr: a run needs each key"),
        (["+function=relu"], r"\+function=relu: leave the \+ out"),
        (["function=relu,myrelu"], "a sweep: python train.py -m function=relu,myrelu"),
        (["function=[relu,myrelu]"], "one of black_box"),
        (["-m", "function=relu,3"], "function=3: one of black_box"),
        (["function={}"], "function={}: one of black_box"),
        (["function=null"], "function=null: one of black_box"),
        (["function="], "function=: one of black_box"),
        (["model=3"], "model=3: one of point"),
        (["experiment=null"], "experiment=null: one of descend"),
        (["-m", "experiment=kink,official"], "one experiment at a time"),
    ],
)
def test_refused(arguments, says):
    with pytest.raises(UserError, match=says):
        check_choices(arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        ["function=relu", "optimizer.lr=[1]", "hydra.run.dir=a,b"],
        ["-m", "function=relu,myrelu", "data=random"],
        ["--multirun", "function=glob(*)", "model=choice(point,two_layer_net)"],
        ["experiment=digits", "function=relu,nn"],
    ],
)
def test_admitted(arguments):
    check_choices(arguments)


def test_a_folder_that_can_not_be_made_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    register_resolvers()
    cfg = OmegaConf.create({"dir": f"${{sweep_folder:{tmp_path}/file,null}}"})
    with pytest.raises(UserError, match=r"file: Not a directory$"), composed():
        _ = cfg.dir

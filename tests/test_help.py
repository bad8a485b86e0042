"""`python train.py --help`: it fits a screen, names every choice, and its examples run."""

from __future__ import annotations

import re
import shlex

import pytest
import yaml
from conftest import HOME, config_of

from tests.typed import typed

HELP = re.search(r"template: \|-\n(.*?)\n  run:", (HOME / "conf/config.yaml").read_text(), re.S)[
    1
].replace("$$", "$")
EXAMPLES = re.findall(r"^ +python train\.py (\S.*?)(?:   .*)?$", HELP, re.MULTILINE)[1:]


def test_it_is_shown_and_fits_80_columns_and_40_lines(tmp_path):
    with typed("--help", cwd=tmp_path) as run:
        assert run.wait() == 0
    lines = run.out.rstrip().splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
    assert [line.strip() for line in lines] == [line.strip() for line in HELP.splitlines()]


@pytest.mark.parametrize("group", ["function", "optimizer", "data", "model", "experiment"])
def test_every_choice_is_named(group):
    for path in (HOME / "conf" / group).glob("[!_]*.yaml"):
        prefix = re.match(r"(exercise|mistake)_", path.stem)
        assert (f"{prefix[0]}*" if prefix else path.stem) in re.split(r"[\s,]+", HELP), path


def test_every_default_is_true():
    keys = config_of("progress=null").keys | {"show": None}  # which no run has
    for key, value in re.findall(r"([a-z_.]+)=(\S+)", HELP.partition("choices, each")[0])[:-1]:
        if value == "N":  # steps=N, of a resumed run
            continue
        section, _, name = key.rpartition(".")
        default = (keys[section] if section else keys)[name]
        assert yaml.safe_load(value) == default, key


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_runs(tmp_path, example):
    short = [] if "steps=" in example or "experiment" in example else ["steps=9"]
    with typed(*shlex.split(example), *short, cwd=tmp_path) as run:
        assert run.wait() == 0, run.err


def test_there_are_five_examples():
    assert len(EXAMPLES) == 5

"""Checkpoints: plain data, checked before a number of it is used."""

from __future__ import annotations

import pickle
import random
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import config_of

import train
from lab.errors import UserError
from lab.recording.checkpoint import load_checkpoint, restore
from lab.recording.summary import Damaged


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> bytes:
    """A checkpoint.pt of a small network under Adam: weights, two moments each, random state."""
    folder = tmp_path_factory.mktemp("run")
    config = config_of("steps=3", "optimizer=adam", "data.features=7", "model.hidden=5")
    train.train(config, folder)
    return (folder / "checkpoint.pt").read_bytes()


def load(folder: Path, content: bytes) -> dict[str, Any]:
    (folder / "checkpoint.pt").write_bytes(content)
    return load_checkpoint(folder)


def same(first: Any, second: Any) -> bool:
    if isinstance(first, torch.Tensor):
        return first.dtype == second.dtype and torch.equal(first, second)
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same(first[k], second[k]) for k in first)
    if isinstance(first, list | tuple):
        return len(first) == len(second) and all(map(same, first, second))
    return type(first) is type(second) and first == second


def test_200_damaged_checkpoints_are_refused_or_unharmed(tmp_path, whole, recwarn):
    truth = load(tmp_path, whole)
    chance = random.Random(0)
    refused = 0
    for i in range(200):
        content = bytearray(whole)
        at = chance.randrange(len(content))
        if i % 2:
            del content[at:]
        else:
            content[at] ^= 1 << chance.randrange(8)
        message = None
        try:
            loaded = load(tmp_path, bytes(content))
        except Damaged as error:
            message = str(error)
        if message is None:
            assert same(loaded, truth)
        else:
            refused += 1
            assert "checkpoint.pt is damaged" in message and "\n" not in message
    print(f"{refused} refused, {200 - refused} read, unharmed")
    assert refused > 150  # each of the 100 cut ones, and most with a changed bit
    assert len(recwarn) == 0


def test_a_changed_bit_in_the_weights_is_found(tmp_path, whole):
    truth = load(tmp_path, whole)
    weights = truth["model"]["linear1.weight"].numpy().tobytes()
    at = whole.index(weights)
    for offset in range(0, len(weights), 11):
        content = bytearray(whole)
        content[at + offset] ^= 1
        with pytest.raises(Damaged, match=r"checkpoint.pt is damaged"):
            load(tmp_path, bytes(content))


class Code:
    """Unpickled, it would make a folder."""

    def __init__(self, made: Path):
        self.made = made

    def __reduce__(self):
        return Path.mkdir, (self.made,)


@pytest.mark.parametrize("kind", ["pickle", "torch", "zip", "text", "empty", "other", "list"])
def test_a_foreign_file_is_one_line_and_no_code_is_run(tmp_path, kind, recwarn):
    file, made = tmp_path / "checkpoint.pt", tmp_path / "made"
    if kind == "pickle":
        file.write_bytes(pickle.dumps(Code(made)))
    elif kind == "torch":
        torch.save({"step": 1, "model": Code(made), "summary": {"config": {}}}, file)
    elif kind == "zip":
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("archive/data.pkl", pickle.dumps(Code(made)))
    elif kind == "text":
        file.write_text("not a checkpoint\n" * 1000)
    elif kind == "empty":
        file.touch()
    elif kind == "other":
        torch.save({"state_dict": {"w": torch.ones(2)}, "epoch": 3}, file)
    else:
        torch.save([1, 2], file)
    with pytest.raises(Damaged, match=r"^checkpoint.pt is damaged[^\n]*$"):
        load_checkpoint(tmp_path)
    assert not made.exists()
    assert len(recwarn) == 0


def test_no_checkpoint_says_when_there_is_one(tmp_path):
    with pytest.raises(Damaged, match=r"holds no checkpoint.pt; a run writes one at its end"):
        load_checkpoint(tmp_path)


def test_weights_of_another_shape_are_refused(tmp_path, whole):
    model = torch.nn.Linear(2, 2)
    with pytest.raises(UserError, match=r"checkpoint.pt does not fit"):
        restore(
            load(tmp_path, whole),
            model,
            torch.optim.SGD(model.parameters()),
            torch.device("cpu"),
        )

"""Other systems and Pythons, imitated: no fcntl (as on Windows), argparse of Python 3.14."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import HOME, THREADS

pytestmark = pytest.mark.slow

NO_FCNTL = "import sys; sys.modules['fcntl'] = None"
# What argparse of Python 3.14 does in add_argument: it formats each help string at once.
ARGPARSE_3_14 = """
import argparse

def _check_help(self, action):
    if action.help and hasattr(self, "_get_formatter"):
        try:
            self._get_formatter()._expand_help(action)
        except (ValueError, TypeError, KeyError) as error:
            raise ValueError("badly formed help string") from error

def add_argument(self, *args, _add=argparse._ActionsContainer.add_argument, **kwargs):
    action = _add(self, *args, **kwargs)
    self._check_help(action)
    return action

argparse._ActionsContainer._check_help = _check_help
argparse._ActionsContainer.add_argument = add_argument
"""


def python(*arguments: str, cwd: Path, imitating: str) -> subprocess.CompletedProcess[str]:
    """Run `python *arguments` in an interpreter that runs some code before anything else."""
    (cwd / "site").mkdir(exist_ok=True)
    (cwd / "site/sitecustomize.py").write_text(imitating)
    script, *rest = arguments
    return subprocess.run(
        [sys.executable, HOME / script if script.endswith(".py") else script, *rest],
        cwd=cwd,
        env=os.environ | THREADS | {"PYTHONPATH": str(cwd / "site")},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_without_fcntl_the_commands_run_and_a_stale_lock_blocks_nothing(tmp_path):
    done = python("train.py", "steps=3", "hydra.run.dir=run", cwd=tmp_path, imitating=NO_FCNTL)
    assert done.returncode == 0, done.stderr
    assert "soft file lock" not in done.stderr
    # A process that was killed leaves its lock behind, with its process id.
    dies = (
        f"import os, sys; sys.path.insert(0, {str(HOME)!r}); from lab.files import FileLock; "
        "lock = FileLock('run/.lock'); lock.acquire(); os._exit(9)"
    )
    python("-c", dies, cwd=tmp_path, imitating=NO_FCNTL)
    assert re.match(r"\d+\n", (tmp_path / "run/.lock").read_text())
    done = python("train.py", "resume=run", "steps=5", cwd=tmp_path, imitating=NO_FCNTL)
    assert done.returncode == 0, done.stderr
    done = python("compare.py", "run", cwd=tmp_path, imitating=NO_FCNTL)
    assert done.returncode == 0, done.stderr
    done = python("check.py", "MyReLU", cwd=tmp_path, imitating=NO_FCNTL)
    assert done.returncode == 0, done.stderr


def test_with_the_argparse_of_python_3_14_train_starts(tmp_path):
    done = python("train.py", "--help", cwd=tmp_path, imitating=ARGPARSE_3_14)
    assert done.returncode == 0, done.stderr
    assert "myrelu" in done.stdout
    done = python("train.py", "steps=2", cwd=tmp_path, imitating=ARGPARSE_3_14)
    assert done.returncode == 0, done.stderr


def test_the_imitated_argparse_is_what_stops_hydra(tmp_path):
    """Without the step around it Hydra does not start: the imitation is a true one."""
    code = "import hydra; hydra.main(config_path=None, version_base='1.3')(print)()"
    done = python("-c", code, cwd=tmp_path, imitating=ARGPARSE_3_14)
    assert "badly formed help string" in done.stderr

"""What stops a command is told to a person: one line, or the user's own lines."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import lab.errors
from lab.errors import UserError, errors_as_messages, user_traceback, users_lines
from tests.faulty import BackwardRaises, TwoGradients


def told(error: BaseException, capsys) -> tuple[int, str]:
    with pytest.raises(SystemExit) as end, errors_as_messages():
        raise error
    return end.value.code, capsys.readouterr().err


def raised(function: type[torch.autograd.Function]) -> RuntimeError:
    output = function.apply(torch.ones(2, 3, requires_grad=True))
    with pytest.raises(RuntimeError) as error:
        output.sum().backward()
    return error.value


@pytest.fixture
def ours(monkeypatch):
    """Count this file as code of the lab."""
    monkeypatch.setattr(lab.errors, "OURS", [*lab.errors.OURS, Path(__file__)])


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (UserError("steps=-1: too few"), (2, "error: steps=-1: too few\n")),
        (KeyboardInterrupt(), (130, "interrupted\n")),
    ],
)
def test_a_mistake_is_one_line_and_an_exit_code(capsys, error, says):
    assert told(error, capsys) == says


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (OSError(28, "No space left on device"), "error: No space left on device\n"),
        (OSError(13, "Permission denied", "a/b"), "error: a/b: Permission denied\n"),
    ],
)
def test_what_the_system_refuses_us_is_one_line(capsys, ours, error, says):
    assert told(error, capsys) == (2, says)


def test_ctrl_c_is_told_as_such_also_where_a_clean_up_failed_over_it(capsys):
    def compose() -> None:
        try:
            raise KeyboardInterrupt
        finally:
            raise UnboundLocalError("f")

    with pytest.raises(UnboundLocalError) as error:
        compose()
    assert told(error.value, capsys) == (130, "interrupted\n")


def test_what_the_system_refuses_the_users_code_is_told_with_its_line(capsys):
    code, err = told(OSError(2, "No such file or directory", "table"), capsys)
    assert code == 1
    assert err.splitlines()[1].startswith(f'  File "{__file__}", line ')


def test_the_traceback_starts_at_the_users_line(ours):
    error = raised(BackwardRaises)
    head, file, line, *_, last = user_traceback(error).splitlines()
    assert head == "Traceback (most recent call last):"
    assert "tests/faulty.py" in file
    assert line.strip() == "return grad_output.mm(grad_output)"
    assert last.startswith("RuntimeError: mat1 and mat2 shapes")
    assert users_lines(error) == user_traceback(error)


def test_what_autograd_refuses_is_told_with_the_last_line_of_ours(ours):
    error = raised(TwoGradients)
    head, _, line, *_, last = user_traceback(error).splitlines()
    assert head == "Traceback (most recent call last):"
    assert line.strip() == "output.sum().backward()"
    assert last.endswith("returned an incorrect number of gradients (expected 1, got 2)")
    assert users_lines(error) == ""

"""benchmarks/gpu.py, as far as a machine without a GPU can tell."""

from __future__ import annotations

import pytest
import torch

from benchmarks import gpu


def test_without_cuda_it_says_so_in_one_line(monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert gpu.main() == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1 and "CUDA" in said.err


def test_table_has_a_row_for_each_number():
    rates = {(64, 1000, 100, 10): (2500.0, 5000.0)}
    lines = gpu.table("A100", {"passed": 190, "failed": 1, "skipped": 2}, rates).splitlines()
    assert "| GPU | A100 |" in lines
    assert "| CUDA tests | 190 passed, 1 failed, 2 skipped |" in lines
    assert lines[-1] == (
        "| steps a second at 64x1000x100x10 | 2,500 on the CPU, 5,000 on the GPU (2 times) |"
    )


def test_outcomes_are_counted_once_a_test():
    def report(when: str, outcome: str) -> pytest.TestReport:
        return pytest.TestReport("a test", ("", 0, ""), {}, outcome, None, when)

    count = gpu.Count()
    for when, outcome in [
        ("setup", "passed"), ("call", "passed"), ("teardown", "passed"),
        ("setup", "skipped"), ("teardown", "passed"),
        ("setup", "failed"), ("teardown", "passed"),
    ]:  # fmt: skip
        count.pytest_runtest_logreport(report(when, outcome))
    assert count.outcomes == {"passed": 1, "skipped": 1, "failed": 1}

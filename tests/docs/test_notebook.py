"""docs/notebook.md: what it shows is what happens."""

from __future__ import annotations

import matplotlib
import pytest
from conftest import HOME
from pages import paste


@pytest.mark.slow
def test_notebook(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    matplotlib.use("Agg")  # draws without a screen
    assert paste((HOME / "docs/notebook.md").read_text(), monkeypatch) > 20
    assert {path.name for path in tmp_path.glob("outputs/*")} == {"first", "relu", "nn", "swish"}

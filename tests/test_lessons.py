"""What the lessons show is what an interpreter prints; each stands alone, after the imports."""

from __future__ import annotations

import pytest
from conftest import HOME
from pages import paste

IMPORTS, *CHAPTERS = (HOME / "lessons.md").read_text().split("\n## ")


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.splitlines()[0])
def test_lesson(chapter, monkeypatch):
    assert paste(f"{IMPORTS}\n{chapter}", monkeypatch) > 3  # the imports alone are 3


def test_the_contents_name_every_lesson():
    contents = [line for line in IMPORTS.splitlines() if "](#" in line]
    titles = [chapter.splitlines()[0].partition(". ")[2] for chapter in CHAPTERS]
    assert [line[line.index("[") + 1 : line.index("]")] for line in contents] == titles


def test_a_block_that_does_not_end_is_found(monkeypatch):
    with pytest.raises(AssertionError, match=r"needs a line with `\.\.\.`"):
        paste(">>> for n in range(2):\n...     print(n)\n0\n1\n", monkeypatch)
    with pytest.raises(AssertionError, match="instead of\n1"):
        paste(">>> 2\n1\n", monkeypatch)

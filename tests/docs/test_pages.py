"""Links lead somewhere, and commands name what exists, on every page of the project."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import HOME

PAGES = [HOME / "lessons.md", *(HOME / "docs").glob("*.md"), *HOME.glob("*/README.md")]


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub makes of the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(HOME)))
def test_every_link_leads_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        linked = page.parent / path if path else page
        assert linked.exists(), target
        assert not anchor or anchor in anchors(linked), target


def test_every_test_that_reliability_names_exists():
    text = (HOME / "docs/reliability.md").read_text()
    commands = re.findall(r"`(?:TRIES=100 )?R (?:\"([^\"]+)\"|(\w+))`", text)
    named = [("tests/test_reliability.py", several or one) for several, one in commands]
    named += [
        (path, (several or one).strip('"'))
        for path, several, one in re.findall(
            r"`pytest (?:-s )?(tests/\S+) -k (?:\"([^\"]+)\"|(\w+))`", text
        )
    ]
    assert len(named) > 25
    for path, words in named:
        tests = " ".join(re.findall(r"def (test_\w+)", (HOME / path).read_text()))
        for word in words.split(" or "):
            assert word in tests, f"{path} -k {word}"

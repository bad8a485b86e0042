"""What the lessons show is what is printed; each stands alone, after the common imports."""

import doctest
from pathlib import Path

import pytest
import torch

LESSONS = Path(__file__).parent.parent / "lessons.md"
# To doctest the fence after an output is a blank line, which ends it.
IMPORTS, *CHAPTERS = LESSONS.read_text().replace("```", "").split("\n## ")


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.splitlines()[0])
def test_lesson(chapter):
    test = doctest.DocTestParser().get_doctest(
        f"{IMPORTS}\n{chapter}", {}, chapter.splitlines()[0], str(LESSONS), 0
    )
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS  # long outputs are wrapped
    runner = doctest.DocTestRunner(optionflags=flags)
    with torch.random.fork_rng():
        runner.run(test)
    assert runner.failures == 0
    assert runner.tries > 3  # the imports alone


def test_the_contents_name_every_lesson():
    contents = [line for line in IMPORTS.splitlines() if "](#" in line]
    titles = [chapter.splitlines()[0].partition(". ")[2] for chapter in CHAPTERS]
    assert [line[line.index("[") + 1 : line.index("]")] for line in contents] == titles

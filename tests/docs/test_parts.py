"""docs/parts.md: the files that it shows, written where it says, train."""

import re
import shutil

from conftest import HOME, command

PAGE = (HOME / "docs/parts.md").read_text()


def test_the_three_parts_train_together(tmp_path):
    project = tmp_path / "project"
    shutil.copytree(
        HOME, project, ignore=shutil.ignore_patterns("outputs", ".*", "tests", "__pycache__")
    )
    files = re.findall(r"`([\w/]+\.(?:py|yaml))`[^`]*```\w+\n(.*?)```", PAGE, flags=re.DOTALL)
    assert len(files) == 5
    for name, content in files:
        (project / name).write_text(content)
    (typed,) = re.findall(r"python (train\.py .*)", PAGE)
    done = command(*typed.split(), cwd=project, home=project)
    assert done.returncode == 0, done.stderr
    first, last = map(float, re.findall(r"loss (\S+) at step 0, (\S+) at", done.stdout)[0])
    assert last < 0.1 * first

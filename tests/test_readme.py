"""What the README says, done."""

from __future__ import annotations

import re
import shutil

import pytest
from conftest import HOME, command, composed

from tests.typed import typed

README = (HOME / "README.md").read_text()


def block(language: str, containing: str) -> str:
    """The fenced block of that language with that text, without the indent of its list."""
    blocks = re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)
    (found,) = [text for text in blocks if containing in text]
    return "\n".join(line.removeprefix("   ") for line in found.splitlines()) + "\n"


def test_the_two_commands_stand_as_they_were_agreed():
    assert "\npip install -r requirements.txt && python train.py function=myrelu\n" in README
    assert "\npip install -r requirements-dev.txt && pytest\n" in README


def test_adding_a_function(tmp_path):
    project = tmp_path / "project"
    shutil.copytree(
        HOME, project, ignore=shutil.ignore_patterns("outputs", ".*", "tests", "__pycache__")
    )
    (project / "functions/swish.py").write_text(block("python", "class Swish"))
    (project / "conf/function/swish.yaml").write_text(block("yaml", "swish.Swish"))
    done = command("check.py", "Swish", cwd=project, home=project)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Swish: exact\n")
    done = command("train.py", "function=swish", cwd=project, home=project)
    assert done.returncode == 0, done.stderr
    assert "run: outputs/swish_manual_sgd_cpu_" in done.stdout


# swish is written above; a word in capitals stands for the reader's own.
COMMANDS = {
    line
    for line in re.findall(r"python train\.py ([^`\n|]*[^`\n|\s=])", README)
    if not re.search(r"swish|experiment$|[A-Z]{3}|--help", line)
}


@pytest.mark.parametrize("line", sorted(COMMANDS))
def test_every_training_command_runs(tmp_path, line):
    with typed(*line.split(), "steps=3", "data.features=9", cwd=tmp_path) as run:
        assert run.wait() == 0, run.err


def test_every_key_of_the_table_has_the_default_that_it_says():
    values = re.search(r"\| values \| `([^`]*)`", README)[1].split()
    defaults, _ = composed()
    given, _ = composed(*values)
    assert given == defaults


def test_every_choice_named_exists():
    for group in ("function", "optimizer", "data"):
        row = re.search(rf"\| `{group}` \| (.*) \|", README)[1]
        for name in re.findall(r"`([a-z_]+)`", row):
            if name not in ("mm", "clamp"):
                assert (HOME / "conf" / group / f"{name}.yaml").is_file(), name
    for name in re.findall(r"^\| \[`(\w+)`\]", README, re.MULTILINE):
        assert (HOME / "conf/experiment" / f"{name}.yaml").is_file(), name
    for path in (HOME / "conf/experiment").glob("*.yaml"):
        assert f"[`{path.stem}`]" in README


def test_every_link_leads_somewhere():
    for file in (*HOME.glob("*.md"), *HOME.glob("docs/*.md"), *HOME.glob("*/README.md")):
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", file.read_text()):
            assert target.startswith("https://") or (file.parent / target).exists(), (file, target)

"""What the README says, done."""

from __future__ import annotations

import re
import shutil

import pytest
from conftest import HOME, command, composed, config_of

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
    for line in re.findall(r"python train\.py ([^`\n]*)", README)
    if not re.search(r"swish|[A-Z]{3}", line)
}


@pytest.mark.parametrize("line", sorted(COMMANDS))
def test_every_training_command_composes(line):
    overrides = [word for word in line.split() if word not in ("-m", "--help")]
    # A list, as of a sweep, stands for its first element here.
    config_of(*[re.sub(r",.*", "", word) for word in overrides])


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
    for name in re.findall(r"`(\w+)` ·|· `(\w+)`", README):
        assert (HOME / "conf/experiment" / f"{''.join(name)}.yaml").is_file(), name


def test_every_link_leads_somewhere():
    for path in ("README.md", "lessons.md", "outputs/README.md", "exercises/README.md"):
        file = HOME / path
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", file.read_text()):
            assert (file.parent / target).exists(), f"{path}: {target}"

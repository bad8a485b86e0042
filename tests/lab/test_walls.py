"""The walls of the house: who may import whom (lab/README.md)."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from conftest import HOME

WINGS = ("checking", "course", "recording", "comparing", "composing")
HALL = {path.stem for path in (HOME / "lab").glob("*.py")}
MAY_IMPORT = {
    "checking": set(),
    "course": {"checking"},
    "recording": set(),
    "comparing": {"recording"},
    "composing": {"comparing", "recording"},
}
LEARNERS = ("functions", "models", "datasets", "optimizers", "exercises")
FILES = sorted(
    path for folder in ("lab", "benchmarks", *LEARNERS) for path in (HOME / folder).rglob("*.py")
) + [HOME / f"{name}.py" for name in ("train", "check", "compare")]


def imports(source: str) -> set[str]:
    """The lab's modules that a file imports, anywhere in it: `lab.recording.run`."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in found if name.partition(".")[0] == "lab"}


def public(wing: str) -> list[str]:
    (value,) = (
        node.value
        for node in ast.parse((HOME / "lab" / wing / "__init__.py").read_text()).body
        if isinstance(node, ast.Assign)
    )
    return ast.literal_eval(value)


def broken_walls(path: Path, source: str) -> list[str]:
    """Each import in a file that goes through a wall."""
    place = path.relative_to(HOME).parts
    inside = place[1] if place[0] == "lab" and place[1] in WINGS else None
    broken = []
    for name in sorted(imports(source)):
        _, wing, module, *_ = [*name.split("."), "", ""]
        if place[0] in LEARNERS:
            broken.append(f"{name}: a learner's file imports nothing of the lab")
        elif wing not in WINGS or wing == inside:
            continue
        elif place[0] == "lab" and inside is None:
            broken.append(f"{name}: the hall imports no wing")
        elif inside and wing not in MAY_IMPORT[inside]:
            broken.append(f"{name}: {inside} may not import {wing}")
        elif module and module not in public(wing):
            broken.append(f"{name}: {module} is not public in lab/{wing}/__init__.py")
    return broken


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(HOME)))
def test_no_import_goes_through_a_wall(path):
    assert broken_walls(path, path.read_text()) == []


@pytest.mark.parametrize("wing", WINGS)
def test_what_is_public_exists_and_is_explained(wing):
    docstring = ast.get_docstring(ast.parse((HOME / "lab" / wing / "__init__.py").read_text()))
    for module in public(wing):
        assert (HOME / "lab" / wing / f"{module}.py").exists()
        assert module in docstring


@pytest.mark.parametrize(
    ("file", "line", "wall"),
    [
        ("functions/myrelu.py", "import lab.errors", "a learner's file imports nothing"),
        ("lab/files.py", "from lab.recording.run import Run", "the hall imports no wing"),
        ("lab/checking/check.py", "from lab.recording import run", "checking may not import"),
        ("lab/recording/run.py", "from lab.comparing.table import table", "may not import"),
        ("compare.py", "from lab.recording.events import EventFile", "events is not public"),
        ("train.py", "def f():\n    import lab.recording.curve", "curve is not public"),
    ],
)
def test_a_broken_wall_is_found(file, line, wall):
    (broken, *_) = broken_walls(HOME / file, line)
    assert wall in broken

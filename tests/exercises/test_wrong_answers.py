"""Wrong answers: is each told what it does, and nothing untrue?"""

import ast
import re
from dataclasses import replace

import pytest
from answers import typed

from lab.course.answers import judge
from lab.course.exercise import every_exercise

COURSE = {exercise.name: exercise for exercise in every_exercise()}


def typical_wrong_answers():
    """Exercise, name and sentence of each typical wrong answer that the solutions know."""
    for name, exercise in COURSE.items():
        tree = ast.parse(exercise.solution.read_text())
        public = [s for s in tree.body if not getattr(s, "name", "_").startswith("_")]
        for statement in public[1:]:
            if isinstance(statement, ast.ClassDef) or statement.name.startswith(f"{name}_"):
                yield name, statement.name, " ".join(ast.get_docstring(statement).split())


def handed_in(name, wrong, folder):
    """A file in which this typical wrong answer has the name of the right one."""
    exercise = COURSE[name]
    source, defines = exercise.solution.read_text(), exercise.defines
    if defines == name:  # a plain function, which the wrong one may call
        source = re.sub(rf"(?<![.\w]){name}(?=\()", "_right", source)
        source += f"\n\n{name} = {wrong}\n"
    else:
        source += f"\n\nclass {defines}({wrong}):\n    pass\n"
    file = folder / exercise.file.name
    file.write_text(source)
    return replace(exercise, file=file)


@pytest.mark.parametrize(("name", "wrong", "sentence"), list(typical_wrong_answers()))
def test_a_typical_wrong_answer_gets_its_own_sentence(name, wrong, sentence, tmp_path):
    verdict, _ = judge(handed_in(name, wrong, tmp_path), secret=0)
    assert verdict.verdict == "wrong"
    assert verdict.findings[0].text == sentence


# ---- Not typical enough for a sentence of its own, but the learner must hear what is wrong -----

# Exercise, what is typed, the kind of the finding.
OTHERS = [
    ("scale", "return grad_output * ctx.factor", "number of gradients"),
    ("scale", "return torch.full_like(grad_output, ctx.factor), None", "ignores grad_output"),
]


@pytest.mark.parametrize(("name", "body", "kind"), OTHERS)
def test_another_wrong_answer_is_named(name, body, kind, tmp_path):
    exercise = replace(COURSE[name], file=typed(name, (body,), tmp_path))
    verdict, _ = judge(exercise, secret=0)
    assert not verdict.as_declared
    assert kind in verdict.kinds

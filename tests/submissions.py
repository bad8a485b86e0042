"""A class that hands in three exercises, with all that can go wrong, and the mark each deserves."""

from __future__ import annotations

import re
from pathlib import Path

from lab.course.exercise import Exercise, every_exercise

COURSE = {exercise.name: exercise for exercise in every_exercise()}
NAMES = ("relu", "row_sum", "softmax")
WRONG = "return grad_output"
FORGED = """
import lab.course.answers
from lab.checking.verdict import Verdict
lab.course.answers._judged = lambda name, *rest: Verdict(name)
"""
FORGED_FILE = """
import json, os, sys
frame = sys._getframe()
while "folder" not in frame.f_locals:
    frame = frame.f_back
verdict = {"name": "ReLU", "verdict": "exact", "findings": [], "kinks": []}
answer = {"how": "returned", "value": [verdict, []]}
(frame.f_locals["folder"] / "answer.json").write_text(json.dumps(answer))
os._exit(0)
"""
PATCHED = """
from lab.checking.verdict import Verdict
Verdict.as_declared = property(lambda self: True)
"""
# What is odd about the file for relu: its name, code above the class, the body of backward, and the
# mark. None for the name: no file.
ODD = [
    (None, "", "", "missing"),
    ("e04_relu.py", "", "while True: pass", "timed out"),
    ("e04_relu.py", "", "while True: print('again')", "timed out"),
    ("e04_relu.py", "", "import ctypes; ctypes.string_at(0)", "crashed"),
    ("e04_relu.py", "", "import os; os._exit(0)", "crashed"),
    ("e04_relu.py", "import atexit, os; atexit.register(os._exit, 0)", WRONG, "wrong"),
    ("e04_relu.py", "", "import sys; sys.exit(0)", "cannot run"),
    ("e04_relu.py", FORGED, WRONG, "forged"),
    ("e04_relu.py", FORGED_FILE, WRONG, "forged"),
    ("e04_relu.py", PATCHED, WRONG, "wrong"),
    ("e04_relu.py", "class ReLU(", WRONG, "cannot run"),
    ("e04_relu.py", "", "raise NotImplementedError", "not started"),
    ("e07_relu.py", "", "return grad_output * (x > 0)", "solved"),
    ("e3_relu (1).py", "", "return grad_output * (x > 0)", "solved"),
    ("e04_rleu.py", "", "return grad_output * (x > 0)", "solved"),
    ("relu.py", "", WRONG, "wrong"),
    ("homework.py", "", "return grad_output * (x > 0)", "solved"),
]


def written(exercise: Exercise, body: str) -> str:
    """The exercise as shipped, with a body in place of what is to be written."""
    return re.sub("raise NotImplementedError.*", lambda _: body, exercise.file.read_text())


def hand_in(
    folder: Path, students: int, names: tuple[str, ...] = NAMES, odd: list[tuple] = ODD
) -> dict[str, dict[str, str]]:
    """Write the answers of a class, one folder a student, and return the marks they deserve."""
    marks = {}
    for i in range(students):
        own = folder / f"student{i:02}"
        own.mkdir(parents=True)
        row = marks[own.name] = {}
        for name in names:
            exercise = COURSE[name]
            right = i % 3 != names.index(name)
            source = exercise.solution.read_text() if right else written(exercise, WRONG)
            file, row[name] = exercise.file.name, "solved" if right else "wrong"
            if name == "relu" and i < len(odd):
                file, above, body, row[name] = odd[i]
                source = above + "\n" + written(exercise, body)
            if file:
                (own / file).write_text(source)
    if students > len(odd):  # one more file, which nobody can recognise
        (own / "e04_something.py").write_text("x = 1")
    return marks

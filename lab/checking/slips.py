"""The usual slips to which PyTorch answers with a riddle, a sentence each."""

from __future__ import annotations

import inspect
import linecache
import re
import traceback
from types import FrameType
from typing import Any

from lab.checking.users_code import Crash
from lab.checking.verdict import Finding, finding, say
from lab.errors import UserError

# The start of PyTorch's or Python's message, and the key of what it means.
OF_FORWARD = {
    "save_for_backward can only save": "save tensors",
    "setup_context() takes": "arguments of setup_context",
}


def explain_crash(target: Any, crash: Crash) -> Finding:
    """What the error means, where it is a usual slip; else the error itself."""
    message = str(crash.error).strip()
    if isinstance(crash.error, UserError):
        return Finding("declaration" if crash.kind == "crash" else crash.kind, message)
    if isinstance(crash.error, NotImplementedError) and not message:
        last = traceback.extract_tb(crash.error.__traceback__)[-1]
        return finding("not written", line=last.lineno, method=last.name)
    if message.startswith("Legacy autograd function"):
        return finding("not static")
    words = next((say(key) for start, key in OF_FORWARD.items() if message.startswith(start)), "")
    frame, line = _in_backward(target, crash.error)
    if frame is not None and not words:
        words = _saved_tensors(frame, line, message) or _in_words(target, message)
    words = words or _arguments(crash.error) or _other_dtype(message)
    return Finding(crash.kind, f"{crash.told.rstrip('.')}. {words}".strip(), words)


def _saved_tensors(frame: FrameType, line: str, message: str) -> str:
    counts = re.match(r"not enough values to unpack \(expected (\d+), got (\d+)\)", message)
    if counts and "saved_tensors" in line:
        if frame.f_code.co_name == "jvp" and counts[2] == "0":
            return say("too few saved for jvp", wanted=counts[1])
        return say("too few saved", wanted=counts[1], saved=counts[2])
    if message.startswith("too many values to unpack") and "saved_tensors" in line:
        return say("too many saved")
    try:
        source = inspect.getsource(frame.f_code)
    except OSError:
        return ""
    for name in re.findall(r"^\s*(\w+)\s*=\s*ctx\.saved_tensors\s*(?:#.*|;.*)?$", source, re.M):
        if isinstance(frame.f_locals.get(name), tuple) and re.search(rf"\b{name}\b", line):
            return say("no comma", name=name)
    return ""


def _in_words(target: Any, message: str) -> str:
    if "does not require grad and does not have a grad_fn" in message:
        return say("enable_grad")
    methods = [getattr(target, name, None) for name in ("forward", "setup_context")]
    names = [getattr(getattr(method, "__code__", None), "co_names", ()) for method in methods]
    if "None" in message and any("set_materialize_grads" in some for some in names):
        return say("None as grad_output")
    return ""


def _arguments(error: BaseException) -> str:
    message, called = str(error), traceback.extract_tb(error.__traceback__)
    counts = re.search(r"\(\) takes (\d+) positional arguments? but (\d+)", message)
    # PyTorch calls both methods from an `apply`.
    if not counts or "forward()" in message or called[-1].name != "apply":
        return ""
    return say("arguments of backward", count=counts[2])


def _other_dtype(message: str) -> str:
    two = re.search(r"[Ff]loat\b|float32", message) and re.search(r"[Dd]ouble|float64", message)
    if two or re.search(r"dtype.*(equal|same|match).*dtype", message):
        return say("the check gives float64")
    return ""


def _in_backward(target: Any, error: BaseException) -> tuple[FrameType | None, str]:
    """The frame of the user's backward or jvp that raised, and its line."""
    methods = [getattr(target, name, None) for name in ("backward", "vjp", "jvp")]
    codes = [getattr(inspect.unwrap(method), "__code__", None) for method in methods if method]
    steps = [step for step in traceback.walk_tb(error.__traceback__) if step[0].f_code in codes]
    if not steps:
        return None, ""
    frame, number = steps[-1]
    return frame, linecache.getline(frame.f_code.co_filename, number)

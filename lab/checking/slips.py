"""The usual slips to which PyTorch answers with a riddle, a sentence each."""

from __future__ import annotations

import inspect
import re
import traceback
from types import FrameType
from typing import Any

from lab.checking.users_code import Crash
from lab.checking.verdict import Finding
from lab.errors import UserError


def explain_crash(target: Any, crash: Crash) -> Finding:
    """What the error means, where it is a usual slip; else the error itself."""
    if isinstance(crash.error, UserError):
        kind = "declaration" if crash.kind == "crash" else crash.kind
        return Finding(kind, str(crash.error).strip())
    if isinstance(crash.error, NotImplementedError) and not str(crash.error).strip():
        where = traceback.extract_tb(crash.error.__traceback__)[-1]
        text = f"Line {where.lineno}, in {where.name}, still raises NotImplementedError."
        return Finding("not written", text)
    if str(crash.error).startswith("Legacy autograd function"):
        text = (
            "An instance of a Function is called, or a method has no @staticmethod; PyTorch says "
            "the same to both. Write MyFunction.apply(x), never MyFunction()(x)."
        )
        return Finding("not static", text)
    for slip in (_saved_tensors, _no_graph, _no_grad_output, _arguments, _other_dtype):
        if sentence := slip(target, crash.error):
            return Finding(crash.kind, f"{crash.told}. {sentence}".replace("..", "."), sentence)
    return Finding(crash.kind, crash.told)


def _saved_tensors(target: Any, error: BaseException) -> str:
    frame, line = _in_backward(target, error)
    if frame is None:
        return ""
    unpacked = re.match(r"not enough values to unpack \(expected (\d+), got (\d+)\)", str(error))
    if unpacked and "saved_tensors" in line:
        wanted, saved = unpacked.groups()
        return f"forward saved {saved} tensors, and this line takes {wanted}: save each of them."
    if str(error).startswith("too many values to unpack") and "saved_tensors" in line:
        return "forward saved more tensors than this line takes."
    try:
        source = inspect.getsource(frame.f_code)
    except OSError:
        return ""
    for name in re.findall(r"^\s*(\w+)\s*=\s*ctx\.saved_tensors\s*(?:#.*|;.*)?$", source, re.M):
        if isinstance(frame.f_locals.get(name), tuple) and re.search(rf"\b{name}\b", line):
            return (
                f"ctx.saved_tensors is a tuple, also of one tensor. Write ({name},) = "
                "ctx.saved_tensors, with the comma."
            )
    return ""


def _no_graph(target: Any, error: BaseException) -> str:
    frame, _ = _in_backward(target, error)
    if frame is None or "does not require grad and does not have a grad_fn" not in str(error):
        return ""
    return (
        "Autograd records nothing inside backward. Compute what you differentiate there below "
        "`with torch.enable_grad():`."
    )


def _no_grad_output(target: Any, error: BaseException) -> str:
    frame, _ = _in_backward(target, error)
    methods = [getattr(target, name, None) for name in ("forward", "setup_context")]
    codes = [getattr(method, "__code__", None) for method in methods]
    told = any(code and "set_materialize_grads" in code.co_names for code in codes)
    if frame is None or not told or "None" not in str(error):
        return ""
    return (
        "After ctx.set_materialize_grads(False), backward gets None for an output that nobody "
        "used. Test for None."
    )


def _arguments(target: Any, error: BaseException) -> str:
    counted = re.search(r"\(\) takes (\d+) positional arguments? but (\d+)", str(error))
    called = [step.name for step in traceback.extract_tb(error.__traceback__)]
    if not counted or called[-1] != "apply":  # PyTorch calls backward from there
        return ""
    return (
        "backward gets ctx and one grad_output for each output of forward: here that is "
        f"{counted[2]} arguments, ctx being the first."
    )


def _other_dtype(target: Any, error: BaseException) -> str:
    words = str(error)
    two = re.search(r"[Ff]loat\b|float32", words) and re.search(r"[Dd]ouble|float64", words)
    if not two and not re.search(r"dtype.*(equal|same|match).*dtype", words):
        return ""
    return (
        "The check gives float64. Make new tensors in the dtype of the input: torch.zeros_like(x), "
        "or dtype=x.dtype."
    )


def _in_backward(target: Any, error: BaseException) -> tuple[FrameType | None, str]:
    """The frame of the user's backward that raised, and its line."""
    methods = [getattr(target, name, None) for name in ("backward", "vjp")]
    codes = [getattr(inspect.unwrap(method), "__code__", None) for method in methods if method]
    step, found = error.__traceback__, None
    while step is not None:
        if step.tb_frame.f_code in codes:
            found = step
        step = step.tb_next
    if found is None:
        return None, ""
    return found.tb_frame, traceback.extract_tb(found, limit=1)[0].line or ""

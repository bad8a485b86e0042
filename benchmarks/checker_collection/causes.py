"""What each kind of mistake is, and which claims of a verdict about its cause are true.

A claim is what a finding says about the cause. `claim_of` reads it off the kind of the finding,
and where one kind covers several causes, off its text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

# Kind of mistake: its cause in words, and the claims that are true of it.
KINDS: dict[str, tuple[str, set[str]]] = {
    "None not handled": (
        "backward uses the gradient of an output that nobody used, which is None",
        {"None as grad_output", "error"},
    ),
    "all zero": ("backward returns zeros", {"zero"}),
    "assumes symmetry": ("the formula holds for symmetric matrices only", set()),
    "constant factor": ("a constant factor is missing or extra", {"factor", "mean or sum"}),
    "constant factor in one term": ("one term of a sum has a wrong constant factor", set()),
    "constant statistics": (
        "mean and deviation are taken for constants; they depend on the input",
        {"statistics"},
    ),
    "copied": ("two gradients are the same by copy and paste", {"of another input"}),
    "depends on another gradient": (
        "one gradient needs another that is not always computed",
        {"needs_input_grad", "error", "None as grad_output", "outputs not added"},
    ),
    "drawn again": ("backward draws another mask than forward", {"random"}),
    "edits grad_output": ("backward changes grad_output in place", {"edits grad_output"}),
    "edits the input": ("forward changes its input in place", {"edits input"}),
    "edits what was saved": (
        "backward changes a saved tensor in place",
        {"edits saved", "edits input", "second call", "error"},
    ),
    "elementwise for matrix product": ("elements are multiplied instead of matrices", set()),
    "enable_grad missing": (
        "autograd.grad in backward without torch.enable_grad()",
        {"enable_grad", "error"},
    ),
    "endless loop": ("a loop of forward never ends", {"time limit"}),
    "extra conj": ("a conj() too much", {"conj"}),
    "extra factor": ("a factor that varies is extra", set()),
    "float32": ("numbers are computed in float32 though the input is float64", {"dtype"}),
    "ignores a parameter": (
        "backward uses a fixed number where forward uses a parameter",
        {"ignores a parameter", "factor", "mean or sum"},
    ),
    "ignores grad_output": (
        "backward does not multiply by grad_output",
        {"ignores grad_output", "not linear"},
    ),
    "inputs not unpacked": ("setup_context uses the tuple of inputs as one tensor", {"error"}),
    "inverse permutation": (
        "the permutation is applied once more where it must be undone",
        {"permutation"},
    ),
    "kept on ctx": (
        "a tensor that forward computed is kept, a constant to the second derivative",
        {"kept for the second derivative", "keeps memory"},
    ),
    "layout": ("backward assumes that grad_output is contiguous", {"layout"}),
    "list returned": ("backward returns a list, not a tuple", {"list returned", "error", "number"}),
    "mark_dirty missing": (
        "forward works in place and does not say so correctly",
        {"mark_dirty", "edits input", "error"},
    ),
    "mask from grad_output": (
        "the mask is taken from grad_output",
        {"mask from grad_output", "not linear"},
    ),
    "mask from the output": (
        "the mask is taken from the output, whose sign differs from that of the input",
        {"mask from output"},
    ),
    "mean for sum": (
        "a mean, or a division by a size, where a sum is right",
        {"mean or sum", "factor"},
    ),
    "missing conj": ("a conj() is missing", {"conj"}),
    "missing factor": ("a factor that varies is missing", {"missing factor"}),
    "missing gradient": ("None is returned for an input that needs a gradient", {"zero"}),
    "missing minus": ("the sign is wrong", {"sign"}),
    "missing permutation": ("the order that forward changed is not undone", {"permutation"}),
    "missing return": ("backward returns None, for a missing return", {"missing return", "zero"}),
    "missing term": ("one term of a sum is missing", {"missing term"}),
    "needs_input_grad": (
        "needs_input_grad of the wrong input is asked",
        {"needs_input_grad", "zero", "error"},
    ),
    "no mask": ("backward lets the gradient through where forward is flat", {"no mask"}),
    "not detached": (
        "tensors that need no gradient are differentiated anew",
        {"needs_input_grad", "error", "not detached"},
    ),
    "not finite at zero": ("backward divides 0 by 0", {"not finite"}),
    "not linear in grad_output": ("backward is not linear in grad_output", {"not linear"}),
    "not transposed": (
        "a factor must be transposed and is not",
        {"error", "shape", "permutation", "transposed"},
    ),
    "nothing saved": ("save_for_backward is missing", {"nothing saved", "error"}),
    "number of gradients": (
        "backward returns too few or too many gradients",
        {"number", "wrong input", "swapped"},
    ),
    "off by one": ("an index or a size is off by one", {"factor", "mean or sum"}),
    "one grad_output of two": ("backward takes too few grad_outputs", {"number", "error"}),
    "one part only": ("the gradient of one part of the batch only", {"missing sum"}),
    "overflow": ("exp overflows to inf for large values", {"not finite"}),
    "overwrites instead of adding": (
        "a gradient is overwritten where it must be added to",
        {"overwrites", "outputs not added", "ties"},
    ),
    "real part only": ("the imaginary part is lost", {"conj"}),
    "saved in another order": (
        "tensors are saved in another order than they are read",
        {"swapped", "of another input"},
    ),
    "saved the wrong tensor": (
        "another tensor is saved than backward's formula needs",
        {"output for input"},
    ),
    "saved_tensors not unpacked": (
        "saved_tensors is a tuple even of one: (x,) = ctx.saved_tensors",
        {"not unpacked", "error"},
    ),
    "second derivative cut": (
        "detach() or NumPy hides the way from the second derivative",
        {"kept for the second derivative"},
    ),
    "sign of one term": ("one term of a sum has the wrong sign", set()),
    "state on the class": ("something is kept on the class", {"shared state"}),
    "sum for mean": ("the division by a size is missing", {"mean or sum", "factor"}),
    "swapped": ("two gradients, or their two halves, are exchanged", {"swapped"}),
    "swapped grad_outputs": ("the gradients of two outputs are exchanged", {"swapped"}),
    "tensors inside a tuple": (
        "autograd looks at tensors among the arguments, not inside a tuple",
        {"tuple of tensors"},
    ),
    "ties": ("each element of a tie gets the whole gradient", {"ties"}),
    "transposed": ("a gradient is the transpose of the right one", {"transposed"}),
    "value at the kink": ("at a kink, neither one-sided slope nor a number between", {"kink"}),
    "wrong dimension": (
        "a sum, or a softmax, runs over the wrong dimension",
        {"wrong dimension", "shape", "error"},
    ),
    "wrong formula": ("the formula is wrong", {"reciprocal"}),
    "wrong jvp": ("jvp is not the derivative of forward", {"jvp"}),
    "wrong mask": ("the mask is another one than that of forward", {"wrong mask"}),
    "wrong order of elements": ("elements are in the wrong order", {"permutation"}),
    "wrong order of factors": (
        "the factors of a matrix product are exchanged",
        {"error", "shape", "transposed"},
    ),
    "wrong order of gradients": (
        "gradients are returned in another order than the inputs",
        {"swapped", "of another input", "zero", "wrong input", "shape"},
    ),
    "wrong parentheses": (
        "one of two terms is not multiplied by grad_output",
        {"not linear", "ignores grad_output"},
    ),
    "wrong power": ("a power is wrong", {"reciprocal"}),
    "wrong shape": ("the gradient has not the shape of its input", {"shape", "missing sum"}),
    "wrong size in a mean": ("the size that a mean divides by is wrong", {"mean or sum", "factor"}),
    "wrong vmap": ("the rule for vmap is wrong", {"vmap"}),
}

# What a finding says of the cause, as a pattern of "kind: text", and the claim that this is. The
# first that fits counts, so the particular stand before the general.
_CLAIMS = {
    r"^constant factor: .*-1 times": "sign",
    r"^constant factor: .*mean": "mean or sum",
    r"^constant factor": "factor",
    r"^wrong value: .*transposed Jacobian": "permutation",
    r"^wrong value: .*passes grad_output on": "missing factor",
    r"^wrong value: .*at forward's output": "output for input",
    r"^wrong value: .*1 / the correct": "reciprocal",
    r"^wrong value: .*equal to the correct gradient for": "of another input",
    r"^(wrong value|wrong gradient|gradcheck|declaration|no inputs found|wrong far from zero)": "",
    r"^no mask": "no mask",
    r"^mask from the output": "mask from output",
    r"^wrong mask": "wrong mask",
    r"^flat forward": "surrogate",
    r"^not linear: .*several outputs": "outputs not added",
    r"^(not linear|used twice)": "not linear",
    r"^ignores grad_output": "ignores grad_output",
    r"^(all zero|no gradient)": "zero",
    r"^transposed": "transposed",
    r"^wrong dimension": "wrong dimension",
    r"^swapped": "swapped",
    r"^not finite": "not finite",
    r"^(dtype|float32)": "dtype",
    r"^edits grad_output": "edits grad_output",
    r"^edits a saved": "edits saved",
    r"^edits": "edits input",
    r"^mark_dirty": "mark_dirty",
    r"^shared state": "shared state",
    r"^second call": "second call",
    r"^number of gradients": "number",
    r"^no tensor": "list returned",
    r"^gradient for a number": "wrong input",
    r"^shape": "shape",
    r"^not contiguous": "layout",
    r"^(second derivative|memory)": "kept for the second derivative",
    r"^needs_input_grad": "needs_input_grad",
    r"^tensors in a tuple": "tuple of tensors",
    r"^repeated index": "overwrites",
    r"^(jvp|vmap|kink|ties)": r"\1",
    r"^no conj": "conj",
    r"^not deterministic": "random",
    r"^timed out": "time limit",
    r"^(crash|bypassed|no output)": "error",
}
# What is seen rather than concluded: never false, but not the cause of every mistake.
_FACTS = {"error", "shape", "not finite", "zero", "number", "missing factor", "wrong input"}


def claim_of(kind: str, text: str) -> str | None:
    """What a finding claims about the cause; "" for nothing, None if its kind is unknown here.

    >>> claim_of("no mask", "Forward is flat there."), claim_of("wrong value", "Work it out again.")
    ('no mask', '')
    """
    for pattern, claim in _CLAIMS.items():
        if match := re.match(pattern, f"{kind}: {text}", re.DOTALL):
            return match.expand(claim)
    return None


def judge(mistake_kind: str, findings: Iterable[tuple[str, str]]) -> str:
    """Whether the cause of a mistake is "named true", "named false", "not named" or "unknown".

    A cause is named true if all findings that claim something of it claim what is true.
    """
    claims = {claim_of(kind, text) for kind, text in findings}
    if None in claims:
        return "unknown"
    true = KINDS[mistake_kind][1]
    named = claims - {""} - (_FACTS - true)
    if not named:
        return "not named"
    return "named true" if named <= true else "named false"

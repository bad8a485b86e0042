"""Is this backward the derivative of this forward? One verdict on one Function, in words.

PyTorch's `gradcheck` and `gradgradcheck` decide. What is added here is the choice of inputs, what
those two do not look at (edits, state, order of calls), and the explanation: which gradient is
wrong, where, by how much, and what the usual cause is.

A Function may declare, as static methods and attributes of its class, all of them optional:

    sample_inputs()    a list of tuples of arguments, where the formula is defined and smooth
    kink_inputs()      the same, where it is not differentiable
    surrogate(*args)   the function that backward is the derivative of, on purpose
    mistake = "kind"   wrong, on purpose; the kind of finding expected
"""

from __future__ import annotations

import inspect
import itertools
import textwrap
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.autograd.gradcheck import GradcheckError

from lab.checking.jacobians import (
    JUMP,
    RTOL,
    Finding,
    Kink,
    analytic_jacobians,
    differ,
    difference_quotients,
    explain,
    gradients,
    kinks_among,
    largest_error,
    parted,
    place,
    same,
    worst,
)
from lab.checking.samples import (
    Case,
    declared_inputs,
    flipped,
    has_setup_context,
    is_float,
    not_contiguous,
    samples_of,
)
from lab.checking.users_code import Crash, users_code
from lab.errors import UserError, one_line, users_lines


@dataclass
class Verdict:
    """What was found out about one Function.

    Args:
        name: the name of the Function.
        verdict: "exact", "wrong", "surrogate", "kink" (nothing but kinks was sampled), or
            "cannot run".
        declared: what its author declares it to be: "exact", "surrogate", or "wrong".
        mistake: the kind of finding that its author declares, or None.
        findings: what is wrong; empty for an exact Function.
        kinks: points without a derivative; never wrong.
        notes: what is worth knowing and not wrong.
        inputs: the arguments that were tried, a line each.
        largest_error: largest difference between backward and the difference quotient of forward
            in any element; None where it could not be computed.
        second_derivative: "right", "refused" (`once_differentiable`), "raises", "wrong", or "-".
        vmap: whether it works under `torch.func.vmap` and `torch.func.grad`.
        vmap_reason: why not, or an empty string.
        users_lines: the traceback of a fault in the Function's own code, starting there; of a fault
            in the check, all of it.
    """

    name: str
    verdict: str = "exact"
    declared: str = "exact"
    mistake: str | None = None
    findings: list[Finding] = field(default_factory=list)
    kinks: list[Kink] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    largest_error: float | None = None
    second_derivative: str = "-"
    vmap: bool = False
    vmap_reason: str = ""
    users_lines: str = ""

    @property
    def kinds(self) -> list[str]:
        """The kinds of all findings, in order."""
        return [finding.kind for finding in self.findings]

    @property
    def words(self) -> str:
        """The verdict in a few words: "exact, kink" or "wrong (no mask)"."""
        if self.kinds:
            kind = self.mistake if self.mistake in self.kinds else self.kinds[0]
            return f"{self.verdict} ({kind})"
        return f"{self.verdict}, kink" if self.kinks and self.verdict != "kink" else self.verdict

    @property
    def as_declared(self) -> bool:
        """Whether the Function is what its author declares it to be."""
        if self.mistake is not None:
            return self.verdict == "wrong" and self.mistake in self.kinds
        if self.declared == "surrogate":
            return self.verdict == "surrogate"
        return self.verdict in ("exact", "kink")

    def report(self, width: int = 80) -> str:
        """All of it for a reader, in lines of at most `width` characters but for `users_lines`."""
        paragraphs = [finding.text for finding in self.findings]
        if not self.findings:
            of = "the surrogate" if self.verdict == "surrogate" else "forward"
            paragraphs.append(f"Backward is the derivative of {of}.")
        paragraphs += [str(kink) for kink in self.kinks] + self.notes
        facts = {
            "tried in float64": "\n".join(self.inputs),
            "largest error": _number(self.largest_error),
            "second derivative": _SECOND[self.second_derivative],
            "torch.func": "vmap and grad work" if self.vmap else _no(self.vmap_reason),
        }
        lines = [f"{self.name}: {self.words}"]
        for text in paragraphs:
            lines += textwrap.wrap(text, width, initial_indent="  ", subsequent_indent="  ")
        for name, text in facts.items():
            for line in text.splitlines():
                start = f"  {name:19}"
                lines += textwrap.wrap(
                    line, width, initial_indent=start, subsequent_indent=" " * len(start)
                )
                name = ""
        if not self.as_declared and self.declared != "exact":
            declared = f"{self.declared} ({self.mistake})" if self.mistake else self.declared
            lines.append(f"  It declares itself {declared}.")
        if self.users_lines:
            lines += ["", self.users_lines.rstrip()]
        return "\n".join(lines)


_SECOND = {
    "right": "right",
    "refused": "refused (once_differentiable)",
    "raises": "raises an error",
    "wrong": "wrong",
    "-": "",
}


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2g}"


def _no(reason: str) -> str:
    return f"no: {reason}" if reason else ""


def check_function(
    target: Any, *, device: str = "cpu", seed: int = 0, eps: float = 1e-6, atol: float = 1e-4
) -> Verdict:
    """Check one Function and say what was found; a fault in the Function is told, never raised.

    Args:
        target: a subclass of `torch.autograd.Function`, or a callable that applies one.
        device: where the inputs lie.
        seed: of the random inputs.
        eps: step of the difference quotients.
        atol: allowed difference between backward and quotient, beside 1e-3 of the quotient.

    >>> from functions import MyReLU
    >>> verdict = check_function(MyReLU)
    >>> verdict.verdict, verdict.as_declared
    ('exact', True)
    >>> verdict.kinks[0].backward, verdict.kinks[0].relu
    (1.0, 0.0)
    """
    if getattr(target, "__name__", "") == "apply":
        target = getattr(target, "__self__", target)
    verdict = Verdict(name=getattr(target, "__name__", type(target).__name__))
    verdict.mistake = getattr(target, "mistake", None)
    if verdict.mistake is not None:
        verdict.declared = "wrong"
    elif hasattr(target, "surrogate"):
        verdict.declared = "surrogate"
    reason = _why_it_cannot_run(target)
    if reason:
        verdict.verdict = "cannot run"
        verdict.findings.append(reason)
        return verdict
    cuda = [torch.device(device)] if torch.device(device).type == "cuda" else []
    with torch.random.fork_rng(cuda), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the findings say it better
        torch.manual_seed(seed)
        try:
            _check(verdict, target, device, eps, atol)
        except Crash as crash:
            verdict.verdict = "cannot run" if crash.kind == "crash" else "wrong"
            verdict.findings.append(_explain_crash(crash))
            verdict.users_lines = users_lines(crash.error)
    return verdict


def attempt(check: Callable[..., Verdict], target: Any, **how: Any) -> Verdict:
    """`check(target, **how)`, or if that fails itself a verdict that says so, never as declared.

    So one target ends neither a table of many nor a watch; the verdict holds the whole traceback.

    Args:
        check: `check_function`, or `lab.course.grading.grade`.
        target: what it checks; its `__name__` or `name` is that of the verdict.
        how: for `check`.

    Raises:
        UserError: whatever `check` says of the command.

    >>> attempt(lambda target: 1 / 0, len).findings[0].text
    'The check itself failed, no verdict on this one: ZeroDivisionError: division by zero'
    """
    try:
        return check(target, **how)
    except UserError:
        raise
    except (Exception, SystemExit) as error:  # reported in full, and the exit code is not 0
        name = getattr(target, "__name__", None) or getattr(target, "name", type(target).__name__)
        text = f"The check itself failed, no verdict on this one: {one_line(error)}"
        lines = "".join(traceback.format_exception(error))
        return Verdict(
            name, "cannot run", findings=[Finding("check failed", text)], users_lines=lines
        )


def _check(verdict: Verdict, target: Any, device: str, eps: float, atol: float) -> None:
    """Run every check on every sample, and stop after the first sample that shows a fault."""
    cases = [Case(target, args, eps, atol) for args in samples_of(target, device)]
    if not hasattr(target, "sample_inputs") and len(cases) > 1:
        # Guessed shapes, and forward may take one that was never meant, as for a bias.
        meant = [c for c in cases if "shape" not in (f.kind for f in _first_look(c, []))]
        cases = meant or cases
    verdict.inputs = [case.describe() for case in cases]
    for case in cases:
        verdict.findings += _first_look(case, verdict.notes)
        if not verdict.findings:
            verdict.findings += _not_deterministic(case)
        if verdict.findings and verdict.kinds != ["edits grad_output"]:
            break
        error, findings, kinks = _first_derivative(case)
        verdict.largest_error = max(error, verdict.largest_error or 0.0)
        verdict.findings += findings
        verdict.kinks += kinks
        if kinks:
            verdict.verdict = "kink"
        if not findings:
            verdict.findings += _used_twice(case)
        if not findings and not kinks:  # to second order it has a meaning only where the first is
            verdict.second_derivative, findings = _second_derivative(case)
            verdict.findings += findings
        if verdict.findings:
            break
    if verdict.findings:
        verdict.verdict = "wrong"
    elif verdict.declared == "surrogate":
        verdict.verdict = "surrogate"
        verdict.largest_error, note = _distance_of_surrogate(cases)
        verdict.notes.append(note)
    if verdict.largest_error is None:
        return  # backward could not be run
    more = _kinks(target, cases[0], device)
    verdict.kinks += [kink for kink in more if kink not in verdict.kinks]
    verdict.vmap, verdict.vmap_reason, findings = _functorch(cases[0])
    if findings:
        verdict.verdict = "wrong"
        verdict.findings += findings


# ---- Before it is called: can it run as written? ------------------------------------------------


def _why_it_cannot_run(target: Any) -> Finding | None:
    if isinstance(target, torch.autograd.Function):
        return _not_static(type(target).__name__, "This is an instance of a Function.")
    if not inspect.isclass(target):
        if inspect.isfunction(target) or inspect.ismethod(target):
            return None  # it may well apply one
        what = getattr(target, "__name__", f"an object of type {type(target).__name__}")
        return Finding("no Function", f"{what} is no torch.autograd.Function.")
    if not issubclass(target, torch.autograd.Function):
        hint = " Check the Function that it calls." if issubclass(target, torch.nn.Module) else ""
        return Finding("no Function", f"{target.__name__} is no torch.autograd.Function.{hint}")
    base = torch.autograd.Function
    if target.forward is base.forward:
        return Finding("no forward", "There is no forward: nothing to differentiate.")
    if target.backward is base.backward and target.vjp is base.vjp:
        return Finding(
            "no backward",
            "There is no backward: add a static method backward(ctx, grad_output) that returns one "
            "gradient for each input of forward.",
        )
    for method in ("forward", "setup_context", "backward", "vjp"):
        if not isinstance(inspect.getattr_static(target, method), staticmethod):
            return _not_static(target.__name__, f"{method} is not static.")
    if hasattr(target, "surrogate") and not callable(target.surrogate):
        return Finding(
            "declaration", "surrogate: a function, the one that backward differentiates."
        )
    return None


def _not_static(name: str, what: str) -> Finding:
    return Finding(
        "not static",
        f"{what} The methods of a Function stand under @staticmethod, and it is used as "
        f"{name}.apply(x), never {name}()(x). PyTorch says 'legacy autograd function with "
        "non-static forward method' to both mistakes.",
    )


def _explain_crash(crash: Crash) -> Finding:
    message = str(crash.error).strip()
    if isinstance(crash.error, NotImplementedError) and not message:  # PyTorch's has one
        return Finding("not written", f"Not written yet: NotImplementedError, {crash.doing}.")
    if message.startswith("Legacy autograd function"):
        return _not_static("MyFunction", "A method is not static, or an instance is called.")
    if isinstance(crash.error, UserError):
        return Finding("declaration", message)
    return Finding(crash.kind, crash.told)


# ---- The checks, one a function -----------------------------------------------------------------


def _node(case: Case, output: torch.Tensor) -> Any:
    """The node of the Function in the graph of its output, or None where there is none."""
    node = output.grad_fn
    cls = getattr(type(node), "_forward_cls", None)
    if inspect.isclass(case.target):
        return node if cls is not None and issubclass(cls, case.target) else None
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if hasattr(type(node), "_forward_cls"):
            return node
        if node is not None:
            waiting += [following for following, _ in node.next_functions]
    return None


def _first_look(case: Case, notes: list[str]) -> list[Finding]:
    """One forward and one backward, called as PyTorch calls them: what came back, what was edited.

    Nothing here looks at the numbers of a gradient.
    """
    args = [arg.clone() if isinstance(arg, torch.Tensor) else arg for arg in case.leaves()]
    before = [arg.clone() if isinstance(arg, torch.Tensor) else arg for arg in args]
    with users_code("in forward"):
        every = case.apply(*args)
    every = every if isinstance(every, tuple) else (every,)
    outputs = [output for output in every if is_float(output)]
    findings = _edited(args, before, case.names, "forward")
    if findings:
        return findings
    node = _node(case, outputs[0]) if outputs else None
    if node is None:
        return [
            Finding(
                "bypassed",
                "Backward is never reached: the output does not come from .apply, or is no "
                "floating-point tensor. A forward that is called by hand, .forward(...), records "
                "nothing for this Function.",
            )
        ]
    if not all(output.isfinite().all() for output in outputs):
        text = "forward gives inf or nan on these inputs: they lie outside its domain. "
        return [Finding("not finite", text + "Let sample_inputs() choose others.")]
    if outputs[0].dtype != torch.float64:
        text = f"forward computes in {_kind_of(outputs[0])} though it is given float64: "
        return [Finding("dtype", text + "too coarse to be checked. Keep the dtype of the input.")]
    notes += _other_dtype(case)
    handed = [torch.randn_like(out) if is_float(out) else torch.zeros_like(out) for out in every]
    kept, results = [g.clone() for g in handed], [out.clone() for out in every]
    if inspect.isclass(case.target):
        with users_code("in backward"), torch.no_grad():
            returned = node.apply(*handed)
        returned = returned if isinstance(returned, tuple) else (returned,)
    else:  # the node is somewhere inside, and what it returns is not seen
        with users_code("in backward"):
            gradients(case, outputs, args, [grad for grad in handed if is_float(grad)])
        returned = None
    findings += _edited(handed, kept, ["grad_output"] * len(handed), "backward")
    findings += _edited(args, before, case.names, "backward")
    findings += _edited(every, results, ["the output"] * len(every), "backward")
    return findings + ([] if returned is None else _count_and_shapes(case, returned, notes))


def _edited(tensors: Sequence, before: Sequence, names: Sequence[str], who: str) -> list[Finding]:
    findings = []
    for tensor, old, name in zip(tensors, before, names, strict=False):
        if isinstance(tensor, torch.Tensor) and not same(tensor, old):
            kind = "edits grad_output" if name == "grad_output" else "edits input"
            text = (
                f"{who} edits {name}, a tensor that it was handed: others hold the same tensor "
                "and now read other numbers. "
            )
            if who == "forward":
                text += f"If it is meant to work in place, say so: ctx.mark_dirty({name}). If not: "
            text += (
                f"Work on a copy: {name}.clone(), or an operation without the trailing underscore."
            )
            findings.append(Finding(kind, text))
    return findings


def _count_and_shapes(case: Case, returned: tuple, notes: list[str]) -> list[Finding]:
    expected, got = len(case.args), len(returned)
    for name, gradient in zip(case.names[:expected], returned, strict=False):
        if gradient is not None and not isinstance(gradient, torch.Tensor):
            text = (
                f"backward returns {_shown(gradient)} for {name}: a gradient is a tensor of its "
                "input's shape, or None."
            )
            if isinstance(gradient, list | tuple):
                text += " Return one for each input, commas between them, no brackets around them."
            return [Finding("no tensor", text)]
    if got < expected or any(gradient is not None for gradient in returned[expected:]):
        return [
            Finding(
                "number of gradients",
                f"backward returns {got} gradient{'s' * (got != 1)}, expected {expected}: one for "
                f"each input of forward ({', '.join(case.names[:expected])}), in that order, None "
                "where there is none.",
            )
        ]
    findings = []
    for i in case.floats:
        arg, gradient, name = case.args[i], returned[i], case.names[i]
        if gradient is None or gradient.shape == arg.shape:
            continue
        shapes = f"shape {tuple(gradient.shape)} for {name} of shape {tuple(arg.shape)}"
        if _sums_to(gradient.shape, arg.shape):
            notes.append(
                f"backward returns a gradient of {shapes}; only PyTorch's broadcasting rescues it, "
                f"by summing. Sum it in backward, over the dimensions in which {name} was repeated."
            )
        elif gradient.shape == arg.shape[::-1]:
            findings.append(
                Finding("transposed", f"backward returns a gradient of {shapes}: transposed.")
            )
        else:
            text = f"backward returns a gradient of {shapes}. A gradient has its input's shape."
            findings.append(Finding("shape", text))
    return findings


def _shown(value: Any) -> str:
    """A number or a short text as it is; of anything else, its type."""
    shown = repr(value)
    if isinstance(value, bool | int | float | complex | str) and len(shown) <= 20:
        return shown
    return f"a value of type {type(value).__name__}"


def _sums_to(shape: torch.Size, target: torch.Size) -> bool:
    try:
        return torch.broadcast_shapes(shape, target) == shape
    except RuntimeError:
        return False


def _other_dtype(case: Case) -> list[str]:
    """Where forward leaves the dtype or device of its input, as a detour through NumPy may."""
    args = [arg.float() if is_float(arg) else arg for arg in case.args]
    with users_code("on float32 inputs", "float32"):
        output = case.outputs(*args)[0]
    given = args[case.floats[0]]
    if (output.dtype, output.device) == (given.dtype, given.device):
        return []
    return [
        f"Given {_kind_of(given)}, forward returns {_kind_of(output)}: make it the same, "
        "with .to(input)."
    ]


def _kind_of(tensor: torch.Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} on {tensor.device}"


def _not_deterministic(case: Case) -> list[Finding]:
    leaves = case.leaves()
    with users_code("called a second time", "second call"):
        outputs, again = case.outputs(*leaves), case.outputs(*leaves)
    if not all(map(same, outputs, again)):
        apart = max((a - b).abs().max().item() for a, b in zip(outputs, again, strict=True))
        text = f"forward is not deterministic: the same inputs gave outputs {apart:.2g} apart."
        return [Finding("not deterministic", text + " No difference quotient has a meaning then.")]
    grads = [torch.randn_like(output) for output in outputs]
    with users_code("when backward runs a second time", "second call"):
        first, second = (gradients(case, outputs, leaves, grads) for _ in range(2))
    if not all(map(same, first, second)):
        text = "backward is not deterministic: called twice on the same graph, it answers twice "
        return [Finding("not deterministic", text + "differently. Is something left on ctx?")]
    with users_code("called on other inputs before backward", "shared state"):
        outputs = case.outputs(*leaves)
        case.outputs(*flipped(case).leaves())
        third = gradients(case, outputs, leaves, grads)
    if not all(map(same, first, third)):
        text = "a second call before backward changes the gradients of the first: something is "
        return [Finding("shared state", text + "kept on the class or globally. Keep it on ctx.")]
    return []


def _first_derivative(case: Case) -> tuple[float, list[Finding], list[Kink]]:
    """PyTorch's gradcheck, for every combination of inputs that need a gradient, and both layouts.

    Returns the largest error, what is wrong, and the kinks met on the way.
    """
    floats = case.floats
    error = largest_error(case)
    # All together first; of very many inputs only that and each alone.
    counts = range(len(floats), 0, -1) if len(floats) <= 5 else (len(floats), 1)
    for needed in itertools.chain(*(itertools.combinations(floats, n) for n in counts)):
        said = ", ".join(case.names[i] for i in needed)
        only = "" if needed == tuple(floats) else f" (where only {said} needs a gradient)"
        findings, kinks = _gradcheck(case, needed, only)
        if findings or kinks:
            return error, findings, kinks
    for i in floats:
        args = list(case.args)
        args[i] = not_contiguous(args[i])
        where = f" (with {case.names[i]} not contiguous)"
        findings, _ = _gradcheck(replace(case, args=tuple(args)), floats, where, "not contiguous")
        if findings:
            return error, findings, []
    return error, [], []


def _gradcheck(
    case: Case, needed: Sequence, where: str, kind: str = "crash"
) -> tuple[list[Finding], list[Kink]]:
    reached = _standing_in_for_forward(case) if hasattr(case.target, "surrogate") else case.apply
    try:
        with users_code(f"in gradcheck{where}", kind):
            gradcheck(reached, case.leaves(needed), eps=case.eps, atol=case.atol, rtol=RTOL)
    except GradcheckError as error:
        findings, kinks = explain(case, needed, where)
        if findings or kinks:
            return findings, kinks
        return [Finding("gradcheck", _first_sentence(error))], []
    return [], []


def _standing_in_for_forward(case: Case) -> Callable:
    """The values of the surrogate with the gradients of backward: what gradcheck must agree on."""

    def values_of_surrogate(*args: Any) -> torch.Tensor:
        output = case.apply(*args)
        return case.target.surrogate(*args).detach() + (output - output.detach())

    return values_of_surrogate


def _first_sentence(error: Exception) -> str:
    return "gradcheck says: " + str(error).strip().splitlines()[0].split(". ")[0][:200]


def _second_derivative(case: Case) -> tuple[str, list[Finding]]:
    """Right, refused, or wrong: PyTorch's gradgradcheck, and the numbers where it fails."""
    leaves = case.leaves()
    try:
        outputs = case.outputs(*leaves)
        grads = [torch.ones_like(output).requires_grad_() for output in outputs]
        inputs = [leaves[i] for i in case.floats]
        first = torch.autograd.grad(outputs, inputs, grads, create_graph=True, allow_unused=True)
        total = sum(grad.sum() for grad in first if grad is not None)
        if isinstance(total, torch.Tensor) and total.requires_grad:
            total.backward()  # autograd.grad and gradgradcheck pass by a once_differentiable
        gradgradcheck(case.apply, case.leaves(), eps=case.eps, atol=case.atol, rtol=RTOL)
    except GradcheckError:
        return "wrong", [Finding("second derivative", _explain_second(case))]
    except Exception as error:  # refusing is allowed, and a Function may refuse as it likes
        return "refused" if "once_differentiable" in str(error) else "raises", []
    return "right", []


def _explain_second(case: Case) -> str:
    usual = (
        " The usual cause: a tensor that forward computed stands on ctx, and to the second "
        "derivative it is a constant. Save inputs and outputs, compute the rest again in backward, "
        "or refuse: @once_differentiable."
    )

    def first(*args: Any) -> tuple:
        outputs = case.outputs(*args)
        inputs = [arg for arg in args if is_float(arg) and arg.requires_grad]
        ones = [torch.ones_like(output) for output in outputs]
        return torch.autograd.grad(
            outputs, inputs, ones, create_graph=True, allow_unused=True, materialize_grads=True
        )

    with users_code("in a second backward", "second derivative"):
        for i in case.floats:
            analytic = analytic_jacobians(first, case.leaves(), case.floats)[i]
            left, right = difference_quotients(first, case, i, needed=case.floats)
            numeric = (left + right) / 2
            wrong = differ(analytic, numeric, case.atol)
            if wrong.any():
                row, column = worst(analytic, numeric, wrong)
                return (
                    "The second derivative is silently wrong: at "
                    f"{place(case, i, column)} a second backward says "
                    f"{analytic[row, column]:.4g}, the difference quotient of the first "
                    f"{numeric[row, column]:.4g}." + usual
                )
    return "The second derivative is silently wrong." + usual


def _used_twice(case: Case) -> list[Finding]:
    """Backward must be linear in grad_output: that is what makes a sum of paths right."""
    leaves = case.leaves()
    outputs = case.outputs(*leaves)
    once = [torch.randn_like(output) for output in outputs]
    more = [3 * torch.randn_like(output) for output in outputs]
    with users_code("where the output is used twice", "used twice"):
        one, other, both = (
            gradients(case, outputs, leaves, grads)
            for grads in (once, more, list(map(torch.add, once, more)))
        )
    if not all(map(torch.allclose, map(torch.add, one, other), both)):
        return [
            Finding(
                "used twice",
                "The gradient is wrong where the output is used twice: backward of the sum of two "
                "grad_outputs is not the sum of its answers. Backward must be linear in "
                "grad_output: multiply by it, do not clip, normalise or round it.",
            )
        ]
    ones = [torch.ones_like(output) for output in outputs]
    with users_code("with a grad_output that is not contiguous", "not contiguous"):
        plain, expanded, turned = (
            gradients(case, outputs, leaves, grads, copy=False)
            for grads in (
                ones,
                [one.new_ones(()).expand_as(one) for one in ones],  # from y.sum().backward()
                [not_contiguous(one) for one in ones],  # from a transpose
            )
        )
    for other in (expanded, turned):
        if not all(map(torch.allclose, plain, other)):
            text = "The gradient is another one where grad_output is not contiguous in memory. "
            return [Finding("not contiguous", text + "Use .reshape, not the memory itself.")]
    return []


def _kinks(target: Any, first: Case, device: str) -> list[Kink]:
    """Kinks where the author declares them; else, for a Function of one tensor, at 0 if there."""
    if hasattr(target, "kink_inputs"):
        points = declared_inputs(target.kink_inputs, "kink_inputs()", device)
    elif len(first.floats) == 1 and not hasattr(target, "surrogate"):
        points = [tuple(torch.zeros_like(arg) if is_float(arg) else arg for arg in first.args)]
    else:
        return []
    found = []
    for args in points:
        case = replace(first, args=args)
        try:
            with users_code("at a kink", "kink"):
                analytic = analytic_jacobians(case.outputs, case.leaves(), case.floats)
                sides = {i: difference_quotients(case.outputs, case, i) for i in case.floats}
        except Crash:
            if hasattr(target, "kink_inputs"):
                raise
            continue  # 0 was only a guess
        for i, (left, right) in sides.items():
            if left.isfinite().all() and right.isfinite().all():
                marked = parted(left, right) | (left.abs() > JUMP)  # a jump may be symmetric
                found += kinks_among(case, i, analytic[i], left, right, marked)
    return found


def _distance_of_surrogate(cases: list[Case]) -> tuple[float, str]:
    """How far backward is from the true derivative of forward, and where it is farthest."""
    farthest, said = 0.0, "The surrogate is the derivative wherever it was tried."
    for case in cases:
        analytic = analytic_jacobians(case.outputs, case.leaves(), case.floats)
        for i in case.floats:
            left, right = difference_quotients(case.outputs, case, i)
            numeric = (left + right) / 2
            row, column = worst(analytic[i], numeric, torch.ones_like(numeric, dtype=torch.bool))
            distance = (analytic[i] - numeric)[row, column].abs().item()
            if distance > farthest:
                farthest = distance
                said = (
                    f"Farthest from the derivative at {place(case, i, column)}: backward says "
                    f"{analytic[i][row, column]:.4g}, the difference quotient "
                    f"{numeric[row, column]:.4g}."
                )
    return farthest, said


def _functorch(case: Case) -> tuple[bool, str, list[Finding]]:
    """Whether `torch.func.vmap` and `torch.func.grad` take it, and if not, why."""
    if inspect.isclass(case.target) and not has_setup_context(case.target):
        return False, "forward takes ctx; torch.func needs setup_context", []
    floats = tuple(case.floats)
    other = flipped(case)
    stacked = [
        torch.stack([arg, other.args[i]]) if i in floats else arg for i, arg in enumerate(case.args)
    ]
    in_dims = tuple(0 if i in floats else None for i in range(len(case.args)))

    def total(*args: Any) -> torch.Tensor:
        return sum(output.sin().sum() for output in case.outputs(*args))

    def both(function: Callable) -> bool:
        batched = torch.func.vmap(function, in_dims)(*stacked)
        single = [function(*case.args), function(*other.args)]
        return all(
            torch.allclose(torch.stack(pair), whole, equal_nan=True)
            for *pair, whole in zip(*map(_flat, single), _flat(batched), strict=True)
        )

    try:
        right = both(case.apply) and both(torch.func.grad(total, floats))
    except Exception as error:  # what a transform may stumble on is anything
        return False, _why_no_vmap(error), []
    if right:
        return True, "", []
    text = "Under torch.func.vmap it gives other numbers than one call for each element."
    return False, "gives other numbers", [Finding("vmap", text)]


def _flat(value: Any) -> list[torch.Tensor]:
    return [v for v in (value if isinstance(value, tuple) else (value,)) if is_float(v)]


def _why_no_vmap(error: Exception) -> str:
    message = str(error).strip()
    if "override the setup_context" in message:
        return "forward takes ctx; torch.func needs setup_context"
    if "does not have vmap support" in message:
        return "no rule for vmap: neither generate_vmap_rule nor a method vmap"
    if "data-dependent control flow" in message or "convert_to_python" in message:
        return "it branches on values"
    return f"{type(error).__name__}: {message.splitlines()[0] if message else ''}"[:120]

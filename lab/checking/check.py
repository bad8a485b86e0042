"""Is this backward the derivative of this forward? One verdict on one Function, in words.

Backward is compared with finite differences of forward, as PyTorch's `gradcheck` does it. Added
here are the choice of inputs, the questions that `gradcheck` does not ask (edits, state, layouts,
kinks, values far from zero), and the explanation: which gradient is wrong, where, by how much, and
why if the numbers prove it.

A Function may declare, as static methods and attributes of its class, all of them optional:

    sample_inputs()    a list of tuples of arguments, where the formula is defined and smooth
    kink_inputs()      the same, where it is not differentiable
    surrogate(*args)   the function that backward is the derivative of, on purpose
    surrogate = True   backward is the derivative of no function, on purpose
    no_gradient = ("mask",)   float inputs that get no gradient, by design
    mistake = "kind"   wrong, on purpose; the kind of finding expected
"""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import torch

from lab.checking import probes
from lab.checking.causes import wrong_gradient
from lab.checking.contract import cannot_run, decorators, examine
from lab.checking.guesses import guessed_samples
from lab.checking.numbers import Comparison, compare
from lab.checking.samples import Case, declared_inputs, is_function_class
from lab.checking.slips import explain_crash
from lab.checking.users_code import Crash
from lab.checking.verdict import Finding, Verdict
from lab.errors import UserError, one_line, users_lines

# A Function with such a finding never ran as its author means it.
NOT_RUN = {
    "crash", "declaration", "not written", "not static", "no inputs found",
    "tensors in a tuple", "no output",
}  # fmt: skip


def check_function(
    target: Any,
    *,
    sample_inputs: list[tuple] | Callable[[], list[tuple]] | None = None,
    device: str = "cpu",
    seed: int = 0,
    eps: float = 1e-6,
    atol: float = 1e-5,
    compiled: bool = False,
) -> Verdict:
    """Check one Function and say what was found; a fault in it is reported, never raised.

    Args:
        target: a subclass of `torch.autograd.Function`, or a callable that applies one.
        sample_inputs: tuples of arguments to check it on, in place of those that it declares.
        device: where the inputs lie.
        seed: of the random inputs.
        eps: step of the finite differences.
        atol: allowed difference between backward and the numerical gradient, beside 1e-3 of the
            latter.
        compiled: whether to try it under `torch.compile`, too.

    >>> from functions import MyReLU
    >>> verdict = check_function(MyReLU)
    >>> verdict.verdict, verdict.as_declared
    ('exact', True)
    >>> verdict.kinks[0].backward, verdict.kinks[0].relu
    (1.0, 0.0)
    """
    if getattr(target, "__name__", "") == "apply":
        target = getattr(target, "__self__", target)
    verdict = Verdict(getattr(target, "__name__", None) or type(target).__name__)
    verdict.mistake = getattr(target, "mistake", None)
    if verdict.mistake is not None:
        verdict.declared = "wrong"
    elif getattr(target, "surrogate", None) is not None:
        verdict.declared = "surrogate"
    if reason := cannot_run(target):
        verdict.verdict = "cannot run"
        verdict.findings.append(reason)
        return verdict
    kind = torch.device(device).type
    devices = [] if kind == "cpu" else [torch.device(device)]
    with (
        torch.random.fork_rng(devices, device_type="cuda" if kind == "cpu" else kind),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")  # the findings say it better
        torch.manual_seed(seed)
        try:
            _Check(verdict, target, device, eps, atol).run(sample_inputs, compiled)
        except Crash as crash:
            finding = explain_crash(target, crash)
            did_not_run = finding.kind in NOT_RUN
            verdict.verdict = "cannot run" if did_not_run else "wrong"
            verdict.findings.append(finding)
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
        named = getattr(target, "name", type(target).__name__)
        text = f"The check itself failed, no verdict on this one: {one_line(error)}"
        lines = "".join(traceback.format_exception(error))
        return Verdict(
            getattr(target, "__name__", named),
            "cannot run",
            findings=[Finding("check failed", text)],
            users_lines=lines,
        )


def cases_of(target: Any, device: str, eps: float, atol: float) -> tuple[list[Case], str]:
    """The cases that `check_function` compares on, or none and why: a fault seen at first sight.

    Raises:
        Crash: forward or backward raised.
    """
    if reason := cannot_run(target):
        return [], reason.text
    check = _Check(Verdict(""), target, device, eps, atol)
    cases = check.cases(None)
    findings = [finding.text for finding in check.verdict.findings]
    return ([], findings[0]) if findings else (cases, "")


class _Check:
    """The questions in their order, and what follows from the answers for the next ones."""

    def __init__(self, verdict: Verdict, target: Any, device: str, eps: float, atol: float):
        self.verdict, self.target, self.device = verdict, target, device
        self.eps, self.atol = eps, atol

    def run(self, sample_inputs: Any, compiled: bool) -> None:
        cases = self.cases(sample_inputs)
        if self.verdict.kinds:
            kind = self.verdict.kinds[0]
            self.verdict.verdict = "cannot run" if kind in NOT_RUN else "wrong"
            return
        fine = (
            self.ask(probes.is_repeatable, cases)
            and self.ask(probes.is_linear, cases)
            and (getattr(self.target, "surrogate", None) is True or self.values(cases))
        )
        if fine:
            self.beyond(cases, declared=self.declares_samples or sample_inputs is not None)
        if compiled and fine:
            self.note(probes.under_compile(cases[0]))
        if self.verdict.findings:
            self.verdict.verdict = "wrong"
        elif self.verdict.declared == "surrogate":
            self.verdict.verdict = "surrogate"
            self.verdict.largest_error, note = probes.distance_of_surrogate(cases)
            self.note([note])

    @property
    def declares_samples(self) -> bool:
        return hasattr(self.target, "sample_inputs")

    def note(self, notes: Iterable[str]) -> None:
        self.verdict.notes += [note for note in notes if note not in self.verdict.notes]

    def cases(self, given: Any) -> list[Case]:
        """The cases to check, after one look at each; findings of the first faulty one."""
        if given is not None:
            method = given if callable(given) else lambda: given
            samples = declared_inputs(method, "sample_inputs", self.device)
        elif self.declares_samples:
            samples = declared_inputs(self.target.sample_inputs, "sample_inputs()", self.device)
        else:
            samples, notes = guessed_samples(self.target, self.device)
            self.note(notes)
        guessed = given is None and not self.declares_samples
        if is_function_class(self.target):
            self.note(decorators(self.target))
        cases: list[Case] = []
        left_out: set[str] = set()
        for args in samples:
            case = Case(self.target, args, self.eps, self.atol)
            listed = getattr(self.target, "no_gradient", ())
            passive = tuple(i for i, name in enumerate(case.names) if name in listed)
            case = Case(self.target, args, self.eps, self.atol, passive=passive)
            self.verdict.inputs.append(case.describe())
            try:
                case, findings, notes = examine(case)
            except Crash:
                if not (guessed and cases):
                    raise
                self.verdict.inputs.pop()
                continue  # forward takes this guess, and backward was never meant to
            self.note(notes)
            left_out |= {case.names[i] for i in case.passive}
            self.verdict.findings += [f for f in findings if f.kind not in self.verdict.kinds]
            if self.verdict.findings:
                return cases
            cases.append(case)
        if left_out or any(
            "no gradient" in n or "get a gradient" in n or "as a number" in n
            for n in self.verdict.notes
        ):
            self.verdict.exact_for = [cases[0].names[i] for i in cases[0].floats]
        return cases

    def ask(self, question: Callable[[Case], list[Finding]], cases: list[Case]) -> bool:
        """Put a question to each case until one has a finding; whether none has."""
        for case in cases:
            try:
                findings = question(case)
            except Crash as crash:
                findings = [explain_crash(self.target, crash)]
                self.verdict.users_lines = users_lines(crash.error)
            except Exception as error:
                lines = users_lines(error)
                if not lines and not isinstance(error, RuntimeError):
                    raise
                findings = [Finding("crash", Crash(error, "when it is checked", "crash").told)]
                self.verdict.users_lines = lines
            if findings:
                self.verdict.findings += findings
                return False
        return True

    def values(self, cases: list[Case]) -> bool:
        """Compare backward with the numerical gradient on all cases; whether it is right."""
        samples: list[dict[int, Comparison]] = []

        def collect(case: Case) -> list[Finding]:
            samples.append(compare(case))
            return []

        if not self.ask(collect, cases):
            return False
        every = [comparison for sample in samples for comparison in sample.values()]
        self.verdict.largest_error = max((c.largest_error for c in every), default=0.0)
        for comparison in every:
            self.verdict.kinks += probes.kinks_among(comparison)
        if self.verdict.kinks:
            self.verdict.verdict = "kink"
        before = len(self.verdict.findings)
        for i in sorted({i for sample in samples for i in sample}):
            mine = [sample[i] for sample in samples if i in sample]
            if any(c.wrong.any() or c.not_finite.any() for c in mine):
                self.verdict.findings.append(wrong_gradient(i, samples))
        for comparison in every:
            if len(self.verdict.findings) == before:
                self.verdict.findings += probes.outside_slopes(comparison)
        if len(self.verdict.findings) == before and not any(c.numerical.any() for c in every):
            self.constant(cases)
        self.elementwise = all(
            len(sample) == 1 and is_diagonal(next(iter(sample.values()))) for sample in samples
        )
        return len(self.verdict.findings) == before

    def constant(self, cases: list[Case]) -> None:
        """A forward that never changes has nothing to be checked."""
        if all(probes.is_constant(case) for case in cases):
            text = (
                "forward is constant on these inputs, so nothing was checked. Declare "
                "sample_inputs() where its output depends on them."
            )
            self.verdict.findings.append(Finding("constant forward", text))

    def beyond(self, cases: list[Case], declared: bool) -> None:
        """What is asked of a backward whose values are right on the samples."""
        true_surrogate = getattr(self.target, "surrogate", None) is True
        self.ask(probes.needs_every_input, cases)
        self.ask(probes.takes_any_layout, cases)
        self.ask(probes.lets_go_of_memory, cases[:1])
        self.ask(probes.forward_mode, cases[:1])
        if not true_surrogate:
            self.ask(lambda case: probes.far_from_zero(case, self.elementwise), cases[:3])
            self.ask(self.special_points, cases[:1])
            if not self.verdict.findings and self.verdict.verdict != "kink":
                self.ask(self.second_derivative, cases)
        self.ask(self.torch_func, cases[:1])
        self.note(probes.frees_its_buffers(cases[0]))
        self.note(probes.takes_batched_grads(cases[0]))
        guessed = not declared and not self.verdict.findings and not true_surrogate
        if guessed:
            self.note(probes.on_complex_inputs(cases[0]))

    def special_points(self, case: Case) -> list[Finding]:
        points = []
        if hasattr(self.target, "kink_inputs"):
            points = declared_inputs(self.target.kink_inputs, "kink_inputs()", self.device)
        elif getattr(self.target, "surrogate", None) is not None:
            return []
        findings, kinks = probes.at_special_points(case, points, bool(points))
        self.verdict.kinks += [kink for kink in kinks if kink not in self.verdict.kinks]
        return findings

    def second_derivative(self, case: Case) -> list[Finding]:
        if self.verdict.second_derivative not in ("-", "right"):
            return []
        self.verdict.second_derivative, findings = probes.second_derivative(case)
        return findings

    def torch_func(self, case: Case) -> list[Finding]:
        self.verdict.vmap, self.verdict.vmap_reason, findings = probes.under_torch_func(case)
        return findings


def is_diagonal(comparison: Comparison) -> bool:
    numerical, arg = comparison.numerical, comparison.case.args[comparison.position]
    if numerical.shape[0] != numerical.shape[1] or numerical.shape[1] != arg.numel():
        return False
    return not (numerical - torch.diag(numerical.diagonal())).abs().gt(1e-6).any()

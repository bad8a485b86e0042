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

import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import torch

from lab.checking import probes
from lab.checking.causes import slope_of_each, wrong_gradient
from lab.checking.contract import cannot_run, decorators, examine
from lab.checking.guesses import guessed_cases
from lab.checking.numbers import Comparison, compare
from lab.checking.samples import Case, declared_inputs, is_function_class
from lab.checking.slips import explain_crash
from lab.checking.users_code import Crash
from lab.checking.verdict import Finding, Verdict, finding, say
from lab.errors import users_lines

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
    surrogate = getattr(target, "surrogate", None)
    if surrogate is not None:
        verdict.declared = "surrogate"
        verdict.derivative_of = "no function" if surrogate is True else "its surrogate"
    if verdict.mistake is not None:
        verdict.declared = "wrong"
    if reason := cannot_run(target):
        verdict.verdict = "cannot run"
        verdict.findings.append(reason)
        return verdict
    if sample_inputs is None:
        sample_inputs = getattr(target, "sample_inputs", None)
    guessed = sample_inputs is None
    kind = torch.device(device).type
    devices = [] if kind == "cpu" else [torch.device(device)]
    with (
        torch.random.fork_rng(devices, device_type="cuda" if kind == "cpu" else kind),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")  # the findings say it better
        torch.manual_seed(seed)
        try:
            cases, notes = _cases(target, sample_inputs, device, eps, atol)
            check = _Check(verdict, target, device)
            check.note(notes + (decorators(target) if is_function_class(target) else []))
            check.run(cases, guessed, compiled)
        except Crash as crash:
            verdict.findings.append(explain_crash(target, crash))
            verdict.verdict = "cannot run" if verdict.kinds[-1] in NOT_RUN else "wrong"
            verdict.users_lines = users_lines(crash.error)
    if guessed and verdict.inputs and not verdict.right:
        verdict.notes.append(say("guessed"))
    return verdict


def _cases(
    target: Any, given: Any, device: str, eps: float, atol: float
) -> tuple[list[Case], list[Finding]]:
    """The target with the arguments that are given, or guessed if none are; and notes on them."""
    if given is None:
        cases, notes = guessed_cases(target, device)
        return [replace(case, eps=eps, atol=atol) for case in cases], notes
    if callable(given):
        inputs = declared_inputs(given, "sample_inputs()", device)
    else:
        inputs = declared_inputs(lambda: given, "sample_inputs", device)
    return [Case(target, args, eps, atol) for args in inputs], []


def cases_of(target: Any, device: str, eps: float, atol: float) -> tuple[list[Case], str]:
    """The cases that `check_function` compares on, or none and why: a fault seen at first sight.

    Raises:
        Crash: forward or backward raised.
    """
    if reason := cannot_run(target):
        return [], reason.text
    given, _ = _cases(target, getattr(target, "sample_inputs", None), device, eps, atol)
    check = _Check(Verdict(""), target, device)
    cases = check.examined(given)
    findings = [finding.text for finding in check.verdict.findings]
    return ([], findings[0]) if findings else (cases, "")


class _Check:
    """The questions in their order; what one finds decides whether the next is asked."""

    def __init__(self, verdict: Verdict, target: Any, device: str):
        self.verdict, self.target, self.device = verdict, target, device
        self.surrogate = getattr(target, "surrogate", None)
        self.noted: set[tuple[str, str]] = set()

    def run(self, given: list[Case], guessed: bool, compiled: bool) -> None:
        """Check the target on cases, which are guesses or its author's."""
        cases = self.examined(given)
        if set(self.verdict.kinds) == {"dtype"}:
            self.beside_dtype(cases)
            return
        fine = (
            not self.verdict.findings
            and self.ask(probes.is_repeatable, cases)
            and self.ask(probes.is_linear, cases)
            and (self.surrogate is True or self.values(cases))
        )
        if fine:
            self.beyond(cases)
            if guessed and not self.verdict.findings and self.surrogate is not True:
                self.note(probes.on_complex_inputs(cases[0]))
            self.note(probes.under_compile(cases[0]) if compiled else [])
        if self.verdict.findings:
            self.verdict.verdict = "cannot run" if self.verdict.kinds[0] in NOT_RUN else "wrong"
        elif self.verdict.declared == "surrogate":
            self.verdict.verdict = "surrogate"
            self.verdict.largest_error, note = probes.distance_of_surrogate(cases)
            self.note([note])

    def beside_dtype(self, cases: list[Case]) -> None:
        """Check a Function that returns float32 for float64 again in float32; add what is wrong."""
        of_dtype, self.verdict.findings = self.verdict.findings, []
        single = [case.in_float32() for case in cases]
        outputs = [y for case in single for y in case.outputs(*case.args)]
        is_coarse = any(torch.finfo(y.dtype).bits < 32 for y in outputs)  # as float16 is
        if not is_coarse and self.ask(probes.is_linear, single) and self.surrogate is not True:
            self.values(single)
        self.verdict.findings += of_dtype
        self.verdict.verdict = "cannot run" if self.verdict.kinds[0] in NOT_RUN else "wrong"

    def note(self, notes: Iterable[Finding]) -> None:
        """Add what is worth knowing; of several cases that say the same, the first is enough."""
        for note in notes:
            if (note.kind, note.about) not in self.noted:
                self.noted.add((note.kind, note.about))
                self.verdict.notes.append(note.text)

    def examined(self, given: list[Case]) -> list[Case]:
        """The cases to check, after one look at each; the first faulty one ends it."""
        cases: list[Case] = []
        for case in given:
            listed = getattr(self.target, "no_gradient", ())
            passive = tuple(i for i, name in enumerate(case.names) if name in listed)
            try:
                case, findings, notes = examine(replace(case, passive=passive))
            except Crash as crash:
                if case.is_guess:  # forward takes it, and backward may never have been meant to
                    self.note(
                        [finding("guess not counted", given=case.describe(), told=crash.told)]
                    )
                    continue
                self.verdict.inputs.append(case.describe())
                raise
            self.verdict.inputs += [case.describe()] * (case.describe() not in self.verdict.inputs)
            self.verdict.findings = findings
            self.note(notes)
            cases.append(case)
            modules = [arg for arg in case.args if isinstance(arg, torch.nn.Module)]
            is_partial = any(kind.startswith("tried as") for kind, _ in self.noted)
            if is_partial or case.passive or any(list(m.parameters()) for m in modules):
                self.verdict.exact_for = [case.names[i] for i in case.floats]
            if findings:
                break
        return cases

    def ask(self, question: Callable[[Case], list[Finding]], cases: list[Case]) -> bool:
        """Put a question to each case until one has a finding. Returns True if none has."""
        for case in cases:
            try:
                findings = question(case)
            except Exception as error:
                crash = error if isinstance(error, Crash) else Crash(error, "in a check", "crash")
                self.verdict.users_lines = users_lines(crash.error)
                ours = not self.verdict.users_lines and not isinstance(error, RuntimeError | Crash)
                if ours:  # a fault in the check itself
                    raise
                findings = [explain_crash(self.target, crash)]
            if findings:
                self.verdict.findings += [f for f in findings if f.kind not in self.verdict.kinds]
                return False
        return True

    def values(self, cases: list[Case]) -> bool:
        """Compare backward with the numerical gradient on all cases. True if it is right."""
        samples: list[dict[int, Comparison]] = []

        def collect(case: Case) -> list[Finding]:
            samples.append(compare(case))
            return []

        if not self.ask(collect, cases):
            return False
        if any(comparison.symmetric for sample in samples for comparison in sample.values()):
            # One general matrix shows that all are meant to be symmetric, special ones too.
            cases[:] = [replace(case, symmetric=True) for case in cases]
            samples.clear()
            self.ask(collect, cases)
        every = [comparison for sample in samples for comparison in sample.values()]
        self.verdict.largest_error = max((c.largest_error for c in every), default=0.0)
        kinks = {c.case.names[c.position]: k for c in every for k in probes.kinks_among(c)}
        self.verdict.kinks = [*kinks.values()]
        self.note(finding("symmetric", name=c.case.names[c.position]) for c in every if c.symmetric)
        self.verdict.verdict = "kink" if self.verdict.kinks else "exact"
        faulty = {c.position for c in every if c.wrong.any() or c.not_finite.any()}
        self.verdict.findings = [wrong_gradient(i, samples) for i in sorted(faulty)]
        if not faulty:
            self.verdict.findings = [f for c in every for f in probes.outside_slopes(c)][:1]
            flat = not any(c.numerical.any() for c in every)
            if flat and all(map(probes.is_constant, cases)):
                self.verdict.findings = [finding("constant forward")]
        self.elementwise = all(len(sample) == 1 for sample in samples) and all(
            slope_of_each(comparison) is not None for comparison in every
        )
        return not self.verdict.findings

    def beyond(self, cases: list[Case]) -> None:
        """What is asked of a backward that is right on the samples; each on its own."""
        self.ask(probes.needs_every_input, cases)
        self.ask(probes.takes_any_layout, cases)
        self.ask(probes.lets_go_of_memory, cases[:1])
        self.ask(probes.forward_mode, cases[:1])
        if self.surrogate is not True:
            self.ask(lambda case: probes.far_from_zero(case, self.elementwise), cases[:3])
            self.ask(self.special_points, cases[:1])
            if not self.verdict.findings:
                self.ask(self.second_derivative, cases)
        self.ask(self.torch_func, cases[:1])
        for remark in (
            probes.frees_its_buffers,
            probes.backward_in_float32,
            probes.takes_batched_grads,
        ):
            self.note(remark(cases[0]))

    def special_points(self, case: Case) -> list[Finding]:
        points = []
        if hasattr(self.target, "kink_inputs"):
            points = declared_inputs(self.target.kink_inputs, "kink_inputs()", self.device)
        elif self.surrogate is not None:
            return []
        findings, kinks = probes.at_special_points(case, points, bool(points), self.elementwise)
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

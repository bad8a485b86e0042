"""Why do two loss curves differ? Both trainings are stepped again until their first difference."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from lab.comparing.causes import Difference, cause, maker, went_in
from lab.comparing.labels import VALUE_ALONE, differing_keys, printable, settings
from lab.comparing.replay import Result, Training, equal, unequal
from lab.errors import UserError
from lab.recording.reading import RecordedRun

WIDTH = 100


def why(run: RecordedRun, reference: RecordedRun) -> str:
    """Say at which step, in which tensor and from which cause two runs first differ.

    Both are rebuilt from their summaries and trained again, side by side, until they differ.

    Returns:
        A few lines of text; one line if a run can't be rebuilt.
    """
    threads, random_state = torch.get_num_threads(), torch.get_rng_state()
    try:
        return "\n".join(
            textwrap.fill(line, WIDTH, subsequent_indent=" " * 4, break_on_hyphens=False)
            for line in _lines((run, reference))
        )
    finally:
        torch.set_num_threads(threads)
        torch.set_rng_state(random_state)


def _lines(runs: tuple[RecordedRun, RecordedRun]) -> Iterator[str]:
    configs = [settings(run) for run in runs]
    differ = {key: (configs[0].get(key), configs[1].get(key)) for key in differing_keys(configs)}
    names = [_name(differ, i) or f"the {('first', 'second')[i]} run" for i in (0, 1)]
    trainings: list[Training] = []
    for run, name in zip(runs, names, strict=True):
        try:
            trainings.append(Training(run, runs[0].summary.model == runs[1].summary.model))
        except UserError as error:
            yield f"{name} can't be trained again: {error}"
            return
    steps = min(run.summary.steps for run in runs)
    found = _first_difference(trainings[0], trainings[1], steps, differ)
    text = [f"Never: all outputs, gradients and weights are equal in all {steps:,} steps."]
    if found is not None:
        # Said before the trainings continue, as it is about the weights of this step.
        text = [*_where(found, names), f"Cause: {cause(found)}"]
        text.insert(0, _headline(found, _losses_differ_from(found, steps)))
    yield f"Why do {names[0]} and {names[1]} differ?"
    yield from _doubts(runs, names, trainings)
    yield from text


def _name(differ: Mapping[str, tuple[Any, Any]], which: int) -> str:
    said = [
        f"{values[which]}" if key in VALUE_ALONE else f"{key.rpartition('.')[2]}={values[which]}"
        for key, values in differ.items()
    ]
    return printable(" ".join(said))


def _first_difference(
    a: Training, b: Training, steps: int, differ: Mapping[str, tuple[Any, Any]]
) -> Difference | None:
    def compared(kind: str, step: int, *sides: list[Result]) -> Difference | None:
        others = {result.name: result for result in sides[1]}
        for one in sides[0]:
            if (other := others.get(one.name)) and not equal(one.tensor, other.tensor):
                is_output = one.wrt == "output"
                return Difference(
                    "forward" if is_output else kind, step, one, other, (a, b), differ
                )
        return None

    found = compared("start", 0, a.start(), b.start())
    for step in range(steps):
        found = (
            found
            or compared("backward", step, a.forward_and_backward(), b.forward_and_backward())
            or compared("update", step, a.update(), b.update())
        )
        if found:
            break
    return found


def _losses_differ_from(found: Difference, steps: int) -> int | None:
    """The first step with two losses; both trainings continue until then."""
    a, b = found.trainings
    has_loss = found.kind in ("forward", "backward")
    while a.step < steps:
        if not has_loss:
            a.forward_and_backward(), b.forward_and_backward()
        if a.loss != b.loss:
            return a.step
        a.update(), b.update()
        has_loss = False
    return None


def _doubts(
    runs: Sequence[RecordedRun], names: Sequence[str], trainings: Sequence[Training]
) -> Iterator[str]:
    """Where the replay does not give what was recorded, and what can't be replayed."""
    for run, name, training in zip(runs, names, trainings, strict=True):
        if training.mismatch:
            reasons = ["another machine"]
            if run.summary.torch != torch.__version__:
                reasons.append(f"PyTorch {run.summary.torch}, here it is {torch.__version__}")
            if training.config.compile:
                reasons.append("torch.compile, which the replay leaves out")
            yield (
                f"The replay does not give the recorded losses of {name}: {training.mismatch}. "
                f"Possible reasons: {'; '.join(reasons)}. What follows is true of the replay."
            )
    versions = [run.summary.torch for run in runs]
    if versions[0] != versions[1]:
        yield f"PyTorch was {versions[0]} and {versions[1]}: a possible cause, which is not shown."


def _headline(found: Difference, losses_from: int | None) -> str:
    where = {
        "start": "The initial numbers differ",
        "forward": f"The outputs first differ at step {found.step}",
        "backward": f"The gradients first differ at step {found.step}",
        "update": f"The weights first differ after the update of step {found.step}",
    }[found.kind]
    return where + (
        f", so the losses from step {losses_from}." if losses_from is not None
        else ", but the losses are equal."
    )  # fmt: skip


def _where(found: Difference, names: Sequence[str]) -> Iterator[str]:
    """The first tensor that differs, who computed it, the first element and what went in."""
    a, b = found.a, found.b
    yield f"First tensor that differs: {a.name}"
    if found.kind != "start":
        first, second = (maker(*side) for side in zip((a, b), found.trainings, strict=True))
        both = f"{first} in {names[0]}, {second} in {names[1]}"
        yield f"  computed by: {f'{first} in both' if first == second else both}"
    values: list[Any] = [tuple(a.tensor.shape), tuple(b.tensor.shape)]
    which, at = "shape", ()
    if values[0] == values[1]:
        differ = unequal(a.tensor, b.tensor)
        at = tuple(differ.nonzero()[0].tolist())
        which = f"elements: {int(differ.sum()):,} of {differ.numel():,}, the first is {list(at)}"
        which = which if at else "value"
        values = [f"{side.tensor[at].item() + 0.0:.9g}" for side in (a, b)]  # -0.0 + 0.0 is 0.0
    yield f"  {which}: {values[0]} in {names[0]}, {values[1]} in {names[1]}"
    if inputs := went_in(found, at):
        yield f"  from: {inputs}"

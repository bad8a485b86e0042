"""Why do two loss curves differ? Both trainings are stepped again until their first difference."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from lab.comparing.causes import Difference, cause, maker, went_in
from lab.comparing.labels import VALUE_ALONE, differing_keys, printable, settings
from lab.comparing.replay import Pair, Training, equal, pairs, unequal
from lab.errors import UserError
from lab.recording.reading import RecordedRun

WIDTH = 80  # characters of a line
LONGEST_NAME = 30


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
    long_names, names = [_name(differ, 0), _name(differ, 1)], ["the first run", "the second run"]
    if all(1 <= len(name) <= LONGEST_NAME for name in long_names):
        names = long_names
    trainings: list[Training] = []
    for run, name in zip(runs, names, strict=True):
        try:
            trainings.append(Training(run, runs[0].summary.model == runs[1].summary.model))
        except UserError as error:
            yield f"{name} can't be trained again: {error}"
            return
    steps = min(run.summary.steps for run in runs)
    found = _first_difference(trainings[0], trainings[1], steps, differ)
    same_names = trainings[0].parameters.keys() == trainings[1].parameters.keys()
    what = "outputs, gradients and weights" if same_names else "outputs and losses"
    text = [f"Never: all {what} are equal, bit for bit, in all {steps:,} steps."]
    if found is not None:
        # Said before the trainings continue, as it is about the weights of this step.
        text = [*_where(found, names), *f"Cause: {cause(found)}".splitlines()]
        text.insert(0, _headline(found, _losses_differ_from(found, steps)))
    yield f"Why do {' and '.join(filter(None, long_names)) or 'the two runs'} differ?"
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
    for kind, step, results in _stages(a, b, steps):
        for x, y in results:
            if not equal(x.tensor, y.tensor):
                kind = "forward" if x.wrt == "output" else kind
                return Difference(kind, step, x, y, (a, b), differ)
    return None


def _stages(a: Training, b: Training, steps: int) -> Iterator[tuple[str, int, list[Pair]]]:
    """Both trainings in program order, half a step at a time."""
    yield "start", 0, pairs(a.start(), b.start())
    for step in range(steps):
        yield "backward", step, pairs(a.forward_and_backward(), b.forward_and_backward())
        yield "update", step, pairs(a.update(), b.update())


def _losses_differ_from(found: Difference, steps: int) -> int | None:
    """The first step with two losses; both trainings continue until then."""
    a, b = found.trainings
    has_loss = found.kind in ("forward", "backward")
    while a.step < steps:
        if not has_loss:
            a.forward_and_backward(), b.forward_and_backward()
        if repr(a.loss) != repr(b.loss):
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
            compiled = " with torch.compile" if training.config.compile else ""
            yield (
                f"The replay does not give the recorded losses of {name}: {training.mismatch}. "
                f"That run used PyTorch {run.summary.torch}{compiled}, perhaps on another machine; "
                f"this is PyTorch {torch.__version__}. What follows is about the replay."
            )
    first, second = (run.summary.torch for run in runs)
    if first != second:
        yield f"The runs used PyTorch {first} and {second}: a possible cause, but not shown."


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

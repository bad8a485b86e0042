"""Why do two curves differ? Both trainings are stepped again until their first difference."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from lab.comparing.causes import Difference, cause, maker, went_in
from lab.comparing.labels import differing_keys, labels, settings, steps_done, typed_keys
from lab.comparing.replay import Training, equal, pairs, unequal
from lab.errors import UserError
from lab.recording.reading import RecordedRun

WIDTH = 80  # characters of a line
LONGEST_NAME = 30
PLAIN_NAMES = ["the first run", "the second run"]
HEADLINES = {
    "start": "The initial numbers differ",
    "forward": "The outputs first differ at step {}",
    "backward": "The gradients first differ at step {}",
    "update": "The weights first differ after the update of step {}",
}


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
    keys = differing_keys(configs, typed_keys(runs))
    differ = {key: (configs[0].get(key), configs[1].get(key)) for key in keys}
    long_names = labels(configs, keys, {}, PLAIN_NAMES)
    names = long_names if max(map(len, long_names)) <= LONGEST_NAME else PLAIN_NAMES
    steps = min(map(steps_done, runs))
    trainings: list[Training] = []
    for run, name in zip(runs, names, strict=True):
        try:
            trainings.append(Training(run, steps, runs[0].summary.model == runs[1].summary.model))
        except UserError as error:
            yield f"{name} can't be trained again: {error}"
            return
    a, b = trainings
    found = _first_difference(a, b, differ)
    same_names = a.parameters.keys() == b.parameters.keys()
    what = "outputs, gradients and weights" if same_names else "outputs and losses"
    text = [f"Never: all {what} are equal, bit for bit, in all {steps:,} steps."]
    if found is not None:
        headline = HEADLINES[found.kind].format(a.step)
        # Said before the trainings continue, as it is about the weights of this step.
        text = [*_where(found, names), *f"Cause: {cause(found)}".splitlines()]
        text.insert(0, headline + _effect(a, b))
    yield f"Why do {' and '.join(long_names)} differ?"
    yield from _doubts(runs, names, trainings)
    yield from text


def _first_difference(
    a: Training, b: Training, differ: Mapping[str, tuple[Any, Any]]
) -> Difference | None:
    while (kind := a.advance()) and b.advance():
        for x, y in pairs(a, b):
            if not equal(x.tensor, y.tensor):
                kind = "forward" if x.wrt == "output" else kind
                return Difference(kind, x, y, (a, b), differ)
    return None


def _effect(a: Training, b: Training) -> str:
    """From which step on the losses differ; both trainings continue until then."""
    while repr(a.loss) == repr(b.loss):
        if not (a.advance() and b.advance()):
            return ", but the losses are equal."
    return f", so the losses from step {a.step}."


def _doubts(
    runs: Sequence[RecordedRun], names: Sequence[str], trainings: Sequence[Training]
) -> Iterator[str]:
    """Where the replay does not give what was recorded, and what can't be replayed."""
    for run, name, training in zip(runs, names, trainings, strict=True):
        if training.mismatch:
            compiled = " with torch.compile" if training.config.compile else ""
            yield (
                f"The replay does not give the recorded losses of {name}: {training.mismatch}. "
                "Perhaps the code of a Function has changed since, or draws random numbers of its "
                f"own; or that run, of PyTorch {run.summary.torch}{compiled}, used another machine "
                f"than this one, of PyTorch {torch.__version__}. What follows is about the replay."
            )
    first, second = (run.summary.torch for run in runs)
    if first != second:
        yield f"The runs used PyTorch {first} and {second}: a possible cause, but not shown."


def _where(found: Difference, names: Sequence[str]) -> Iterator[str]:
    """The first tensor that differs, who computed it, the first element and what went in."""
    a, b = found.a.tensor, found.b.tensor
    yield f"First tensor that differs: {found.a.name}"
    if found.kind != "start":
        first, second = map(maker, (found.a, found.b), found.trainings)
        both = f"{first} in {names[0]}, {second} in {names[1]}"
        yield f"  computed by: {f'{first} in both' if first == second else both}"
    if a.shape != b.shape:
        yield f"  shape: {tuple(a.shape)} in {names[0]}, {tuple(b.shape)} in {names[1]}"
        return
    differ = unequal(a, b)
    at = tuple(differ.nonzero()[0].tolist())
    count = f"elements: {int(differ.sum()):,} of {differ.numel():,}, the first is {list(at)}"
    values = [f"{tensor[at].item() + 0.0:.9g}" for tensor in (a, b)]  # -0.0 + 0.0 is 0.0
    yield f"  {count if at else 'value'}: {values[0]} in {names[0]}, {values[1]} in {names[1]}"
    if inputs := went_in(found, at):
        yield f"  from: {inputs}"

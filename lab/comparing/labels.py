"""What to call a run beside others of its problem: by the settings that set it apart."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from typing import Any

from lab.jsonable import printable
from lab.recording.reading import RecordedRun

OF_A_RUN = ("function", "optimizer", "device", "dtype", "seed")
# Keys whose value says enough without its key: `adam`, not `optimizer=adam`.
VALUE_ALONE = ("function", "optimizer", "model", "data", "device", "dtype")
# Keys that say how a run is watched or stored. No curve depends on them.
IGNORED_KEYS = ("resume", "progress", "log_every", "flush_seconds", "checkpoint_every")


def settings(run: RecordedRun) -> dict[str, Any]:
    """What was set for a run, flat, without the keys on which no curve depends."""
    config = {key: value for key, value in run.config.items() if key not in IGNORED_KEYS}
    return config | {key: getattr(run.summary, key) for key in OF_A_RUN}


def typed_keys(runs: Sequence[RecordedRun]) -> set[str]:
    """The keys that the command line of any of the runs set, but for those of a function.

    What was changed in a function is part of its name.
    """
    typed = (override for run in runs for override in run.summary.overrides or ())
    keys = {override.lstrip("+~").partition("=")[0] for override in typed}
    return {key for key in keys if not key.startswith("function.")}


def differing_keys(configs: Sequence[dict[str, Any]], typed: Collection[str] = ()) -> list[str]:
    """The keys in which configs differ, choices first.

    A choice stands for the keys that it sets: where `adam` is compared with `sgd`, lr is not among
    the keys, unless two configs with `adam` differ in lr.

    Args:
        typed: keys that somebody set, so that no choice stands for them, and a config without one
            differs from a config with it.
    """
    found: dict[tuple[str, str], str] = {}
    every = dict.fromkeys((*VALUE_ALONE, *(key for config in configs for key in config)))
    # Sizes of the data and what was typed come before what a model takes from them.
    first = {*VALUE_ALONE, *typed}
    for key in sorted(every, key=lambda key: key not in first and not key.startswith("data.")):
        section = key.partition(".")[0]
        # The function sets the layers of a model.
        choices = {"function", "model"} if section == "model" else {section}
        if key == section or key in typed:
            choices = set()
        values = defaultdict(set)
        for config in configs:
            if key in config or key in typed:
                made_by = tuple(config.get(choice) for choice in sorted(choices))
                values[made_by].add(repr(config.get(key)))
        if any(len(group) > 1 for group in values.values()):
            # `model.layout: ${function.layout}` is the same difference once more.
            found.setdefault((last_part(key), repr([config.get(key) for config in configs])), key)
    return list(found.values())


def usual_settings(configs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The settings that more than half of the configs have."""
    counts = Counter((key, repr(value)) for config in configs for key, value in config.items())
    return {
        key: value
        for config in configs
        for key, value in config.items()
        if 2 * counts[key, repr(value)] > len(configs)
    }


def labels(
    configs: Sequence[dict[str, Any]],
    keys: Sequence[str],
    usual: dict[str, Any],
    names: Sequence[str],
) -> list[str]:
    """Label each config by its values of `keys`, the first always, others where they are unusual.

    A config without any of the keys goes by its name. No two labels are equal: the second of two
    is numbered.
    """
    labelled, uses = [], Counter[str]()
    for config, name in zip(configs, names, strict=True):
        said = [k for k in keys if k in config and (k == keys[0] or usual.get(k) != config[k])]
        text = " ".join(printable(_setting(key, config[key])) for key in said) or name
        uses[text] += 1
        labelled.append(text if uses[text] == 1 else f"{text} ({uses[text]})")
    return labelled


def _setting(key: str, value: Any) -> str:
    return as_typed(value) if key in VALUE_ALONE else f"{last_part(key)}={as_typed(value)}"


def steps_done(run: RecordedRun) -> int:
    """The number of steps, of which the curve may hold only every tenth."""
    recorded = int(run.steps[-1]) + 1 if len(run.steps) else 0
    return max(run.summary.steps, recorded)


def last_part(key: str) -> str:
    """What a key is called: `lr` for `optimizer.lr`."""
    return key.rpartition(".")[2]


def as_typed(value: Any) -> str:
    """A value as one types it.

    >>> as_typed(None), as_typed(True), as_typed(1e-6), as_typed("relu")
    ('null', 'true', '1e-06', 'relu')
    """
    if isinstance(value, float):
        return f"{value:g}"
    return value if isinstance(value, str) else json.dumps(value)

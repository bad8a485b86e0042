"""What to call a run beside others: by the settings that set it apart from them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from lab.recording.reading import RecordedRun

# Keys whose value says enough without its key: `adam`, not `optimizer=adam`.
VALUE_ALONE = ("function", "optimizer", "model", "data", "device", "dtype")
# The choices that set the keys of a section of the config.
SET_BY = {key: (key,) for key in ("function", "optimizer", "data")} | {
    "model": ("model", "function", "data")
}
IDENTITY = ("function", "optimizer", "device", "dtype", "seed")  # fields of every run
# Keys that say how a run is watched or stored. No curve depends on them.
IGNORED_KEYS = ("resume", "progress", "log_every", "flush_seconds", "checkpoint_every")


def labels(runs: Sequence[RecordedRun], names: Sequence[str]) -> list[str]:
    """Label each run by what differs between the runs; where nothing does, by its name.

    A choice stands for the keys that it sets: `adam`, not `adam lr=0.001`, unless two runs of
    `adam` differ in lr. A run without a step keeps its name, and has no influence on the other
    labels: its config may be the very reason why it failed.
    """
    configs = {i: settings(run) for i, run in enumerate(runs) if len(run.steps)}
    keys = differing_keys(list(configs.values()))
    texts = {
        i: " ".join(_setting(key, config[key]) for key in keys if key in config)
        for i, config in configs.items()
    }
    uses = Counter(texts.values())
    labelled = [printable(name) for name in names]
    for i, text in texts.items():
        if text:
            labelled[i] = text if uses[text] == 1 else f"{text} ({labelled[i]})"
    return labelled


def settings(run: RecordedRun) -> dict[str, Any]:
    """What was set for a run, flat, without the keys on which no curve depends."""
    ran_on = {
        key: getattr(run, key) for key in ("function", "optimizer", "device", "dtype", "seed")
    }
    return {key: value for key, value in run.config.items() if key not in IGNORED_KEYS} | ran_on


def differing_keys(configs: Sequence[dict[str, Any]]) -> list[str]:
    """The keys in which configs differ: choices first, none that only follows another."""
    found: dict[tuple[str, str], str] = {}
    for key in dict.fromkeys(
        (*VALUE_ALONE, "seed", *(key for config in configs for key in config))
    ):
        # A key inside a section is compared only between runs in which the same choice set it.
        section = key.partition(".")[0]
        choices = () if section == key else SET_BY.get(section, ())
        values = defaultdict(set)
        for config in configs:
            values[tuple(config.get(choice) for choice in choices)].add(repr(config.get(key)))
        if any(len(group) > 1 for group in values.values()):
            # `model.features: ${data.features}` follows data.features.
            found.setdefault(
                (key.rpartition(".")[2], repr([config.get(key) for config in configs])), key
            )
    return list(found.values())


def _setting(key: str, value: Any) -> str:
    text = printable(f"{value:g}" if isinstance(value, float) else str(value))
    return text if key in VALUE_ALONE else f"{key.rpartition('.')[2]}={text}"


def printable(text: str) -> str:
    r"""The text with an escape in place of what no terminal or font can show.

    >>> print(printable("two\nlines, no UTF-8: \udcff"))
    two\nlines, no UTF-8: \udcff
    """
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)

"""What to call a run beside others: by the settings that set it apart from them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from lab.recording.reading import RecordedRun

# Keys whose value says enough without its key: `adam`, not `optimizer=adam`.
VALUE_ALONE = ("function", "optimizer", "model", "data", "device", "dtype")
OF_A_RUN = ("function", "optimizer", "device", "dtype", "seed")
MODEL_SET_BY = ("function", "model", "data")  # the choices that set the keys of the model
# Keys that say how a run is watched or stored. No curve depends on them.
IGNORED_KEYS = ("resume", "progress", "log_every", "flush_seconds", "checkpoint_every")


def labels(
    configs: Sequence[dict[str, Any]], keys: Sequence[str], names: Sequence[str]
) -> list[str]:
    """Label each config by its values of `keys`, or by its name where it has none of them.

    No two labels are equal: the second of two is numbered.
    """
    uses: Counter[str] = Counter()
    labelled = []
    for config, name in zip(configs, names, strict=True):
        text = " ".join(_setting(key, config[key]) for key in keys if key in config) or name
        uses[text] += 1
        labelled.append(text if uses[text] == 1 else f"{text} ({uses[text]})")
    return labelled


def settings(run: RecordedRun) -> dict[str, Any]:
    """What was set for a run, flat, without the keys on which no curve depends."""
    config = {key: value for key, value in run.config.items() if key not in IGNORED_KEYS}
    return config | {key: getattr(run, key) for key in OF_A_RUN}


def differing_keys(configs: Sequence[dict[str, Any]]) -> list[str]:
    """The keys in which configs differ, choices first.

    A choice stands for the keys that it sets: where `adam` is compared with `sgd`, lr is not among
    the keys, unless two configs with `adam` differ in lr.
    """
    found: dict[tuple[str, str], str] = {}
    for key in dict.fromkeys(
        (*VALUE_ALONE, "seed", *(key for config in configs for key in config))
    ):
        # A key inside a section is compared only between runs in which the same choices set it.
        section = key.partition(".")[0]
        choices = MODEL_SET_BY if section == "model" else (section,)
        values = defaultdict(set)
        for config in configs:
            if key in config:
                values[tuple(config.get(c) for c in choices if c != key)].add(repr(config[key]))
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

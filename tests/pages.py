"""Pages of Markdown with examples, pasted into a real interpreter as they are printed."""

from __future__ import annotations

import builtins
import code
import contextlib
import doctest
import io
import re
import sys
import types

import pytest
import torch

# Lines after prompts, then what they print, up to a blank line, the next prompt or a fence.
EXAMPLE = re.compile(r"^(>>> .*\n(?:\.\.\..*\n)*)((?:(?!>>> |```|\n).*\n)*)", re.MULTILINE)
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS  # long outputs are wrapped, times vary


class Console(code.InteractiveConsole):
    """Python's own, whose tracebacks go to stdout, where all other output is."""

    def write(self, data: str) -> None:
        sys.stdout.write(data)


def paste(text: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Type the lines after each prompt into an interpreter; returns how many examples there are.

    Fails where a block needs one more line to be complete, or where another output than the one
    in the text is seen.
    """
    main = types.ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", main)
    monkeypatch.setattr(builtins, "_", None, raising=False)  # the last result
    monkeypatch.setattr(sys, "displayhook", sys.__displayhook__)
    console = Console(vars(main))
    examples = EXAMPLE.findall(text)
    with torch.random.fork_rng():
        for source, want in examples:
            with contextlib.redirect_stdout(io.StringIO()) as output:
                for line in source.splitlines():
                    unfinished = console.push(line[4:])
            assert not unfinished, f"this block needs a line with `...` at its end:\n{source}"
            seen = output.getvalue()
            fits = doctest.OutputChecker().check_output(want, seen, FLAGS)
            assert fits, f"{source}printed\n{seen}instead of\n{want}"
    return len(examples)

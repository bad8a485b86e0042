"""What the screen shows while a run trains: a bar in a terminal, a few lines elsewhere."""

from __future__ import annotations

import sys
from contextlib import suppress

from tqdm import tqdm

from lab.config import Config

BAR_SECONDS = 0.25  # between two redraws
LINES = 10  # of a long run; a short one has a line for every 100 steps


class Progress:
    """The bar or the lines of one run, on stderr.

    Args:
        config: of its keys matter `steps`, and `progress`: null for a bar in a terminal and lines
            elsewhere, true for a bar, false for nothing.
        first_step: where the run begins.

    Attributes:
        bar: of tqdm; disabled where there are lines, or nothing.
    """

    def __init__(self, config: Config, first_step: int) -> None:
        self.bar = tqdm(
            total=config.steps,
            initial=first_step,
            unit=" steps",
            mininterval=BAR_SECONDS,
            dynamic_ncols=True,
            disable=None if config.progress is None else not config.progress,
        )
        self._has_lines = config.progress is None and self.bar.disable
        self._line_every = max(100, config.steps // LINES)
        self._last_step = config.steps - 1

    def advance(self) -> None:
        """Count a step; a reader of stderr that has ended, or a full disk, stops no training."""
        with suppress(OSError):
            self.bar.update()

    def close(self) -> None:
        """Leave the bar as it is."""
        with suppress(OSError):
            self.bar.close()

    def has_line(self, step: int) -> bool:
        """Whether this step is one of the lines."""
        is_due = step in (0, self._last_step) or (step + 1) % self._line_every == 0
        return self._has_lines and is_due

    def show(self, step: int, loss: float) -> None:
        """Show the loss at a step in its line, or in the bar when that is drawn next."""
        if self.has_line(step):
            with suppress(OSError):
                print(f"step {step:>{len(str(self._last_step))}}  loss {loss:.6g}", file=sys.stderr)
        if not self.bar.disable:
            self.bar.set_postfix_str(f"loss {loss:.6g}", refresh=False)

"""What the screen shows while a run trains: a bar in a terminal, a few lines elsewhere."""

from __future__ import annotations

import sys
import time

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
    """

    def __init__(self, config: Config, first_step: int) -> None:
        self._bar = tqdm(
            total=config.steps,
            initial=first_step,
            unit=" steps",
            mininterval=BAR_SECONDS,
            dynamic_ncols=True,
            disable=None if config.progress is None else not config.progress,
        )
        self.has_lines = config.progress is None and self._bar.disable
        self._line_every = max(100, config.steps // LINES)
        self._last_step = config.steps - 1
        self._next_show = time.perf_counter()

    def is_due(self, step: int) -> bool:
        """Whether the loss of this step is to be shown."""
        if self.has_lines:
            return step in (0, self._last_step) or (step + 1) % self._line_every == 0
        is_time = time.perf_counter() >= self._next_show or step == self._last_step
        return is_time and not self._bar.disable

    def show(self, step: int, loss: float) -> None:
        """Show the loss at a step."""
        if self.has_lines:
            print(f"step {step:>{len(str(self._last_step))}}  loss {loss:.6g}", file=sys.stderr)
        self._bar.set_postfix_str(f"loss {loss:.6g}", refresh=False)
        self._next_show = time.perf_counter() + BAR_SECONDS

    def update(self) -> None:
        """Count one step."""
        self._bar.update()

    def close(self) -> None:
        """Leave the bar as it is."""
        self._bar.close()

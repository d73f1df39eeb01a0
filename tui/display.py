"""What a headless run shows while it works: progress, cost so far and time left, on stderr.

`rich` redraws a few lines on a terminal; `plain` prints one line a change and is the screen-reader mode; `log`
adds the seconds since the start to each; `none` is silent. A display is told events and knows no model.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

from mecharule_ops.errors import UsageError
from mecharule_ops.events import CostChanged, Event, StageProgress
from tui.narration import RunningTotals, narrate

if TYPE_CHECKING:
    from tui.rich_display import RichDisplay

DISPLAYS = ("rich", "plain", "log", "none")
SECONDS_BETWEEN_LINES = 5.0
"""A plain display repeats the progress of one stage at most this often."""


def make_display(name: str | None, stream: TextIO | None = None) -> LineDisplay | RichDisplay:
    """The display of that name on stderr; None picks `rich` on a terminal and `plain` elsewhere.

    It is told every event, and closed once, also after an error.
    """
    stream = stream or sys.stderr
    name = name or ("rich" if stream.isatty() else "plain")
    if name not in DISPLAYS:
        raise UsageError(
            f"expected a display of {', '.join(DISPLAYS)}, got {name!r}; the screens have no verb"
        )
    if name == "rich":
        from tui.rich_display import RichDisplay

        return RichDisplay(stream)
    return LineDisplay(stream, name)


class LineDisplay:
    """One line a change; `log` adds the seconds since the start."""

    def __init__(self, stream: TextIO, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream, self._name, self._clock = stream, name, clock
        self._progress = RunningTotals(clock)
        self._last_line = clock()

    def show(self, event: Event) -> None:
        self._progress.apply(event)
        sentence = narrate(event)
        if sentence is None and isinstance(event, StageProgress | CostChanged):
            if self._clock() - self._last_line < SECONDS_BETWEEN_LINES:
                return
            sentence = self._progress.line()
        if sentence is None or self._name == "none":
            return
        self._last_line = self._clock()
        prefix = f"{self._progress.elapsed:8.1f} " if self._name == "log" else ""
        self._stream.write(f"{prefix}{sentence}\n")
        self._stream.flush()

    def close(self) -> None:
        self._stream.flush()

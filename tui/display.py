"""What a headless run shows while it works: the sentences of its events, cost so far and time left, on stderr.

`rich` redraws a few lines on a terminal; `plain` prints one line a change and is the screen-reader mode; `none` is
silent. A display is told events and knows no model.
"""

import io
import sys
from typing import TextIO

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from agent.verbs.command_line import DISPLAYS
from mecharule_ops import errors, events
from tui.session import Session, narrate
from tui.words import Activity, clock, time_left

SECONDS_BETWEEN_LINES = 5.0
"""A plain display repeats the progress of one stage at most this often."""


class LineDisplay:
    """One line a change; its session knows the stage at work, the cost and the time left."""

    def __init__(self, stream: TextIO) -> None:
        self.session = Session()
        self._stream, self._last_line = stream, self.session.clock()
        self.session.activity = Activity.WORKING

    def show(self, event: events.Event) -> None:
        """Say an event, or count it; of nodes only their cost is told."""
        if not isinstance(event, events.NodeAsked | events.NodeTested):
            self.session.show(event)
        sentence = narrate(event)
        if sentence is not None:
            self._say(sentence)
        elif isinstance(event, events.StageProgress | events.CostChanged):
            self._count()

    def _say(self, sentence: str) -> None:
        self._last_line = self.session.clock()
        print(sentence, file=self._stream, flush=True)

    def _count(self) -> None:
        if self.session.clock() - self._last_line >= SECONDS_BETWEEN_LINES:
            self._say(self.line())

    def line(self) -> str:
        """`search attn_head 1→0 120/270 · 1,204 ablations · 0:41 · 1 to 2 min left`."""
        stage, cost = self.session.state.stage, self.session.state.cost
        parts = [stage.stage + (f" {stage.done:,}/{stage.total:,}" if stage.total else "")] if stage else []
        parts += [f"{cost.group_evaluations:,} ablations ({cost.reused:,} reused)"] if cost else []
        parts.append(clock(self.session.elapsed))
        return " · ".join([*parts, time_left(self.session.state.left)])

    def close(self) -> None:
        """Say nothing more."""


class RichDisplay(LineDisplay):
    """On a terminal: sentences scroll; the last lines hold a bar, the cost and the time left."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._console = Console(file=stream, highlight=False)
        self._live = Live(console=self._console, transient=True, get_renderable=self._draw)

    def show(self, event: events.Event) -> None:
        """Draw from the first event on: before it a price may be asked for on the same stream."""
        self._live.start()
        super().show(event)

    def _draw(self) -> Table:
        stage, grid = self.session.state.stage, Table.grid(padding=(0, 1))
        bar = ProgressBar(total=stage.total, completed=stage.done, width=24) if stage and stage.total else ""
        grid.add_row(bar, Text(self.line()))
        return grid

    def _say(self, sentence: str) -> None:
        self._console.print(Text(sentence, "bold red" if sentence.startswith("warning: ") else ""))

    def _count(self) -> None:
        """The bar is drawn by itself."""

    def close(self) -> None:
        """Take the bar away."""
        self._live.stop()


def make_display(name: str | None, stream: TextIO | None = None) -> LineDisplay:
    """The display of that name on stderr; None picks `rich` on a terminal and `plain` elsewhere.

    It is told every event, and closed once, also after an error.
    """
    stream = stream or sys.stderr
    name = name or ("rich" if stream.isatty() else "plain")
    if name not in DISPLAYS:
        raise errors.UsageError(f"expected a display of {', '.join(DISPLAYS)}, got {name!r}")
    return (
        RichDisplay(stream) if name == "rich" else LineDisplay(stream if name == "plain" else io.StringIO())
    )

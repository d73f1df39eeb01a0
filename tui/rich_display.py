"""The display of a headless run that redraws a few lines on a terminal."""

from __future__ import annotations

from typing import TextIO

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from mecharule_ops.events import Event, Notice
from tui.narration import RunningTotals, narrate


class RichDisplay:
    """Sentences scroll; the last lines hold a bar, the cost and the time left."""

    def __init__(self, stream: TextIO) -> None:
        self._progress = RunningTotals()
        self._console = Console(file=stream, highlight=False)
        self._live = Live(
            console=self._console, refresh_per_second=5, transient=True, get_renderable=self._draw
        )
        self._live.start()

    def _draw(self) -> Table:
        grid = Table.grid(padding=(0, 1))
        bar = ProgressBar(total=self._progress.total, completed=self._progress.done, width=24)
        grid.add_row(bar if self._progress.total else Text(""), Text(self._progress.line()))
        return grid

    def show(self, event: Event) -> None:
        self._progress.apply(event)
        sentence = narrate(event)
        if sentence is not None:
            warned = isinstance(event, Notice) and event.level == "warning"
            self._console.print(Text(sentence, "bold red" if warned else ""))

    def close(self) -> None:
        self._live.stop()

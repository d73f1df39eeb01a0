"""A pane of text to be read: the neuron card and the figures."""

from __future__ import annotations

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Static


class ReadingPane(VerticalScroll, can_focus=True):
    """Text that scrolls; redrawn only when it has changed."""

    def __init__(self, help: str, *, id: str) -> None:
        super().__init__(id=id)
        self.about = help
        self.text = Text()

    def compose(self) -> ComposeResult:
        yield Static(self.text, markup=False)

    def show(self, text: Text) -> None:
        """Put this text in place of what is shown."""
        if text != self.text:
            self.text = text
            self.query_one(Static).update(text)

    def move(self, lines: int) -> None:
        """Scroll by lines."""
        self.scroll_relative(y=lines, animate=False)


CARD_HELP = (
    "What is known of the unit or group under the tree's cursor: flips on the associated slice D+ and the "
    "unrelated slice D-, each with its interval, then rule, controls, certificate and flipped examples."
)
FIGURES_HELP = (
    "Pictures of the run: agonists per layer, flip rates with intervals, records flipped by layer, and recall "
    "by strength where an exhaustive run is there to compare with."
)

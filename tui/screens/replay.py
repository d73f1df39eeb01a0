"""Replay: the same panes at any moment of a recorded search."""

from __future__ import annotations

from rich.text import Text

from mecharule_ops.thresholds import TAU
from tui.commands import bindings_of
from tui.headline import headline, progress
from tui.layout import PANES
from tui.neuron_card import OnFile
from tui.panes.tree import TreePane
from tui.pictures import bar
from tui.screens.base import Line, fitted, hint_parts
from tui.screens.pane_commands import PaneCommands
from tui.session import Session
from tui.timeline import Timeline
from tui.tree_rows import why_opened

LEAPS = 20
"""Leaps from one end to the other."""


class ReplayScreen(PaneCommands):
    """A recorded run with a place in time."""

    NAME = "replay"
    BINDINGS = bindings_of("replay")
    panes = tuple(pane for pane in PANES if pane != "chat")

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.timeline = Timeline(session.events)
        self.position = len(self.timeline)
        self.state = self.timeline.at(self.position)

    def go(self, position: int) -> None:
        """Show the run after so many events."""
        self.position = min(max(position, 0), len(self.timeline))
        self.state = self.timeline.at(self.position)
        self.draw()

    @property
    def on_file(self) -> OnFile:
        """Before its end a run had neither findings nor certificates."""
        return super().on_file if self.state.finished else OnFile()

    def draw_lines(self) -> None:
        total = len(self.timeline)
        self.query_one("#headline", Line).say(headline(self.state, "REPLAY", ""))
        line = Text(f" {self.position:,}/{total:,} ", no_wrap=True)
        line.append(f"[{bar(self.position / total if total else 1.0, 20)}]", "cyan")
        self.query_one("#progress", Line).say(line.append(f" {progress(self.state, self.session.elapsed)}"))
        words = {"forward": "on", "backward": "back", "leap": "leap", "why-opened": "why", "back": "leave"}
        names = ("backward", "forward", "leap", "why-opened", "ledger", "follow", "back", "help")
        keys = [*hint_parts("replay", names, words), "^P palette"]
        self.query_one("#status", Line).say(fitted(keys, self.app.size.width))

    def do_forward(self) -> None:
        self.go(self.position + 1)

    def do_backward(self) -> None:
        self.go(self.position - 1)

    def do_leap(self) -> None:
        self.go(self.position + max(1, len(self.timeline) // LEAPS))

    def do_leap_back(self) -> None:
        self.go(self.position - max(1, len(self.timeline) // LEAPS))

    def do_start_of_run(self) -> None:
        self.go(0)

    def do_end_of_run(self) -> None:
        self.go(len(self.timeline))

    def do_why_opened(self) -> None:
        node, view = self.query_one(TreePane).node, self.view
        if view is None or node is None or node not in view.nodes:
            self.owner.tell("move the cursor of the tree to a group or unit first")
            return
        tau = self.state.header.tau if self.state.header else TAU
        self.owner.tell(why_opened(view, node, tau))

"""The panes of a run and which of them fit: how they stand at each size, which has the focus, which is maximised."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from functools import partialmethod
from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.events import DescendantFocus, Resize
from textual.widget import Widget
from textual.widgets import Static

from tui.chat_pane import ChatPane
from tui.rule_rows import HEADER
from tui.screens.common import CommandScreen, Line
from tui.text_panes import CARD_HELP, FIGURES_HELP, RULES_HELP, ReadingPane, TextTable
from tui.tree_pane import TreePane
from tui.words import said

ROOM_FOR_TITLES = 50
"""Columns below which the line of panes names only the one on show."""
_TITLES = {
    "tree": "F3 tree",
    "rules": "F4 rules",
    "figures": "F5 figures",
    "card": "F6 card",
    "chat": "F2 chat",
}
PANES = ("tree", "rules", "figures", "card", "chat")
"""In the order in which they are named on the screen."""
WIDE, TABS = 120, 80
LEAST_WIDTH, LEAST_HEIGHT = 40, 10


class Arrangement(Enum):
    """The value is the style class of the screen."""

    COLUMNS = "columns"
    """Two columns: tree, rules or figures, and the card; chat below."""
    TABBED = "tabbed"
    """One of tree, rules, figures and card; chat below."""
    SINGLE = "single"
    """One pane at a time."""
    TINY = "tiny"
    """Too small: one line says what to run instead."""


def arrangement(width: int, height: int) -> Arrangement:
    """The arrangement of a terminal of so many columns and rows."""
    if width < LEAST_WIDTH or height < LEAST_HEIGHT:
        return Arrangement.TINY
    if width < TABS:
        return Arrangement.SINGLE
    return Arrangement.COLUMNS if width >= WIDE else Arrangement.TABBED


def panes_shown(how: Arrangement, chosen: Sequence[str], maximised: bool) -> frozenset[str]:
    """The panes on show; `chosen` are those asked for, the latest last, and hold one of each kind."""
    if how is Arrangement.TINY:
        return frozenset()
    if maximised or how is Arrangement.SINGLE:
        return frozenset({chosen[-1]})
    left = ("tree", "rules", "figures")
    if how is Arrangement.COLUMNS:
        return frozenset({_latest(chosen, left), "card", "chat"})
    return frozenset({_latest(chosen, (*left, "card")), "chat"})


def _latest(chosen: Sequence[str], among: Sequence[str]) -> str:
    return next(pane for pane in reversed(chosen) if pane in among)


class PanedScreen(CommandScreen):
    """A screen of the five panes; what they show is the business of `RunView`."""

    panes: ClassVar[tuple[str, ...]] = PANES

    def __init__(self) -> None:
        super().__init__()
        self.chosen: list[str] = ["card", "chat", "tree"]
        """Panes asked for, the latest last."""
        self.maximised = False

    def compose(self) -> ComposeResult:
        yield Line(id="headline", classes="title")
        yield Line(id="tabs")
        with Horizontal(id="upper"):
            yield TreePane(id="tree")
            yield TextTable(HEADER, RULES_HELP, id="rules")
            yield ReadingPane(FIGURES_HELP, id="figures")
            yield ReadingPane(CARD_HELP, id="card")
        yield ChatPane(id="chat")
        yield Line(id="progress")
        yield Line(id="status", classes="status")
        yield Static("too small a terminal: use `mecharule run … --display plain`", id="tiny", markup=False)

    def on_mount(self) -> None:
        self.place_panes()
        self.query_one(TreePane).focus()
        self.call_after_refresh(self.draw)

    def draw(self) -> None:
        """Draw what the panes show."""

    @property
    def arrangement(self) -> Arrangement:
        return arrangement(self.app.size.width, self.app.size.height)

    @property
    def shown(self) -> frozenset[str]:
        """The panes on show."""
        return panes_shown(self.arrangement, self.chosen, self.maximised) & frozenset(self.panes)

    def on_resize(self, event: Resize) -> None:
        self.place_panes()
        self.call_after_refresh(self.draw)

    def place_panes(self) -> None:
        """Show the panes that fit and were asked for."""
        how, shown = self.arrangement, self.shown
        for each in Arrangement:
            self.set_class(each is how, each.value)
        self.set_class(self.maximised, "maximised")
        self.set_class(self.chosen[-1] == "chat", "talking")
        for pane in PANES:
            self.query_one(f"#{pane}").display = pane in shown
        tiny = how is Arrangement.TINY
        for line in ("headline", "tabs", "progress", "status", "upper"):
            self.query_one(f"#{line}").display = not tiny and (line != "upper" or shown != {"chat"})
        self.query_one("#tiny").display = tiny
        self._say_tabs(shown)

    def _say_tabs(self, shown: frozenset[str]) -> None:
        """The panes by key; those on show in brackets, so that it needs no colour."""
        text = said("")
        short = self.app.size.width < ROOM_FOR_TITLES
        for pane in self.panes:
            key, name = _TITLES[pane].split()
            title = key if short and pane not in shown else f"{key} {name}"
            text.append(f"[{title}]" if pane in shown else f" {title} ", "bold" if pane in shown else "dim")
        self.query_one("#tabs", Line).say(text)

    def choose(self, pane: str) -> None:
        """Bring a pane to the front and work in it."""
        self.chosen = [*(other for other in self.chosen if other != pane), pane]
        self.place_panes()
        # Not `focus()`, which takes effect later: a key pressed at once would go to the old pane.
        self.set_focus(self.query_one("#ask" if pane == "chat" else f"#{pane}"))
        self.call_after_refresh(self.draw)

    do_pane_tree = partialmethod(choose, "tree")
    do_pane_rules = partialmethod(choose, "rules")
    do_pane_figures = partialmethod(choose, "figures")
    do_pane_card = partialmethod(choose, "card")
    do_pane_chat = partialmethod(choose, "chat")

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        pane = self.pane_of(event.widget)
        if pane is not None and pane != self.chosen[-1]:
            self.chosen = [*(other for other in self.chosen if other != pane), pane]
            self.place_panes()

    def pane_of(self, widget: Widget | None) -> str | None:
        """The pane that a widget is in."""
        for each in widget.ancestors_with_self if widget else ():
            if each.id in self.panes:
                return each.id
        return None

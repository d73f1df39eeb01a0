"""The panes of a run and which of them fit: how they stand at each size, which has the focus, which is maximised."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from functools import partialmethod

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.events import DescendantFocus, Resize
from textual.widget import Widget
from textual.widgets import Static

from tui.chat_pane import ChatPane
from tui.found import FOUND_HELP
from tui.screens.common import CommandScreen, Line
from tui.text_panes import ReadingPane
from tui.tree_pane import TreePane
from tui.unit_map import MapPane

PANES = {"map": "1 map", "found": "2 found", "tree": "3 tree", "chat": "5 log and questions"}
"""Each with its title, which begins with its key."""
BORDERS, TALL, LEAST_WIDTH, LEAST_HEIGHT = 100, 28, 40, 10
"""Columns from which panes have borders, rows from which map and log are whole, and the least that is drawn on."""
FULL = (76, 20)
"""Columns and rows from which all panes stand together."""


class Arrangement(Enum):
    """The value is the style class of the screen."""

    TOGETHER = "together"
    """Map beside what was found, the tree below, the log and a line to ask in at the foot."""
    SINGLE = "single"
    """One pane at a time."""
    TINY = "tiny"
    """Too small: one line says what to run instead."""


def arrangement(width: int, height: int) -> Arrangement:
    """The arrangement of a terminal of so many columns and rows."""
    if width < LEAST_WIDTH or height < LEAST_HEIGHT:
        return Arrangement.TINY
    return Arrangement.TOGETHER if width >= FULL[0] and height >= FULL[1] else Arrangement.SINGLE


def panes_shown(how: Arrangement, chosen: Sequence[str], maximised: bool) -> frozenset[str]:
    """The panes on show; `chosen` are those asked for, the latest last, and hold every pane."""
    if how is Arrangement.TINY:
        return frozenset()
    if maximised or how is Arrangement.SINGLE:
        return frozenset({chosen[-1]})
    return frozenset(PANES) - {"tree"} if chosen[-1] == "chat" else frozenset(PANES)


class PanedScreen(CommandScreen):
    """A screen of the four panes; what they show is the business of `RunView`."""

    def __init__(self) -> None:
        super().__init__()
        self.chosen: list[str] = ["chat", "found", "map", "tree"]
        """The panes, the one asked for last behind all others."""
        self.maximised = False

    def compose(self) -> ComposeResult:
        yield Line(id="headline", classes="title")
        yield Line(id="progress")
        with Horizontal(id="upper"):
            yield MapPane(id="map")
            yield ReadingPane(FOUND_HELP, id="found")
        yield TreePane(id="tree")
        yield ChatPane(id="chat")
        yield Line(id="status", classes="status")
        yield Static("too small a terminal: use `mecharule run … --display plain`", id="tiny", markup=False)

    def on_mount(self) -> None:
        for pane, title in PANES.items():
            self.query_one(f"#{pane}").border_title = title
        self.place_panes()
        self.query_one(TreePane).focus()
        self.call_after_refresh(self.draw)

    def draw(self) -> None:
        """Draw what the panes show."""

    @property
    def arrangement(self) -> Arrangement:
        return arrangement(*self.app.size)

    @property
    def shown(self) -> frozenset[str]:
        """The panes on show."""
        return panes_shown(self.arrangement, self.chosen, self.maximised)

    @property
    def map_rows(self) -> int:
        """Rows that the map would fill."""
        return 11

    def on_resize(self, event: Resize) -> None:
        self.place_panes()
        self.call_after_refresh(self.draw)

    def place_panes(self) -> None:
        """Show the panes that fit and were asked for."""
        how, shown, (width, height) = self.arrangement, self.shown, self.app.size
        for each in Arrangement:
            self.set_class(each is how, each.value)
        bordered = how is Arrangement.TOGETHER and width >= BORDERS
        self.set_class(bordered, "bordered")
        for pane in PANES:
            self.query_one(f"#{pane}").display = pane in shown
        for line in ("headline", "progress", "status"):
            self.query_one(f"#{line}").display = how is not Arrangement.TINY
        self.query_one("#tiny").display = how is Arrangement.TINY
        upper, chat = self.query_one("#upper"), self.query_one("#chat")
        upper.display = bool({"map", "found"} & shown)
        log = (3 if height < TALL else 5) + bordered
        room = height - 3 - (5 if height < TALL else 9) - log
        fits = len(shown) > 1
        upper.styles.height = min(self.map_rows + 2 * bordered, room) if fits else "1fr"
        chat.styles.height = log if fits and self.chosen[-1] != "chat" else "1fr"

    def choose(self, pane: str) -> None:
        """Bring a pane to the front and work in it."""
        self.chosen = [*(other for other in self.chosen if other != pane), pane]
        self.place_panes()
        # Not `focus()`, which takes effect later: a key pressed at once would go to the old pane.
        self.set_focus(self.query_one("#ask" if pane == "chat" else f"#{pane}"))
        self.call_after_refresh(self.draw)

    do_pane_map = partialmethod(choose, "map")
    do_pane_found = partialmethod(choose, "found")
    do_pane_tree = partialmethod(choose, "tree")
    do_pane_chat = partialmethod(choose, "chat")

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        pane = self.pane_of(event.widget)
        if pane is not None and pane != self.chosen[-1]:
            self.chosen = [*(other for other in self.chosen if other != pane), pane]
            self.place_panes()

    def pane_of(self, widget: Widget | None) -> str | None:
        """The pane that a widget is in."""
        around = widget.ancestors_with_self if widget else ()
        return next((each.id for each in around if each.id in PANES), None)

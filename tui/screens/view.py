"""A run on its panes, live and replayed alike: what a snapshot draws, and searching, copying, saving."""

from __future__ import annotations

from functools import partial, partialmethod
from typing import TYPE_CHECKING

from mecharule_ops.state.board import Board, Key, Place
from mecharule_ops.state.run_state import RunState
from tui.chat_pane import ChatPane
from tui.found import found_text, shown_units
from tui.neuron_card import card
from tui.screens.common import Pane, SearchPopup
from tui.screens.panes import TALL, PanedScreen
from tui.screens.reading import ReadingScreen
from tui.session import Session, ranked
from tui.text_panes import ReadingPane
from tui.tree_pane import TreePane
from tui.unit_map import MapPane
from tui.words import arrow, counted, noun_of

if TYPE_CHECKING:
    from tools.registry import ToolResult


ALL = "--limit 10000"
"""Rows of a table that is read."""


class RunView(PanedScreen):
    """The panes of a run; the live and the replayed screen are made from it."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.state = RunState()
        """The snapshot on show."""
        self.board = Board()
        self.tick = 0
        self.turned: Place | None = None
        """The kind and direction chosen by the person; None follows the work."""
        self.picked: Key | None = None
        """The node whose card stands in place of what was found."""
        self.cards: dict[Key, str] = {}
        """Why units flip, as answered so far."""

    @property
    def place(self) -> Place | None:
        """The kind of unit and direction on show: the chosen one, else where the work is, else where most is shown."""
        if self.turned in self.board.places:
            return self.turned
        best = next(iter(ranked(self.state)), None) if self.state.finished else None
        search = best.search if best else self.state.latest[0] if self.state.latest else None
        return self.board.place_of(search) if search else next(iter(self.board.places), None)

    @property
    def map_rows(self) -> int:
        layers = self.board.places.get(self.place, {}) if self.place else {}
        units = max((len(layer.fates) for layer in layers.values()), default=9)
        legend = self.app.size.height >= TALL
        return 2 + legend + max(9, min(len(layers), units, 16))

    def draw(self) -> None:
        """Draw the snapshot on the panes on show."""
        if not self.app.holds(self):
            return
        before = self.map_rows
        self.board.catch_up(self.state)
        if self.map_rows != before:
            self.place_panes()
        place, tree, units = self.place, self.query_one(TreePane), self.query_one(MapPane)
        shown = next(iter(shown_units(self.state, place)), None) if self.state.finished else None
        tree.show(
            self.state, self.board, place, self.tick, self._key(shown.neuron, shown.regime) if shown else None
        )
        units.show(self.state, self.board, place, self.tick)
        if place is not None:
            many = sum(len(layer.fates) for layer in self.board.places[place].values())
            units.border_title = f"1 {counted(many, noun_of(place.letter))}, {arrow(place.regime)}"
        self._draw_side()
        self.draw_lines()

    def _draw_side(self) -> None:
        """The card of what was picked, else what was found."""
        pane, key = self.query_one("#found", ReadingPane), self.picked
        searches = self.state.searches
        if key is not None and key.search in searches and key.node in searches[key.search].nodes:
            pane.border_title = "2 card · f for what was found"
            told = self.cards.get(key, "") if self.on_file.findings else ""
            view = searches[key.search]
            pane.show(card(self.state, view, key.node, pane.size.width - 2, told))
            return
        pane.border_title = "2 found so far" if not self.state.finished else "2 found"
        pane.show(found_text(self.state, self.board, self.place, pane.size.width - 2, self.on_file.headline))

    def _pick(self, key: Key | None) -> None:
        self.picked = key if key is not None and key.node >= 0 else None
        self._draw_side()
        asked = self.picked
        if asked is None or asked in self.cards or self.unit is None or self.on_file.findings is None:
            return
        view = self.state.searches[asked.search]
        if view.nodes[asked.node].verdict == "kept":
            line = f"why {self.unit} --regime {view.regime}"
            told = partial(self.app.backend.call, line, self.session.run, lambda doing: None)
            self.app.fetch(self, "card", told, partial(self._keep_card, asked))

    def _keep_card(self, key: Key, result: ToolResult) -> None:
        self.cards[key] = result.text
        self._draw_side()

    def on_tree_pane_picked(self, event: TreePane.Picked) -> None:
        self._pick(self.query_one(TreePane).key)

    def on_map_pane_picked(self, event: MapPane.Picked) -> None:
        unit, place = self.query_one(MapPane).unit, self.place
        self._pick(self._key(unit, place.regime) if unit and place else None)

    def _key(self, unit: str, regime: int) -> Key | None:
        """The node that tested a unit alone."""
        searches = self.state.searches
        found = (
            (search, node)
            for (search, name), node in self.session.singles.items()
            if name == unit and search in searches
        )
        return next(
            (
                self.board.key_of(search, node)
                for search, node in found
                if searches[search].regime == regime and node in searches[search].nodes
            ),
            None,
        )

    @property
    def unit(self) -> str | None:
        """The single unit whose card is on show."""
        seen = self.state.searches[self.picked.search].nodes[self.picked.node] if self.picked else None
        return seen.units if seen and seen.size == 1 else None

    @property
    def on_file(self) -> Session:
        """Whose findings and certificates belong to the snapshot on show."""
        return self.session

    def draw_lines(self) -> None:
        """The lines above and below the panes."""

    # commands -----------------------------------------------------------------------------------------

    @property
    def here(self) -> str:
        """The name of the pane that has the focus, or was chosen last."""
        return self.pane_of(self.focused) or self.chosen[-1]

    @property
    def moved(self) -> Pane:
        """The pane that has the focus, or was chosen last."""
        pane = self.query_one(f"#{self.here}")
        assert isinstance(pane, Pane)
        return pane

    def do_expand(self) -> None:
        self.query_one(TreePane).toggle()

    def do_follow(self) -> None:
        self.turned = self.picked = None
        self.query_one(TreePane).follow()
        self.draw()

    def _turn(self, step: int) -> None:
        places = list(self.board.places)
        if self.place in places:
            self.turned = places[(places.index(self.place) + step) % len(places)]
            self.draw()

    do_next_layer = partialmethod(_turn, 1)
    do_previous_layer = partialmethod(_turn, -1)

    def do_card(self) -> None:
        """The card of the unit under the cursor over the whole screen; closed as it was opened."""
        if self.maximised:
            self.do_maximise()
        elif self.picked is None:
            self.app.tell("move the cursor of map or tree to a unit first")
        else:
            self.choose("found")
            self.do_maximise()

    def do_maximise(self) -> None:
        self.maximised = not self.maximised
        self.choose(self.here)

    def do_search(self, text: str = "") -> None:
        if not text:
            asked = SearchPopup("Find a unit, such as m4.12:")
            self.app.push_screen(asked, lambda typed: self.do_search(typed) if typed else None)
        elif not self.query_one(TreePane).find(text):
            self.app.tell(
                f"no tested group is named {text!r}; its units may be in a group that was ruled out"
            )

    def do_copy(self) -> None:
        text = self._copied(self.moved)
        if text:
            self.app.copy(f"{self.session.run or 'run'}-{self.here}", text)
        else:
            self.app.tell("there is nothing to copy here yet")

    def _copied(self, pane: Pane) -> str:
        """What `y` takes from a pane: a line, a row, a card, the last turn."""
        if isinstance(pane, MapPane):
            return pane.unit or ""
        if isinstance(pane, TreePane):
            return pane.line_text(pane.cursor).strip() if pane.rows else ""
        if isinstance(pane, ReadingPane):
            return pane.text.plain
        assert isinstance(pane, ChatPane)
        entries = pane.entries()
        return f"{entries[-1].text}\n{entries[-1].detail}".strip() if entries else ""

    def read(self, line: str) -> None:
        """What a tool says of this run, on a screen to read it."""
        if self.session.run is None:
            self.app.tell("this run has not begun yet")
        else:
            self.app.push_screen(ReadingScreen(line, self.session.run))

    do_ledger = partialmethod(read, f"show --table claims {ALL}")
    do_rules = partialmethod(read, f"show --table rules {ALL}")

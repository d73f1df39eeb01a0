"""The panes of a run, which of them fit, and what a snapshot draws on them; live and replayed alike."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.events import DescendantFocus, Resize
from textual.widget import Widget
from textual.widgets import Static

from mecharule_ops.state.run_state import RunState
from mecharule_ops.state.search_view import SearchView
from tui.layout import PANES, Arrangement, arrangement, panes_shown
from tui.neuron_card import Evidence, card, thresholds
from tui.panes.chat import ChatPane
from tui.panes.reading import CARD_HELP, FIGURES_HELP, ReadingPane
from tui.panes.table import RULES_HELP, TextTable
from tui.panes.tree import TreePane
from tui.pictures import figures
from tui.rule_rows import HEADER, STRENGTH, arranged, rule_rows
from tui.screens.base import CommandScreen, Line
from tui.session import Session
from tui.units import strongest
from tui.words import arrow, said

ROOM_FOR_TITLES = 50
"""Columns below which the line of panes names only the one on show."""
_TITLES = {
    "tree": "F3 tree",
    "rules": "F4 rules",
    "figures": "F5 figures",
    "card": "F6 card",
    "chat": "F2 chat",
}


class RunView(CommandScreen):
    """The panes of a run; the live and the replayed screen are made from it."""

    panes: ClassVar[tuple[str, ...]] = PANES

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.state = RunState()
        """The snapshot on show."""
        self.search: str | None = None
        """The search chosen by the person; None follows the work."""
        self.chosen: list[str] = ["card", "chat", "tree"]
        self.maximised = False
        self.sorted_by = STRENGTH
        self.filter = ""

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

    # what is shown -------------------------------------------------------------------------------------

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

    @property
    def latest(self) -> RunState:
        """The snapshot that another screen opened from here shows."""
        return self.state

    @property
    def view(self) -> SearchView | None:
        """The search on show: the chosen one, else where the work is."""
        if self.search is not None and self.search in self.state.searches:
            return self.state.searches[self.search]
        return self._followed()

    def _followed(self) -> SearchView | None:
        """While the search runs, the first that is not done; then the one with the strongest unit."""
        views = list(self.state.searches.values())
        running = [view for view in views if view.result is None]
        if running and not self.state.finished and self.session.busy:
            return max(running, key=lambda view: (view.counts.tested > 0, view.counts.split))
        best = max(self.state.agonists.values(), key=lambda found: found.strength, default=None)
        return self.state.searches[best.search] if best else views[0] if views else None

    def draw(self) -> None:
        """Draw the snapshot on the panes on show."""
        tau, _, alpha = thresholds(self.state)
        tree, view = self.query_one(TreePane), self.view
        tree.show(view, tau, alpha, self._favourite(view))
        tree.border_title = self.search_name(view)
        self._draw_card()
        if "rules" in self.shown:
            rows = arranged(rule_rows(self.state), self.sorted_by, self.filter)
            self.query_one("#rules", TextTable).show([row.cells for row in rows])
        if "figures" in self.shown:
            pane = self.query_one("#figures", ReadingPane)
            pane.show(figures(self.state, self.session.singles, self.evidence.findings, pane.size.width))
        self.draw_lines()

    def _favourite(self, view: SearchView | None) -> int | None:
        """The node of the strongest unit of a search that has ended."""
        if view is None or (view.result is None and not self.state.finished):
            return None
        best = next((found for found in strongest(self.state) if found.search == view.search), None)
        return self.session.singles.get((best.search, best.neuron)) if best else None

    def _draw_card(self) -> None:
        pane, view, node = self.query_one("#card", ReadingPane), self.view, self.query_one(TreePane).node
        if "card" not in self.shown:
            return
        if view is None or node is None or node not in view.nodes:
            pane.show(said("Move the cursor of the tree to a group or unit.", "dim"))
            return
        pane.show(card(self.state, view, node, self.evidence, pane.size.width))

    @property
    def evidence(self) -> Evidence:
        """What the run file adds to the snapshot on show."""
        return Evidence(findings=self.session.findings, certificates=self.session.certificates)

    def draw_lines(self) -> None:
        """The lines above and below the panes."""

    def search_name(self, view: SearchView | None) -> str:
        """`CHA tree · m4 1→0 · 3 of 30`."""
        if view is None:
            return "CHA tree"
        names = list(self.state.searches)
        kind, _, place = (
            view.search.split(":", 2) if view.search.count(":") == 2 else ("cha", "", view.search)
        )
        title = "CHA tree" if kind == "cha" else kind
        return f"{title} · {place} {arrow(view.regime)} · {names.index(view.search) + 1} of {len(names)}"

    def on_tree_pane_picked(self, event: TreePane.Picked) -> None:
        self._draw_card()

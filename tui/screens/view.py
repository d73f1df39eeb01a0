"""A run on its panes, live and replayed alike: what a snapshot draws, and searching, copying, saving, turning."""

from __future__ import annotations

from functools import partialmethod

from textual.widgets import DataTable

from mecharule_ops.plain_text import plain
from mecharule_ops.state.run_state import RunState
from mecharule_ops.state.search_id import CHA, SearchId
from mecharule_ops.state.search_view import SearchView
from tui.character_charts import figures
from tui.neuron_card import card
from tui.rule_rows import AT_LEAST, HEADER, arranged, rule_rows
from tui.screens.common import Pane, SearchPopup
from tui.screens.ledger_screen import LedgerScreen
from tui.screens.panes import PanedScreen
from tui.session import Session, ranked
from tui.text_panes import ReadingPane, TextTable
from tui.tree_pane import TreePane
from tui.words import arrow, said


class RunView(PanedScreen):
    """The panes of a run; the live and the replayed screen are made from it."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.state = RunState()
        """The snapshot on show."""
        self.search: str | None = None
        """The search chosen by the person; None follows the work."""
        self.sorted_by = AT_LEAST
        self.filter = ""

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
        """While the search runs, the first that is not done; then the one with the first unit."""
        views = list(self.state.searches.values())
        running = [view for view in views if view.result is None]
        if running and not self.state.finished and self.session.busy:
            return max(running, key=lambda view: (view.counts.tested > 0, view.counts.split))
        best = next(iter(ranked(self.state)), None)
        return self.state.searches[best.search] if best else views[0] if views else None

    def draw(self) -> None:
        """Draw the snapshot on the panes on show."""
        if not self.app.holds(self):
            return
        tree, view = self.query_one(TreePane), self.view
        tree.show(view, self.state.judged, self._favourite(view))
        tree.border_title = self.search_name(view)
        if "rules" in self.shown:
            self.query_one("#rules", TextTable).show(self.rule_cells)
        self._draw_card()
        if "figures" in self.shown:
            pane = self.query_one("#figures", ReadingPane)
            pane.show(figures(self.state, self.session.singles, self.on_file.findings, pane.size.width))
        self.draw_lines()

    @property
    def rule_cells(self) -> list[tuple[str, ...]]:
        """The rules table as it is sorted and filtered."""
        rows = rule_rows(self.state, self.on_file.findings)
        return [row.cells for row in arranged(rows, self.sorted_by, self.filter)]

    def _favourite(self, view: SearchView | None) -> int | None:
        """The node of the first unit of a search that has ended."""
        if view is None or (view.result is None and not self.state.finished):
            return None
        best = next((found for found in ranked(self.state) if found.search == view.search), None)
        return self.session.singles.get((best.search, best.neuron)) if best else None

    def _draw_card(self) -> None:
        pane, (view, node) = self.query_one("#card", ReadingPane), self.at_cursor
        if "card" not in self.shown:
            return
        if view is None or node is None or node not in view.nodes:
            pane.show(
                said("Move the cursor of the tree to a group or unit, or of the rules to a unit.", "dim")
            )
            return
        pane.show(card(self.state, view, node, self.on_file, pane.size.width))

    @property
    def at_cursor(self) -> tuple[SearchView | None, int | None]:
        """Search and node under the cursor: of the rules where they were looked at last, else of the tree."""
        row = self.query_one("#rules", TextTable).selected
        last = next(pane for pane in reversed(self.chosen) if pane in ("tree", "rules", "figures"))
        if last != "rules" or row is None:
            return self.view, self.query_one(TreePane).node
        rows = ((each, (plain(each.neuron), arrow(each.regime))) for each in ranked(self.state))
        unit = next((each for each, name in rows if name == row[:2]), None)
        if unit is None:
            return None, None
        return self.state.searches[unit.search], self.session.singles.get((unit.search, unit.neuron))

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        self._draw_card()

    @property
    def on_file(self) -> Session:
        """Whose findings and certificates belong to the snapshot on show."""
        return self.session

    def draw_lines(self) -> None:
        """The lines above and below the panes."""

    def search_name(self, view: SearchView | None) -> str:
        """`CHA tree · m4 1→0 · 3 of 30`."""
        if view is None:
            return "CHA tree"
        names = list(self.state.searches)
        search = SearchId.parse(view.search)
        title = "CHA tree" if search.kind == CHA else search.kind
        return (
            f"{title} · {search.place} {arrow(view.regime)} · {names.index(view.search) + 1} of {len(names)}"
        )

    def on_tree_pane_picked(self, event: TreePane.Picked) -> None:
        self._draw_card()

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
        self.search = None
        self.query_one(TreePane).follow()
        self.draw()

    def _turn(self, step: int) -> None:
        names = list(self.state.searches)
        if names:
            here = names.index(self.view.search) if self.view else 0
            self.search = names[(here + step) % len(names)]
            self.draw()

    do_next_layer = partialmethod(_turn, 1)
    do_previous_layer = partialmethod(_turn, -1)

    def do_maximise(self) -> None:
        self.maximised = not self.maximised
        self.choose(self.here)

    def do_sort(self) -> None:
        self.sorted_by = (self.sorted_by + 1) % len(HEADER)
        self.app.tell(f"rules by {HEADER[self.sorted_by]}")
        self.choose("rules")

    def do_search(self, text: str = "") -> None:
        in_rules = isinstance(self.moved, TextTable)
        find = self._filter_rules if in_rules else self._find_unit
        if text:
            find(text)
            return
        prompt = "Show rules that contain (empty shows all):" if in_rules else "Find a unit, such as m4.12:"
        self.app.push_screen(
            SearchPopup(prompt, self.filter if in_rules else ""),
            lambda typed: None if typed is None else find(typed),
        )

    def _find_unit(self, text: str) -> None:
        if not text or not self.query_one(TreePane).find(text):
            self.app.tell(
                f"no tested group of this layer is named {text!r}; its units may be in a pruned group"
            )

    def _filter_rules(self, text: str) -> None:
        self.filter = text
        self.draw()

    def do_copy(self) -> None:
        text = self._copied(self.moved)
        if text:
            self.app.copy(f"{self.session.run or 'run'}-{self.here}", text)
        else:
            self.app.tell("there is nothing to copy here yet")

    def _copied(self, pane: Pane) -> str:
        """What `y` takes from a pane: a line, a row, a card, the last turn."""
        if isinstance(pane, TreePane):
            return pane.line_text(pane.cursor).strip() if pane.rows else ""
        if isinstance(pane, TextTable):
            return "\t".join(pane.selected or ())
        if isinstance(pane, ReadingPane):
            return pane.text.plain
        entries = pane.entries()
        return f"{entries[-1].text}\n{entries[-1].detail}".strip() if entries else ""

    def do_ledger(self) -> None:
        self.app.push_screen(LedgerScreen(lambda: self.latest))

    def do_save(self) -> None:
        self.app.save_table(f"{self.session.run or 'run'}-rules", HEADER, self.rule_cells)

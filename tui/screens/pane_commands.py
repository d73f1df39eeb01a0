"""The commands that work on the panes of a run: going to one, moving in it, searching, copying, saving."""

from __future__ import annotations

from tui.panes.chat import ChatPane
from tui.panes.reading import ReadingPane
from tui.panes.table import TextTable
from tui.panes.tree import TreePane
from tui.rule_rows import HEADER, as_markdown
from tui.screens.ledger import LedgerScreen
from tui.screens.popups import SearchPopup
from tui.screens.view import RunView

_FAR = 1_000_000


class PaneCommands(RunView):
    """A run view that can be worked by keys."""

    def do_pane_chat(self) -> None:
        self.choose("chat")

    def do_pane_tree(self) -> None:
        self.choose("tree")

    def do_pane_rules(self) -> None:
        self.choose("rules")

    def do_pane_figures(self) -> None:
        self.choose("figures")

    def do_pane_card(self) -> None:
        self.choose("card")

    @property
    def at_work(self) -> TreePane | TextTable | ReadingPane | ChatPane:
        """The pane that has the focus, or was chosen last."""
        name = self.pane_of(self.focused) or self.chosen[-1]
        pane = self.query_one(f"#{name}")
        assert isinstance(pane, TreePane | TextTable | ReadingPane | ChatPane)
        return pane

    def do_down(self) -> None:
        self.at_work.move(1)

    def do_up(self) -> None:
        self.at_work.move(-1)

    def do_top(self) -> None:
        self.at_work.move(-_FAR)

    def do_bottom(self) -> None:
        self.at_work.move(_FAR)

    def do_expand(self) -> None:
        self.query_one(TreePane).toggle()

    def do_follow(self) -> None:
        self.search = None
        self.query_one(TreePane).follow()
        self.draw()

    def do_next_layer(self) -> None:
        self._turn(1)

    def do_previous_layer(self) -> None:
        self._turn(-1)

    def _turn(self, step: int) -> None:
        names = list(self.state.searches)
        if names:
            here = names.index(self.view.search) if self.view else 0
            self.search = names[(here + step) % len(names)]
            self.draw()

    def do_maximise(self) -> None:
        self.maximised = not self.maximised
        self.choose(self.pane_of(self.focused) or self.chosen[-1])

    def do_sort(self) -> None:
        self.sorted_by = (self.sorted_by + 1) % len(HEADER)
        self.owner.tell(f"rules by {HEADER[self.sorted_by]}")
        self.choose("rules")

    def do_search(self, text: str = "") -> None:
        in_rules = isinstance(self.at_work, TextTable)
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
            self.owner.tell(
                f"no tested group of this layer is named {text!r}; its units may be in a pruned group"
            )

    def _filter_rules(self, text: str) -> None:
        self.filter = text
        self.draw()

    def do_copy(self) -> None:
        name = self.pane_of(self.focused) or self.chosen[-1]
        text = self._copied(self.at_work)
        if text:
            self.owner.copy(f"{self.session.run or 'run'}-{name}", text)
        else:
            self.owner.tell("there is nothing to copy here yet")

    def _copied(self, pane: TreePane | TextTable | ReadingPane | ChatPane) -> str:
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
        from mecharule_ops.report.text import csv_of

        rows = self.rule_cells
        run = self.session.run or "run"
        self.owner.save(f"{run}-rules.csv", csv_of(HEADER, rows))
        self.owner.save(f"{run}-rules.md", as_markdown(HEADER, rows))

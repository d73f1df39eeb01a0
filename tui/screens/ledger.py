"""Ledger: every hypothesis of a run, registered before its test ran, and what came out."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from textual.app import ComposeResult
from textual.widgets import DataTable

from mecharule_ops.plain_text import plain
from mecharule_ops.state.run_state import HypothesisView, RunState
from tui.commands import bindings_of
from tui.hypothesis_rows import HEADER, hypothesis_rows, hypothesis_text, ledger_sentence
from tui.panes.reading import ReadingPane
from tui.panes.table import TextTable
from tui.rule_rows import as_markdown
from tui.screens.base import Line, hints
from tui.screens.tables import TableScreen
from tui.words import said

LEDGER_HELP = (
    "One line a hypothesis. It was registered with the condition, the deciding test and the threshold before "
    "anything was measured, and cannot be changed since; it is decided once. Underpowered means that too few "
    "held-out records flip, or too few do not, to decide."
)
REFRESHES_A_SECOND = 4


class LedgerScreen(TableScreen):
    """The table of hypotheses and the one under the cursor in full; it grows while the work goes on."""

    NAME = "ledger"
    BINDINGS = bindings_of("ledger")

    def __init__(self, latest: Callable[[], RunState]) -> None:
        super().__init__()
        self.latest = latest
        """Gives the snapshot to show."""
        self._drawn: Mapping[str, HypothesisView] | None = None

    def compose(self) -> ComposeResult:
        yield Line(id="ledger-title", classes="title")
        yield TextTable(HEADER, LEDGER_HELP, id="ledger")
        yield ReadingPane(LEDGER_HELP, id="hypothesis")
        yield Line(f" {hints('ledger', ('copy', 'save', 'back', 'help'))} · ^P palette", classes="status")

    def on_mount(self) -> None:
        self.table.focus()
        self.call_after_refresh(self.draw)
        self.set_interval(1 / REFRESHES_A_SECOND, self.draw)

    def draw(self) -> None:
        """Show the latest snapshot when it holds another ledger."""
        state = self.latest()
        if state.hypotheses is self._drawn:
            return
        self._drawn = state.hypotheses
        run = f"run {plain(state.header.run)} · " if state.header else ""
        self.query_one("#ledger-title", Line).say(f" Ledger · {run}{ledger_sentence(state)}")
        self.table.show(hypothesis_rows(state))
        self._show_selected()

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        self._show_selected()

    def _show_selected(self) -> None:
        row = self.table.selected
        entry = self.latest().hypotheses.get(row[0]) if row else None
        text = said("Nothing to read yet.", "dim") if entry is None else hypothesis_text(entry)
        self.query_one("#hypothesis", ReadingPane).show(text)

    def do_copy(self) -> None:
        shown = self.query_one("#hypothesis", ReadingPane).text.plain
        self.owner.copy("hypothesis", shown)

    def do_save(self) -> None:
        from mecharule_ops.report.text import csv_of

        rows = hypothesis_rows(self.latest())
        self.owner.save("ledger.csv", csv_of(HEADER, rows))
        self.owner.save("ledger.md", as_markdown(HEADER, rows))

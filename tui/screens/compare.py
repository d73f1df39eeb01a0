"""Compare: two runs, or the two regimes of one, unit by unit."""

from __future__ import annotations

from textual.app import ComposeResult

from tui.commands import bindings_of
from tui.comparison import HEADER, Side, compare
from tui.panes.table import TextTable
from tui.rule_rows import as_markdown
from tui.screens.base import Line, hints
from tui.screens.tables import TableScreen

COMPARE_HELP = (
    "Localized units of both sides, the strongest first. The Jaccard index is the share of all units that both "
    "sides localized."
)


class CompareScreen(TableScreen):
    """One table of both sides."""

    NAME = "compare"
    BINDINGS = bindings_of("compare")

    def __init__(self, left: Side, right: Side) -> None:
        super().__init__()
        self.comparison = compare(left, right)

    def compose(self) -> ComposeResult:
        yield Line(" Compare", classes="title")
        yield Line(f" {self.comparison.sentence}", id="sentence")
        yield TextTable(HEADER, COMPARE_HELP, id="comparison")
        yield Line(f" {hints('compare', ('copy', 'save', 'back', 'help'))} · ^P palette", classes="status")

    def on_mount(self) -> None:
        table = self.table
        table.focus()
        self.call_after_refresh(table.show, self.comparison.rows)

    def do_copy(self) -> None:
        selected = self.table.selected
        self.owner.copy("comparison", "\t".join(selected) if selected else self.comparison.sentence)

    def do_save(self) -> None:
        from mecharule_ops.report.text import csv_of

        self.owner.save("comparison.csv", csv_of(HEADER, self.comparison.rows))
        self.owner.save("comparison.md", as_markdown(HEADER, self.comparison.rows))

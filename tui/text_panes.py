"""Panes that are read: text that scrolls, and a table of texts that keeps its cursor."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import DataTable, Static

from mecharule_ops.plain_text import plain
from tui.words import said

RULES_HELP = (
    "One line a rule that predicts when ablating a unit flips the answer: by what it may read (input, clean run, "
    "mechanism), then the anchored one. MCC was scored once on held-out records, which fitted nothing and decide, "
    "corrected over all learned rules of the run (Holm), which are shown; `mecharule show --table rules` lists all. "
    "trees is that of free-form trees over the same columns. s sorts by the next column, / filters, y copies a line, e "
    "writes what is shown as CSV and Markdown."
)
RUNS_HELP = (
    "Stored runs, the one that ended last first. Enter opens one, ^R continues one that was stopped, Space "
    "marks two to be compared with c."
)


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


class TextTable(DataTable):
    """Rows of plain texts that know no markup; their owner sorts and filters them."""

    def __init__(self, header: Sequence[str], help: str, *, id: str) -> None:
        super().__init__(id=id, cursor_type="row", zebra_stripes=False)
        self.header = tuple(header)
        self.about = help
        self.shown: tuple[tuple[str, ...], ...] | None = None

    def on_mount(self) -> None:
        for title in self.header:
            self.add_column(said(title))

    def show(self, rows: Sequence[tuple[str, ...]]) -> None:
        """Put these rows in place of the old ones; the cursor stays on its first cell, else its place."""
        rows = tuple(rows)
        if rows == self.shown:
            return
        current, place = self.selected, self.cursor_row
        self.shown = rows
        self.clear()
        self._fit(rows)
        for row in rows:
            self.add_row(*(said(cell) for cell in row))
        names = [row[0] for row in rows]
        found = current is not None and current[0] in names
        self.move_cursor(row=names.index(current[0]) if current and found else place)

    def _fit(self, rows: Sequence[tuple[str, ...]]) -> None:
        """Make every column as wide as its widest cell before rows are drawn."""
        for column, cells in zip(self.ordered_columns, zip(self.header, *rows, strict=True), strict=True):
            column.width, column.auto_width = max(cell_len(plain(cell)) for cell in cells), False

    @property
    def selected(self) -> tuple[str, ...] | None:
        """The cells under the cursor; None in an empty table."""
        return self.shown[self.cursor_row] if self.shown and self.cursor_row < len(self.shown) else None

    def move(self, lines: int) -> None:
        """Move the cursor."""
        self.move_cursor(row=max(0, self.cursor_row + lines))

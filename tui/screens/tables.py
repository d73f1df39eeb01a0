"""A screen around one table: the keys that move in it."""

from __future__ import annotations

from tui.panes.table import TextTable
from tui.screens.base import CommandScreen

_FAR = 1_000_000


class TableScreen(CommandScreen):
    """A screen with one table."""

    @property
    def table(self) -> TextTable:
        return self.query_one(TextTable)

    def do_down(self) -> None:
        self.table.move(1)

    def do_up(self) -> None:
        self.table.move(-1)

    def do_top(self) -> None:
        self.table.move(-_FAR)

    def do_bottom(self) -> None:
        self.table.move(_FAR)

"""Screens around one table or one text: the keys that move in it."""

from __future__ import annotations

from tui.panes.reading import ReadingPane
from tui.panes.table import TextTable
from tui.screens.base import CommandScreen

_FAR = 1_000_000


class MovingScreen(CommandScreen):
    """A screen with one widget to move in."""

    @property
    def moved(self) -> TextTable | ReadingPane:
        raise NotImplementedError

    def do_down(self) -> None:
        self.moved.move(1)

    def do_up(self) -> None:
        self.moved.move(-1)

    def do_top(self) -> None:
        self.moved.move(-_FAR)

    def do_bottom(self) -> None:
        self.moved.move(_FAR)


class TableScreen(MovingScreen):
    """A screen with one table."""

    @property
    def table(self) -> TextTable:
        return self.query_one(TextTable)

    @property
    def moved(self) -> TextTable:
        return self.table

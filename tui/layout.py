"""Which panes stand on the screen at a given size."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

PANES = ("tree", "rules", "figures", "card", "chat")
"""In the order in which they are named on the screen."""
WIDE, TABS = 120, 80
LEAST_WIDTH, LEAST_HEIGHT = 40, 10


class Arrangement(Enum):
    """The value is the style class of the screen."""

    COLUMNS = "columns"
    """Two columns: tree, rules or figures, and the card; chat below."""
    TABBED = "tabbed"
    """One of tree, rules, figures and card; chat below."""
    SINGLE = "single"
    """One pane at a time."""
    TINY = "tiny"
    """Too small: one line says what to run instead."""


def arrangement(width: int, height: int) -> Arrangement:
    """The arrangement of a terminal of so many columns and rows."""
    if width < LEAST_WIDTH or height < LEAST_HEIGHT:
        return Arrangement.TINY
    if width < TABS:
        return Arrangement.SINGLE
    return Arrangement.COLUMNS if width >= WIDE else Arrangement.TABBED


def panes_shown(how: Arrangement, chosen: Sequence[str], maximised: bool) -> frozenset[str]:
    """The panes on show; `chosen` are those asked for, the latest last, and hold one of each kind."""
    if how is Arrangement.TINY:
        return frozenset()
    if maximised or how is Arrangement.SINGLE:
        return frozenset({chosen[-1]})
    left = ("tree", "rules", "figures")
    if how is Arrangement.COLUMNS:
        return frozenset({_latest(chosen, left), "card", "chat"})
    return frozenset({_latest(chosen, (*left, "card")), "chat"})


def _latest(chosen: Sequence[str], among: Sequence[str]) -> str:
    return next(pane for pane in reversed(chosen) if pane in among)

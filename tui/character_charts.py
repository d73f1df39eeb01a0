"""Bars, intervals and points in characters.

Every bar stands beside its number, so a picture never carries anything alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mecharule_ops.findings.accounts import LeadsAndDrops

_EIGHTHS = " ▏▎▍▌▋▊▉"


def bar(share: float, width: int, rest_of_it: str = " ") -> str:
    """A bar of `share` in [0, 1] of `width` cells, to an eighth of a cell."""
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    full, rest = divmod(eighths, 8)
    return ("█" * full + _EIGHTHS[rest] * (rest > 0)).ljust(width, rest_of_it)


def interval(low: float, value: float, high: float, width: int) -> str:
    """An interval on [0, 1] with its estimate: `  ├──●────┤   `."""
    first, at, last = (min(width - 1, int(share * width)) for share in (low, value, high))
    cells = [" "] * width
    for cell in range(first, last + 1):
        cells[cell] = "─"
    cells[first], cells[last] = "├", "┤"
    cells[at] = "●"
    return "".join(cells)


def leads_and_drops(points: LeadsAndDrops, width: int, height: int = 10) -> list[str]:
    """Records by lead (to the right) and drop (up): `●` flips, `○` does not, `◐` both in one cell, `·` drop = lead.

    First order says that the answer changes above the dots.
    """
    low = min(0.0, *points.lead, *points.drop)
    high = max(*points.lead, *points.drop)
    span = (high - low) or 1.0

    def cell(value: float, cells: int) -> int:
        return min(cells - 1, int((value - low) / span * cells))

    canvas = [[" "] * width for _ in range(height)]
    for column in range(width):
        canvas[cell(low + span * (column + 0.5) / width, height)][column] = "·"
    for lead, drop, flipped in zip(points.lead, points.drop, points.flipped, strict=True):
        row, column = canvas[cell(drop, height)], cell(lead, width)
        glyph = "●" if flipped else "○"
        row[column] = "◐" if row[column] in "●○◐" and row[column] != glyph else glyph
    return ["".join(row) for row in reversed(canvas)]

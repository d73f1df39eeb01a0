"""Reads back what `mecharule_ops.pages.drawing` drew."""

from __future__ import annotations

import re


def rows_of_points(svg: str) -> list[tuple[str, list[tuple[float, float]]]]:
    """(glyph, places) of each row of equal points; the legend's single ones are none."""
    found = []
    pattern = (
        r'<marker id="([^"]+)"[^>]*><use href="#([^"]+)"[^>]*/></marker><path d="M([^"]*)" style="([^"]*)"/>'
    )
    for name, glyph, places, style in re.findall(pattern, svg):
        assert style == f"fill:none;marker:url(#{name})"
        numbers = [float(number) for number in places.split()]
        found.append((glyph, list(zip(numbers[::2], numbers[1::2], strict=True))))
    return found

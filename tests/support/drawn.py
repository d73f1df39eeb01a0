"""Reads back what `mecharule_ops.pages.drawing` drew."""

import re


def rows_of_points(svg: str) -> list[tuple[str, list[tuple[float, float]]]]:
    """(glyph, places) of each row of equal points; the legend's single ones are none."""
    found = []
    for run in re.findall(r'(?:<use href="#[^"]+" x="[^"]+" y="[^"]+"[^>]*/>){3,}', svg):
        points = re.findall(r'<use href="#([^"]+)" x="([^"]+)" y="([^"]+)"', run)
        assert len({glyph for glyph, _, _ in points}) == 1
        found.append((points[0][0], [(float(x), float(y)) for _, x, y in points]))
    return found

"""The ASCII glyph set: everything drawn, borders and scroll bars included, in characters of the same width.

It is a filter over finished lines, so no screen needs to know of it. `MECHARULE_ASCII=1` turns it on.
"""

from __future__ import annotations

from functools import lru_cache

from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

_SIGNS = {
    **dict(zip("→←▸▾▴▼▲•●◐○◌✓✗×·…–—τεαδ≥≤∪−❯Ê", "><>vvv^**%o.+x*.~--tead><U->E", strict=True)),
    **dict(zip("“”‘’", "\"\"''", strict=True)),
    **dict(zip("▏▎▍▌▋▊▉█▁▔▀▄", '|||#####_-"_', strict=True)),
    **dict(zip("░▓◂", "-+<", strict=True)),
    **dict(zip("├┤┼│┃║─━═╶╴", "[]+|||-----", strict=True)),
}


@lru_cache(4096)
def ascii_only(text: str) -> str:
    """The text in ASCII, as wide as before; a sign without a likeness becomes `?`."""
    return text if text.isascii() else "".join(_likeness(char) for char in text)


def _likeness(char: str) -> str:
    if char.isascii():
        return char
    if "\u2500" <= char <= "\u257f":
        return _SIGNS.get(char, "+")
    if "\u2580" <= char <= "\u259f":
        return _SIGNS.get(char, "#")
    return _SIGNS.get(char, "?" * cell_len(char))


class AsciiFilter(LineFilter):
    """Turns every drawn line into ASCII."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [Segment(ascii_only(text), style, control) for text, style, control in segments]

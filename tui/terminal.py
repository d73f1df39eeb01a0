"""What lies between the app and the terminal: the ASCII glyph set, and a screen kept from what libraries print.

The glyph set is a filter over finished lines, so no screen needs to know of it; everything drawn, borders and scroll
bars included, gets characters of the same width. `MECHARULE_ASCII=1` turns it on.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

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


@contextmanager
def screen_kept() -> Iterator[Path]:
    """Descriptors 1 and 2 write to a file while the app draws on copies of them; gives the file's path.

    Textual draws on `sys.__stderr__` and asks `sys.__stdout__` for the size of the terminal.
    """
    descriptor, name = tempfile.mkstemp(prefix="mecharule-", suffix=".log")
    before = sys.__stdout__, sys.__stderr__
    saved = os.dup(1), os.dup(2)
    opened = [os.fdopen(number, "w", encoding="utf-8") for number in saved]
    try:
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        sys.__stdout__, sys.__stderr__ = opened  # type: ignore[misc]
        yield Path(name)
    finally:
        sys.__stdout__, sys.__stderr__ = before  # type: ignore[misc]
        for file in opened:
            file.flush()
        os.dup2(saved[0], 1)
        os.dup2(saved[1], 2)
        os.close(descriptor)
        for file in opened:
            file.close()

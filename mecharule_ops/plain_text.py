"""Text that a person or a model wrote, made fit for one line of a terminal, a table or a report."""

from __future__ import annotations

import unicodedata

_TRICKS = frozenset({"Cc", "Cf", "Cs", "Co"})
"""Control, format (bidi, zero width), surrogate and private characters."""


def plain(text: str) -> str:
    """The text on one line, without control, format or surrogate characters (terminal and bidi tricks)."""
    if text.isascii() and text.isprintable():
        return " ".join(text.split())
    spaced = " ".join(text.split())
    return "".join("�" if unicodedata.category(char) in _TRICKS else char for char in spaced)

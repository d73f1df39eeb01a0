"""Text that a person or a model wrote, made fit for one line of a terminal, a table or a report; and text as a file."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

from mecharule_ops.errors import system_errors

_TRICKS = frozenset({"Cc", "Cf", "Cs", "Co"})
"""Control, format (bidi, zero width), surrogate and private characters."""

_SENTENCE = re.compile(r"(?<=[.!?])\s|\n")
"""Behind one."""


def plain(text: str) -> str:
    """The text on one line, without control, format or surrogate characters (terminal and bidi tricks)."""
    if text.isascii() and text.isprintable():
        return " ".join(text.split())
    spaced = " ".join(text.split())
    return "".join("�" if unicodedata.category(char) in _TRICKS else char for char in spaced)


def beginning(text: str) -> str:
    """The first sentence or line of a text, without its full stop; `nothing` where there is no text.

    >>> [beginning(text) for text in ("Riga. Latvia is a", "3.5 of 10", " ")]
    ['Riga', '3.5 of 10', 'nothing']
    """
    return plain(_SENTENCE.split(text.strip(), maxsplit=1)[0]).removesuffix(".") or "nothing"


def last_line(prompt: str) -> str:
    """The question of a prompt, without few-shot lines."""
    return plain(prompt.rstrip("\n").rsplit("\n", 1)[-1])


def write_file(file: str | Path, text: str) -> Path:
    """The file after it was written, its folder made where it is missing. Raises `StoreError`."""
    with system_errors(f"to write {file}"):
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        Path(file).write_text(text, encoding="utf-8")
    return Path(file)

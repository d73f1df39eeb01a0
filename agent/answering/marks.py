"""Faulty pieces of an answer: where each stands, what is wrong with it, how it is shown and counted.

Each check names its own faults, as an enum whose values are the words that a person reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One faulty piece."""

    begin: int
    end: int
    """Its place in the text that was checked, in characters."""
    text: str
    fault: StrEnum
    struck: bool = True
    """Whether the piece is struck out; else it stands, with its fault behind it."""

    def __str__(self) -> str:
        shown = f"~~{self.text}~~" if self.struck else self.text
        return f"{shown} [{self.fault}]"


def counted(marks: Sequence[Mark], faults: type[StrEnum]) -> str:
    """`2 unverified; 1 no such certificate`: how many of each kind, in the kinds' order; empty without marks."""
    kinds = ((sum(mark.fault is fault for mark in marks), fault.value) for fault in faults)
    return "; ".join(f"{count} {what}" for count, what in kinds if count)

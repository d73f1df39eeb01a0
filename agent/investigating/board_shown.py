"""An investigation as a screen shows it: text and numbers, with no run behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardShown:
    """How an investigation stands, or its report once it ended; equal where only the words differ."""

    question: str
    read_as: str
    text: str = field(compare=False)
    """What is known, the rivals and what cannot be afforded; in the end the whole report, its verdict first."""
    states: Mapping[str, str]
    """The state of each rival by its line of the text."""
    purse: str
    """What is left of it."""
    doing: str = ""
    """The test under way with its price; empty between two."""
    more: int = 0
    """Example-forwards of all that cannot be afforded; 0 where nothing is left."""
    price: str = ""
    """What they cost, in words."""
    ended: bool = False

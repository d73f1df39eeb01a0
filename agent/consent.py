"""Who accepts the price of what a language model asks for: the person at a terminal, or nobody."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

PURSE = 60.0
"""Seconds of ablations that a question may spend unasked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """Calls of one turn whose price is above what is left of the purse; put to the person."""

    calls: tuple[str, ...]
    """`ablate units=m4.12`, one a call."""
    words: str
    """The price in words."""


Consent = Callable[[Priced], bool | str]
"""Whether a price is accepted; a text says why not."""


def nobody(price: Priced) -> str:
    """Nobody is there to accept a price."""
    return "nobody is there to accept this price; `--seconds N` allows it beforehand"


def at_terminal(tell: Callable[[str], None]) -> Consent:
    """Consent of the person at the terminal; nobody's where there is none."""
    if not sys.stdin or not sys.stdin.isatty():
        return nobody

    def asked(price: Priced) -> bool:
        tell("\n".join(["The model asks for:", *(f"  {one}" for one in price.calls)]))
        sys.stderr.write(f"It costs {price.words}. Run it? [y/N] ")
        sys.stderr.flush()
        return sys.stdin.readline().strip().lower() in ("y", "yes")

    return asked

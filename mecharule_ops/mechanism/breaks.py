"""Where an answer breaks: the first generated token that changes under an ablation, and from what to what.

Everything generated after it was written on top of another text, so only the first change is the unit's own work.
This is the outcome of activation patching token by token, where its usual outcome is one logit difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from mecharule_ops.types import FlipCount

END = "end of text"
"""Stands for the token that a shorter completion does not have, and for one without text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstChange:
    """The first changed token of one record."""

    place: str
    """What the task calls the piece that the clean token belongs to."""
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceBreak:
    """How often the answer breaks at one place."""

    place: str
    count: FlipCount
    """Of all flips."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenChange:
    """How often one token becomes another there."""

    place: str
    before: str
    after: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaks:
    """Where flipped answers break, the most frequent first."""

    flips: int
    places: tuple[PlaceBreak, ...]
    changes: tuple[TokenChange, ...]


def breaks(changes: Sequence[FirstChange], listed: int = 8) -> Breaks:
    """Counts over flipped records, the `listed` most frequent token changes."""
    places = Counter(change.place for change in changes)
    tokens = Counter((change.place, change.before, change.after) for change in changes)
    ordered = sorted(tokens.items(), key=lambda item: (-item[1], item[0]))
    return Breaks(
        flips=len(changes),
        places=tuple(
            PlaceBreak(place=place, count=FlipCount(flips=count, n=len(changes)))
            for place, count in sorted(places.items(), key=lambda item: (-item[1], item[0]))
        ),
        changes=tuple(
            TokenChange(place=place, before=before, after=after, count=count)
            for (place, before, after), count in ordered[:listed]
        ),
    )

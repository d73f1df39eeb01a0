"""Where the answer breaks: the first generated token that an ablation changes, from which to which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

Tokens = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Break:
    """The first difference of one completion."""

    record: int
    position: int
    """Which generated token, from 0."""
    before: int | None
    """Token id of the clean completion; None where it had ended."""
    after: int | None
    """Token id under the ablation; None where it had ended."""


class BreakStatus(StrEnum):
    """Whether there is anything to show; the value is the sentence a person reads."""

    SOME = "some completions change"
    NONE = "no completion changes under this ablation"


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaks:
    """First differences of some records' completions, and how often each occurs."""

    breaks: tuple[Break, ...]
    """By record, only those whose completion changed."""
    records: int
    """Completions compared."""

    @property
    def status(self) -> BreakStatus:
        return BreakStatus.SOME if self.breaks else BreakStatus.NONE

    @property
    def positions(self) -> tuple[tuple[int, int], ...]:
        """(generated position, changed completions that break there), by position."""
        return tuple(sorted(Counter(one.position for one in self.breaks).items()))

    def swaps(self, position: int | None = None) -> tuple[tuple[int | None, int | None, int], ...]:
        """(from, to, how often) of the first changed tokens, the commonest first; at one position or at all."""
        chosen = [one for one in self.breaks if position is None or one.position == position]
        counted = Counter((one.before, one.after) for one in chosen)
        return tuple((before, after, count) for (before, after), count in counted.most_common())


def breaks(clean: Sequence[Tokens], ablated: Sequence[Tokens]) -> Breaks:
    """Where each ablated completion first differs from the clean one; the two are aligned."""
    pairs = enumerate(zip(clean, ablated, strict=True))
    found = [_first(record, before, after) for record, (before, after) in pairs]
    return Breaks(breaks=tuple(one for one in found if one is not None), records=len(clean))


def _first(record: int, before: Tokens, after: Tokens) -> Break | None:
    for position in range(max(len(before), len(after))):
        old = before[position] if position < len(before) else None
        new = after[position] if position < len(after) else None
        if old != new:
            return Break(record=record, position=position, before=old, after=new)
    return None

"""When and why one unit flips the outcome: the values that a report, an answer and a card read.

Scores are of records that chose nothing. A law's are of the same held-out records as the rules', so that what it
reaches can be set beside them. Axes in comments: record position.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

from mecharule_ops.rules.families import Family, FamilyRule
from mecharule_ops.rules.interval import MccInterval
from mecharule_ops.types import Neuron, Regime

T = TypeVar("T", bound=Any)


class Law(StrEnum):
    """A prediction of which records flip, with nothing fitted; the value is how it is called."""

    FIRST_ORDER = "first-order drop"
    """The lead falls by more than itself, to first order, against some competitor."""
    DIRECT = "direct push"
    """The unit's own write carries more than the lead."""
    INTEGRATED = "integrated drop"
    """First order at several points between the unit's value and its replacement: as dear as an ablation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LawScore:
    """How well a law says which held-out records flip."""

    law: Law
    predicted: int
    """Held-out records on which it says that the answer changes."""
    held_out: MccInterval | None
    """Against the measured flips; None where one side has too few records for an interval."""
    note: str = ""
    """Why it has nothing to say, in a sentence; empty when it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Break:
    """One way in which flipped answers first change."""

    position: int
    """Generated token, from 0."""
    before: str
    after: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakPlace:
    """Flips whose first change lies at one generated token."""

    position: int
    """From 0."""
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaks:
    """Where the completions of flipped records first change."""

    flips: int
    """Flipped records looked at."""
    at: tuple[BreakPlace, ...]
    """Most flips first."""
    changes: tuple[Break, ...]
    """The commonest changes, most first."""

    @classmethod
    def of(cls, firsts: Sequence[tuple[int, str, str]], most: int = 6) -> Breaks:
        """Counted from (position, token before, token after) of each flipped record."""
        places, kinds = _tally([first[0] for first in firsts]), _tally(firsts)
        at = tuple(BreakPlace(position=position, count=count) for position, count in places)
        changes = tuple(
            Break(position=position, before=before, after=after, count=count)
            for (position, before, after), count in kinds[:most]
        )
        return cls(flips=len(firsts), at=at, changes=changes)


def _tally(items: Sequence[T]) -> list[tuple[T, int]]:
    """(item, count), most first, then in order of the items."""
    return sorted(Counter(items).items(), key=lambda pair: (-pair[1], pair[0]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """When one unit flips, and what its flips go with."""

    neuron: Neuron
    regime: Regime
    flips: int
    """Records of D_b that it flips, of those below."""
    records: int
    """Records of D_b looked at, the further ones included."""
    held_out: int
    """Of these the ones that chose nothing."""
    families: tuple[FamilyRule, ...]
    laws: tuple[LawScore, ...] = ()
    breaks: Breaks | None = None

    def family(self, family: Family) -> FamilyRule:
        """The rule of a family."""
        return next(rule for rule in self.families if rule.family is family)

    def law(self, law: Law) -> LawScore | None:
        """The score of a law; None when it was not asked."""
        return next((score for score in self.laws if score.law is law), None)

    @property
    def best(self) -> FamilyRule | None:
        """The shown rule that train validated best; held-out records do not choose it. None when none is shown."""
        shown = [rule for rule in self.families if rule.rule is not None]
        return max(shown, key=lambda rule: rule.validated or 0.0, default=None)

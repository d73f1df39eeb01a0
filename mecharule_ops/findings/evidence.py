"""Which of the units that a search found are shown, by their flips on records that chose none of them.

Every τ-agonist of a search, the audit's included, is ablated on the same held-out records of D_b as random units, drawn
from all units of the basis whatever the search made of them.

q        upper 95 % point of the m random rates: the ⌈.95 · (m + 1)⌉-th smallest, so that m is 19 or more; with fewer
         nothing can be shown. It is one record at least: a rate below that cannot be told from 0.
p        of a unit: exact one-sided binomial tail of its flips against q.
Holm     (1979) over the m_f units found, by p, then lower bound, then name: the i-th, from 1, has the level
         α / (m_f - i + 1). Its lower bound is Clopper–Pearson's at that level, or that of the unit before it where this
         is lower: so the order by bound is the order by evidence.

shown       ●  the bound lies above q, and so do all before it; only these have a rank
suggestive  ◐  the rate lies above q, the bound does not
open        ○  neither
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache

import scipy

from mecharule_ops.confidence import lower_bound
from mecharule_ops.types import FlipCount, Neuron


class Certainty(StrEnum):
    """How sure it is that a unit flips more than random units do."""

    SHOWN = "shown"
    SUGGESTIVE = "suggestive"
    OPEN = "open"

    @property
    def glyph(self) -> str:
        """Its mark, the same everywhere."""
        return {Certainty.SHOWN: "●", Certainty.SUGGESTIVE: "◐", Certainty.OPEN: "○"}[self]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOutFlips:
    """How many of the held-out records one unit flips."""

    neuron: Neuron
    flips: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOut:
    """Flips of the units that one search found, and of random units, on the same held-out records."""

    records: int
    found: tuple[HeldOutFlips, ...]
    random: tuple[int, ...]
    """Flips of each random unit."""

    def random_rate(self, alpha: float) -> float | None:
        """The rate q; None where there are too few random units, or no record."""
        units = len(self.random) + 1
        place = math.ceil((1 - Fraction(alpha).limit_denominator(10**6)) * units)
        if place >= units or not self.records:
            return None
        return max(1, sorted(self.random)[place - 1]) / self.records

    def tells(self, alpha: float) -> bool:
        """Whether anything could be shown: enough random units, which a basis of fewer than 20 units does not have."""
        return self.random_rate(alpha) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What held-out records say of one unit."""

    flips: FlipCount
    lower: float
    """Lower bound of its flip rate, Holm over the units that its search found."""
    certainty: Certainty
    rank: int | None
    """Among the shown units of its search, from 1; None where it is not shown."""


@lru_cache(maxsize=64)
def evidence_of(held_out: HeldOut, alpha: float) -> Mapping[Neuron, Evidence]:
    """The evidence of each unit found: the shown ones by their bound, then the others in the order of their names."""
    n, q = held_out.records, held_out.random_rate(alpha)
    by_p = sorted(held_out.found, key=lambda each: (_tail(each.flips, n, q), -each.flips, each.neuron))
    said: list[tuple[Neuron, Evidence]] = []
    lower, is_shown = 1.0, q is not None
    for place, unit in enumerate(by_p):
        lower = min(lower, lower_bound(unit.flips, n, alpha / (len(by_p) - place)))
        is_shown = is_shown and q is not None and lower > q
        above = q is not None and unit.flips > q * n
        certainty = Certainty.SHOWN if is_shown else Certainty.SUGGESTIVE if above else Certainty.OPEN
        flips = FlipCount(flips=unit.flips, n=n)
        rank = place + 1 if is_shown else None
        said.append((unit.neuron, Evidence(flips=flips, lower=lower, certainty=certainty, rank=rank)))
    return dict(sorted(said, key=lambda each: (each[1].rank or math.inf, each[0])))


def _tail(flips: int, n: int, q: float | None) -> float:
    """P(X ≥ flips) of X ~ Binomial(n, q); 1 where there is no q."""
    return 1.0 if q is None or flips == 0 else float(scipy.special.betainc(flips, n - flips + 1, q))

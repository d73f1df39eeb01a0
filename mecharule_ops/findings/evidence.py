"""Which of the units that a search found are shown, by their flips on records that chose none of them.

Every τ-agonist of a search, the audit's included, is ablated on the same held-out records of D_b as random units, drawn
from all units of the basis whatever the search made of them.

q        upper 1 - α bound of the rate that 5 % of the basis reach: the least r, of every rate and count c, at which
         T = ⌊N / 20⌋ units besides the tested one, were their rates r, would show so few with more than c flips, found
         or drawn, in at most α of draws. That chance is of the T split between found and others as is worst; of those
         drawn it is that of Binomial(T, share drawn · P(more than c at r)), which is at least the exact one as far as
         one below its mean (Hoeffding 1956, theorem 4). It is one record at least: less cannot be told from 0. Too
         small a draw leaves no q, and nothing is shown.
p        of a unit: exact one-sided binomial tail of its flips against q.
Holm     (1979) over the m_f units found, at α.
bound    Clopper–Pearson's at α / m_f, so that those of all units found hold together at 1 - α.

A unit that more than 5 % of the basis match is so shown where q is too low, or where it flips by luck. Each happens in
at most α of searches, if units flip by themselves and c were fixed; c is the best of all, and hard records make units
flip together. What both come to is simulated in `tests/findings/test_evidence.py`: at most 5 % of tables.

shown       ●  p < α after Holm; only these have a rank, by their bound
suggestive  ◐  its rate lies above q, and it is not shown
open        ○  neither
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

import numpy as np
import scipy

from mecharule_ops import confidence, types
from mecharule_ops.findings.controls import holm


class Certainty(StrEnum):
    """How sure it is that a unit flips more than random units do."""

    SHOWN = "shown"
    SUGGESTIVE = "suggestive"
    OPEN = "open"

    @property
    def glyph(self) -> str:
        """Its mark, the same everywhere."""
        return {Certainty.SHOWN: "●", Certainty.SUGGESTIVE: "◐", Certainty.OPEN: "○"}[self]


STEPS = 256
"""Steps of the rates that a unit is compared at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOutFlips:
    """How many of the held-out records one unit flips."""

    neuron: types.Neuron
    flips: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOut:
    """Flips of the units that one search found, and of random units, on the same held-out records."""

    records: int
    found: tuple[HeldOutFlips, ...]
    random: tuple[int, ...]
    """Flips of each random unit, drawn from all of the basis."""
    units: int
    """Units of the basis."""
    again: tuple[types.Neuron, ...] = ()
    """Random units that are found ones too."""

    def rate_of_random(self, alpha: float) -> float | None:
        """The rate q; None where too few random units were drawn to say one, or there is no record."""
        if not self.tells(alpha):
            return None
        n, top = self.records, int(self.units * alpha)
        flips = {unit.neuron: unit.flips for unit in self.found}
        # By how many records they flip.
        others = Counter(self.random) - Counter(flips[unit] for unit in self.again)
        left = self.units - len(self.found)
        among = np.arange(min(max(0, len(self.found) - 1), top) + 1)  # Of the T others the found ones.
        rate = np.linspace(0, 1, STEPS + 1)[:, None]
        least = 1.0
        for most in range(n):
            known = sum(each.flips > most for each in self.found)
            seen = sum(times for each, times in others.items() if each > most)
            more = scipy.special.bdtrc(most, n, rate)
            drawn = more * min(1.0, others.total() / max(1, left))
            few = scipy.special.bdtr(np.minimum(seen, top - among), top - among, drawn)
            few = np.where((seen > 0) & (seen > (top - among) * drawn - 1), 1.0, few)
            chance = (scipy.special.bdtr(np.minimum(max(0, known - 1), among), among, more) * few).max(1)
            least = min(least, rate[min(np.flatnonzero(chance > alpha)[-1] + 1, STEPS), 0])
        return max(least, 1 / n)

    def tells(self, alpha: float) -> bool:
        """Whether anything could be shown: enough random units, which a basis of fewer than 20 units does not have."""
        may, drawn = int(self.units * alpha), len(self.random)
        return self.records > 0 and may > 0 and drawn >= units_for(self.units, alpha)


def units_for(units: int, alpha: float, found: int = 0, spare: int = 1) -> int:
    """Random units of a basis that miss all that reach q with those found at less than α, or a part of it to spare."""
    return math.floor(units * (1 - (alpha / spare) ** (1 / max(1, int(units * alpha) - found)))) + 1


def to_draw(controls: int, most: int, records: int, units: int, found: int, alpha: float) -> int:
    """Random units of a basis to draw: `controls` on `most` records, as many more on fewer as cost the same.

    And enough to tell all that are found from the others, were they all strong, with α to spare. What was found follows
    from the records that chose, never from held-out ones.
    """
    if controls < units_for(units, alpha) or not records:
        return controls
    beside = units_for(units, alpha, found - 1, spare=5) if found <= int(units * alpha) else 0
    return max(controls * most // records, beside)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What held-out records say of one unit."""

    flips: types.FlipCount
    lower: float
    """Lower bound of its flip rate, which holds for all units that its search found at once."""
    certainty: Certainty
    p: float | None
    """That it flips more than 95 % of all units do, exact, corrected over what its search found (Holm); None where
    too few random units were drawn."""
    rank: int | None
    """Among the shown units of its search, from 1; None where it is not shown."""


@lru_cache(maxsize=64)
def evidence_of(held_out: HeldOut, alpha: float) -> Mapping[types.Neuron, Evidence]:
    """The evidence of each unit found: the shown by their bound, then suggestive ones, then open, by name."""
    n, q = held_out.records, held_out.rate_of_random(alpha)
    level = alpha / max(1, len(held_out.found))
    by_p = sorted(held_out.found, key=lambda each: (-each.flips, each.neuron))
    corrected = holm([_tail(each.flips, n, q) for each in by_p])
    said: list[tuple[types.Neuron, Evidence]] = []
    for place, (unit, p) in enumerate(zip(by_p, corrected, strict=True), 1):
        is_shown, above = p < alpha, q is not None and unit.flips > q * n
        told = Evidence(
            flips=types.FlipCount(flips=unit.flips, n=n),
            lower=confidence.lower_bound(unit.flips, n, level),
            certainty=Certainty.SHOWN if is_shown else Certainty.SUGGESTIVE if above else Certainty.OPEN,
            p=None if q is None else p,
            rank=place if is_shown else None,
        )
        said.append((unit.neuron, told))
    order = list(Certainty)
    return dict(sorted(said, key=lambda each: (order.index(each[1].certainty), each[1].rank or 0, each[0])))


def _tail(flips: int, n: int, q: float | None) -> float:
    """P(X ≥ flips) of X ~ Binomial(n, q); 1 where there is no q."""
    return 1.0 if q is None or flips == 0 else float(scipy.special.bdtrc(flips - 1, n, q))

"""Rival predictions of when a unit flips: fitted on train records, what a test would tell, decided on held-out ones.

A rival says that the unit flips more often where its condition holds. On train records it gets two rates, p where it
holds and q elsewhere (half a record added to each side, Jeffreys), and from them the threshold that the held-out
difference of rates must reach: half the train difference, at least `LEAST_DIFFERENCE`.

What an ablation of record x tells rivals r = 1 … k apart is, in bits, the Jensen–Shannon divergence of their
predictions with equal weights (Lin 1991): H(mean p_r(x)) − mean H(p_r(x)), the mutual information of the record's
outcome and which rival is right (Lindley 1956), were one of them right. Records on which all predict alike tell 0.

On held-out records a rival is decided by the difference of its two rates (Newcombe's interval) and Fisher's exact p,
Holm over the rivals decided together; two rivals by the records on which exactly one holds: equal rates on both sides
if neither is nearer the flips, Fisher's test again, two-sided. Cost: no model calls. Axes: record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from mecharule_ops.confidence import difference_interval
from mecharule_ops.rules.interval import fisher_p
from mecharule_ops.rules.matthews import mcc
from mecharule_ops.types import FlipCount, FlipsWhere

LEAST_HELD = 10
"""Train records on each side of a condition below which it speaks for no family."""
LEAST_DIFFERENCE = 0.1
"""A smaller difference of rates is of no use to a person, whatever its p."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A condition as train records have it."""

    condition: str
    """The predicate, or `not (…)` around it where the unit flips less often where it holds."""
    mcc: float
    where: FlipsWhere

    @property
    def rates(self) -> tuple[float, float]:
        """(p where it holds, q elsewhere), half a record added to each outcome."""
        inside, outside = self.where.holds, self.where.elsewhere
        return (inside.flips + 0.5) / (inside.n + 1), (outside.flips + 0.5) / (outside.n + 1)

    @property
    def threshold(self) -> float:
        """The least held-out difference that supports it."""
        inside, outside = self.rates
        return round(max(LEAST_DIFFERENCE, (inside - outside) / 2), 2)


def best_fit(
    texts: Sequence[str], fires: Bool[np.ndarray, "predicate record"], flips: Bool[np.ndarray, " record"]
) -> Fit | None:
    """The predicate of largest |MCC| with the flips, the earlier on a tie.

    None where none holds on `LEAST_HELD` records and fails on as many.
    """
    varied = [place for place, row in enumerate(fires) if min(row.sum(), len(row) - row.sum()) >= LEAST_HELD]
    if not varied:
        return None
    scores = {place: mcc(fires[place], flips) for place in varied}
    best = max(varied, key=lambda place: round(abs(scores[place]), 9))
    holds = fires[best] if scores[best] >= 0 else ~fires[best]
    condition = texts[best] if scores[best] >= 0 else f"not ({texts[best]})"
    return Fit(condition=condition, mcc=abs(scores[best]), where=FlipsWhere.of(holds, flips))


def bits(predicted: Float[np.ndarray, "rival record"]) -> Float[np.ndarray, " record"]:
    """What each record's outcome would tell about which rival is right; 0 for fewer than two.

    >>> np.round(bits(np.array([[0.9, 0.5], [0.1, 0.5]])), 2).tolist()
    [0.53, 0.0]
    """
    if len(predicted) < 2:
        return np.zeros(predicted.shape[1])
    told = _entropy(predicted.mean(0)) - _entropy(predicted).mean(0)
    return np.asarray(np.maximum(0.0, told))


def _entropy(p: Float[np.ndarray, "*rivals record"]) -> Float[np.ndarray, "*rivals record"]:
    safe = np.clip(p, 1e-12, 1 - 1e-12)
    return np.asarray(-(safe * np.log2(safe) + (1 - safe) * np.log2(1 - safe)))


@dataclass(frozen=True, slots=True, kw_only=True)
class RivalDifference:
    """What held-out records say of one rival."""

    where: FlipsWhere
    value: float
    """Rate where it holds less rate elsewhere."""
    low: float
    high: float
    p: float
    """Fisher's, one-sided, not corrected."""
    mcc: float

    def state(self, threshold: float, corrected: float, alpha: float) -> str:
        """`supported`, `refuted` or `undecided`; the interval refutes, threshold and corrected p support.

        What is refuted is the amount: an interval that ends below the threshold may lie above 0.
        """
        if self.value >= threshold and corrected <= alpha:
            return "supported"
        return "refuted" if self.high < threshold else "undecided"


def difference(
    holds: Bool[np.ndarray, " record"], flips: Bool[np.ndarray, " record"], alpha: float
) -> RivalDifference:
    """The two rates of a condition with their difference's interval at 1 − α; −1 to 1 where a side is empty."""
    where = FlipsWhere.of(holds, flips)
    inside, outside = where.holds, where.elsewhere
    low, high = difference_interval(inside.flips, inside.n, outside.flips, outside.n, alpha)
    rates = [side.flips / side.n if side.n else 0.0 for side in (inside, outside)]
    p = fisher_p(inside.flips, inside.n, inside.flips + outside.flips, len(flips))
    return RivalDifference(
        where=where, value=rates[0] - rates[1], low=low, high=high, p=p, mcc=mcc(holds, flips)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Duel:
    """Two rivals on the records where exactly one holds; how often other records flip does not touch it."""

    first: FlipCount
    """Flips where only the first holds."""
    other: FlipCount

    @property
    def n(self) -> int:
        """Records where exactly one holds."""
        return self.first.n + self.other.n

    @property
    def p(self) -> float:
        """Fisher's exact p of equal rates, twice the smaller side's."""
        flips = self.first.flips + self.other.flips
        return min(
            1.0, 2 * min(fisher_p(side.flips, side.n, flips, self.n) for side in (self.first, self.other))
        )

    @property
    def value(self) -> float | None:
        """Rate where only the first holds less that where only the other does; None where a side is empty."""
        if not (self.first.n and self.other.n):
            return None
        return self.first.flips / self.first.n - self.other.flips / self.other.n

    def state(self, alpha: float) -> str:
        """Whether it flips more where only the first holds."""
        if self.value is None or self.p > alpha:
            return "undecided"
        return "supported" if self.value > 0 else "refuted"


def duel(
    first: Bool[np.ndarray, " record"],
    second: Bool[np.ndarray, " record"],
    flips: Bool[np.ndarray, " record"],
) -> Duel:
    """The flips where only the one holds, and where only the other does."""
    sides = [
        FlipCount(flips=int(flips[only].sum()), n=int(only.sum()))
        for only in (first & ~second, second & ~first)
    ]
    return Duel(first=sides[0], other=sides[1])

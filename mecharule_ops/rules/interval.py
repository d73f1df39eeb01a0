"""A rule's MCC on held-out records with a bootstrap interval, the percentile method of Efron (1979).

Resampling n records with replacement is drawing the four counts of the confusion table from a multinomial, so all
resamples come from one call and their MCC from one expression.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import sqrt

import numpy as np
from jaxtyping import Bool, Float, Int

from mecharule_ops.rules.matthews import mcc_of_counts
from mecharule_ops.types import RuleScore

RESAMPLES = 2000
LEVEL = 0.95
LEAST_SIDE = 10
"""Records of each side of the target below which no interval is given: resamples would hold too few of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MccInterval:
    """An MCC with the bootstrap interval around it."""

    mcc: float
    low: float
    """Lower end, at the level's lower percentile; a resample of one class or one prediction counts as 0."""
    high: float
    n: int
    positives: int
    """Records whose target is true."""

    def __str__(self) -> str:
        return f"{_short(self.mcc)} [{_short(self.low)}, {_short(self.high)}]"

    @property
    def above_chance(self) -> bool:
        """Whether the whole interval lies above 0."""
        return self.low > 0


def mcc_interval(
    fires: Bool[np.ndarray, " record"],
    target: Bool[np.ndarray, " record"],
    generator: np.random.Generator,
    *,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
) -> MccInterval | None:
    """The MCC and its percentile interval; None where a side of the target has fewer than `LEAST_SIDE` records."""
    positives, fired = int(np.count_nonzero(target)), int(np.count_nonzero(fires))
    hits = int(np.count_nonzero(fires & target))
    return _interval(hits, fired, positives, len(target), generator, resamples, level)


@lru_cache(4096)
def interval_of(score: RuleScore) -> MccInterval | None:
    """The interval of a rule whose score alone is known: n, positives, coverage and MCC fix the confusion table.

    The resamples are those of seed 0, so equal scores have equal intervals. None as for `mcc_interval`. Of a score
    that no table has, the nearest table's interval.
    """
    n, positives, fired = score.n, score.positives, round(score.coverage * score.n)
    spread = sqrt(fired * (n - fired) * positives * (n - positives))
    hits = round((score.mcc * spread + fired * positives) / n) if n else 0
    hits = min(max(hits, fired + positives - n, 0), fired, positives)
    found = _interval(hits, fired, positives, n, np.random.default_rng(0), RESAMPLES, LEVEL)
    return None if found is None else replace(found, mcc=score.mcc)


def _interval(
    hits: int,
    fired: int,
    positives: int,
    n: int,
    generator: np.random.Generator,
    resamples: int,
    level: float,
) -> MccInterval | None:
    if min(positives, n - positives) < LEAST_SIDE:
        return None
    cells = np.array([hits, fired - hits, positives - hits, n - fired - positives + hits])
    drawn = generator.multinomial(n, cells / n, size=resamples)
    tails = np.quantile(_mcc_of_cells(drawn), [(1 - level) / 2, (1 + level) / 2])
    return MccInterval(
        mcc=float(_mcc_of_cells(cells[None, :])[0]),
        low=float(tails[0]),
        high=float(tails[1]),
        n=n,
        positives=positives,
    )


def _mcc_of_cells(cells: Int[np.ndarray, "resample 4"]) -> Float[np.ndarray, " resample"]:
    """MCC of (true positives, false positives, false negatives, true negatives) in each row."""
    hits, fired, positives = cells[:, 0], cells[:, 0] + cells[:, 1], cells[:, 0] + cells[:, 2]
    return mcc_of_counts(hits, fired, positives, int(cells[0].sum()))


def _short(value: float) -> str:
    """Two decimals without the leading zero."""
    return f"{value:.2f}".replace("0.", ".", 1) if abs(value) < 0.995 else f"{value:.2f}"

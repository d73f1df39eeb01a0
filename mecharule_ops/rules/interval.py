"""A rule's MCC on held-out records with a bootstrap interval, the percentile method of Efron (1979).

Resampling n records with replacement is drawing the four counts of the confusion table from a multinomial, so all
resamples come from one call and their MCC from one expression.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from mecharule_ops.rules.matthews import mcc_of_counts

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
    n, positives = len(target), int(np.count_nonzero(target))
    if min(positives, n - positives) < LEAST_SIDE:
        return None
    hits, fired = np.count_nonzero(fires & target), np.count_nonzero(fires)
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

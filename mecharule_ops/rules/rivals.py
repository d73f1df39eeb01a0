"""What held-out records say of a claim that a unit flips more often where a condition holds than elsewhere.

The difference of its two rates (Newcombe's interval) and Fisher's exact p; a claim is supported where the difference
reaches the threshold that was registered for it. Cost: no model calls. Axes: record.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool

from mecharule_ops.confidence import difference_interval
from mecharule_ops.rules.interval import fisher_p
from mecharule_ops.rules.matthews import mcc
from mecharule_ops.types import FlipsWhere


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
        """`supported` where the whole interval, and p, reach the threshold; `refuted` where it ends below; `undecided`.

        What is decided is the amount: an interval that ends below the threshold may lie above 0.
        """
        if self.low >= threshold and corrected <= alpha:
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

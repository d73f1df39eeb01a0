"""The best single cut of one number, chosen on train: what a prediction from two numbers has to beat.

A record fires where its number lies above θ; NaN fires nowhere. Every cut between two different values is tried,
and so are "always" (θ = −∞) and "never" (θ = ∞), whose MCC is 0. Axes: record.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from mecharule_ops.rules.matthews import MARGIN, mcc_of_counts


def best_cut(values: Float[np.ndarray, " record"], target: Bool[np.ndarray, " record"]) -> float:
    """θ for which `values > θ` has the largest MCC with the target; ∞ where no cut is better than chance.

    Of cuts with the same MCC the one that fires least.
    """
    there = ~np.isnan(values)
    known = values[there].astype(float)
    order = np.argsort(-known, kind="stable")
    ranked, hits = known[order], np.cumsum(target[there][order])
    ends = np.flatnonzero(np.append(ranked[1:] < ranked[:-1], np.ones(min(1, len(ranked)), bool)))
    if not len(ends):
        return np.inf
    scores = mcc_of_counts(hits[ends], ends + 1, int(target.sum()), len(target))
    best = int(np.argmax(scores > scores.max() - MARGIN))
    if scores[best] <= MARGIN:
        return np.inf
    end = int(ends[best])
    return -np.inf if end + 1 == len(ranked) else float((ranked[end] + ranked[end + 1]) / 2)

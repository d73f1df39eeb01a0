"""The best single cut of one number, chosen on train: of a probability, or what a prediction has to beat.

Every cut between two different values is tried; NaN fires nowhere. Axes: record.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Int

from mecharule_ops.rules.matthews import MARGIN, mcc_of_counts


def best_threshold(
    guessed: Float[np.ndarray, " record"], target: Bool[np.ndarray, " record"]
) -> tuple[float, float]:
    """(threshold, MCC): the guess from which on to predict the target for the largest MCC; ties: the highest."""
    ranked, ends, scores = _ranked(guessed, target)
    place = int(np.argmax(scores))
    return float(ranked[ends[place]]), float(scores[place])


def best_cut(values: Float[np.ndarray, " record"], target: Bool[np.ndarray, " record"]) -> float:
    """θ for which `values > θ` has the largest MCC with the target; ∞ where no cut is better than chance.

    Of cuts with the same MCC the one that fires least. "Always" (θ = −∞) and "never" (θ = ∞) have an MCC of 0.
    """
    there = ~np.isnan(values)
    ranked, ends, scores = _ranked(values[there].astype(float), target[there], target)
    if not len(ends):
        return np.inf
    best = int(np.argmax(scores > scores.max() - MARGIN))
    if scores[best] <= MARGIN:
        return np.inf
    end = int(ends[best])
    return -np.inf if end + 1 == len(ranked) else float((ranked[end] + ranked[end + 1]) / 2)


def _ranked(
    values: Float[np.ndarray, " known"],
    target: Bool[np.ndarray, " known"],
    every: Bool[np.ndarray, " record"] | None = None,
) -> tuple[Float[np.ndarray, " known"], Int[np.ndarray, " cut"], Float[np.ndarray, " cut"]]:
    """(values, the largest first; the last place of each distinct one; MCC on `every` record of firing from it on)."""
    order = np.argsort(-values, kind="stable")
    ranked, hits = values[order], np.cumsum(target[order])
    ends = np.flatnonzero(np.append(ranked[1:] < ranked[:-1], np.ones(min(1, len(ranked)), bool)))
    whole = target if every is None else every
    return ranked, ends, mcc_of_counts(hits[ends], ends + 1, int(whole.sum()), len(whole))

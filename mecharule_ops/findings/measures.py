"""What is counted once a search is over: recall by strength bin, union coverage, Jaccard (paper, §5, E0, E2)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise

import numpy as np
from jaxtyping import Bool

from mecharule_ops.findings.records import RecallRow, UnitStrength
from mecharule_ops.thresholds import reaches
from mecharule_ops.types import Neuron, Share


def recall_rows(
    exhaustive: Sequence[UnitStrength], localized: Collection[Neuron], tau: float, alpha: float
) -> tuple[RecallRow, ...]:
    """Recall of the localized units under exhaustive ground truth, a row a bin and one over all, twice.

    By point estimate (Ê ≥ τ) the bins are [τ, .3), [.3, .5), [.5, 1]; by upper bound (Û_E ≥ τ, the inclusion
    rule of the paper's tables) the units with Ê < τ form one bin more. Exhaustive and search must have used
    the same slices and regime.
    """
    found = set(localized)
    edges = [tau, *(edge for edge in (0.3, 0.5) if edge > tau), 1.0]
    point = [unit for unit in exhaustive if unit.estimate.reaches(tau)]
    upper = [unit for unit in exhaustive if reaches(unit.estimate.ucb(alpha), tau)]
    return _rows("point", point, edges, found) + _rows("ucb", upper, [0.0, *edges], found)


def union_coverage(flips: Bool[np.ndarray, "neuron record"]) -> Share:
    """Cov_∪: records that at least one unit flips, of all records given (all of one regime's D_b)."""
    return Share(count=int(flips.any(axis=0).sum()), n=flips.shape[1])


def jaccard(first: Collection[Neuron], second: Collection[Neuron]) -> Share:
    """|A ∩ J| of |A ∪ J|; `rate` is the Jaccard index, NaN for two empty sets."""
    return Share(count=len(set(first) & set(second)), n=len(set(first) | set(second)))


def _rows(
    criterion: str, units: Sequence[UnitStrength], edges: Sequence[float], found: set[Neuron]
) -> tuple[RecallRow, ...]:
    rows = []
    for low, high in pairwise(edges):
        inside = [unit for unit in units if within(unit.estimate.strength, low, high)]
        rows.append(_row(criterion, inside, low, high, found, whole=False))
    return (*rows, _row(criterion, units, edges[0], edges[-1], found, whole=True))


def within(strength: float, low: float, high: float) -> bool:
    """Whether a strength lies in a bin of `recall_rows`: low ≤ Ê < high, and high itself when it is 1."""
    return low <= strength < high or (high == 1.0 and strength == 1.0)


def _row(
    criterion: str,
    units: Sequence[UnitStrength],
    low: float,
    high: float,
    found: set[Neuron],
    *,
    whole: bool,
) -> RecallRow:
    hits = sum(unit.neuron in found for unit in units)
    return RecallRow(
        criterion=criterion, low=low, high=high, whole=whole, found=Share(count=hits, n=len(units))
    )

"""What is counted once a search is over: recall by strength bin, union coverage, Jaccard, dominance.

Source: the paper, §5, E0, E2, and its appendix on overtopping. Dom^(m)(A) = max over tested B ⊆ A with |B| ≤ m of
Ê(B) / Ê(A). Pure counting over what a search tested.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise

import numpy as np
from jaxtyping import Bool

from mecharule_ops.cha.tree import ChaTree
from mecharule_ops.findings.counts import Dominance, RecallRow, UnitStrength
from mecharule_ops.thresholds import reaches
from mecharule_ops.types import ChaNode, Neuron, Share, Verdict


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
    bins = [(low, high, False) for low, high in pairwise(edges)]
    rows = []
    for low, high, whole in (*bins, (edges[0], edges[-1], True)):
        inside = [unit for unit in units if whole or within(unit.estimate.strength, low, high)]
        hits = Share(count=sum(unit.neuron in found for unit in inside), n=len(inside))
        rows.append(RecallRow(criterion=criterion, low=low, high=high, whole=whole, found=hits))
    return tuple(rows)


def within(strength: float, low: float, high: float) -> bool:
    """Whether a strength lies in a bin of `recall_rows`: low ≤ Ê < high, and high itself when it is 1."""
    return low <= strength < high or (high == 1.0 and strength == 1.0)


SMALL = 4
"""m of the second dominance that is kept, Dom^(4)."""


def dominance(trees: Sequence[ChaTree]) -> tuple[Dominance, ...]:
    """Dom^(1) and Dom^(4) of each opened group in which a unit was tested alone."""
    rows = []
    for tree in trees:
        for group in tree.nodes:
            if group.verdict is not Verdict.SPLIT or len(group.channels) == 1:
                continue
            inside = _inside(group, tree.nodes)
            singles = [node.estimate.strength for node in inside if len(node.channels) == 1]
            small = [node.estimate.strength for node in inside if len(node.channels) <= SMALL]
            if singles:
                rows.append(
                    Dominance(
                        layer=group.layer,
                        size=len(group.channels),
                        group_strength=group.estimate.strength,
                        best_singleton=max(singles),
                        best_small=max(small),
                    )
                )
    return tuple(rows)


def _inside(group: ChaNode, nodes: Sequence[ChaNode]) -> list[ChaNode]:
    """The tested groups within a group, itself left out."""
    channels = set(group.channels)
    return [node for node in nodes if node.node != group.node and channels.issuperset(node.channels)]

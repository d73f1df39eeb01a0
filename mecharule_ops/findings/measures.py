"""What is counted once a search is over: recall, union coverage, Jaccard, dominance.

Source: the paper, §5, E0, E2, and its appendix on overtopping. Dom^(m)(A) = max over tested B ⊆ A with |B| ≤ m of
Ê(B) / Ê(A). Pure counting over what a search tested.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from jaxtyping import Bool

from mecharule_ops.cha.tree import ChaTree
from mecharule_ops.findings.counts import Dominance, UnitStrength
from mecharule_ops.nodes import Node, Verdict
from mecharule_ops.thresholds import reaches
from mecharule_ops.types import Neuron, Share


def recall_by_bound(
    exhaustive: Sequence[UnitStrength], localized: Collection[Neuron], tau: float, alpha: float
) -> Share:
    """Localized units of those whose upper bound Û_E reaches τ when tested alone: the paper's rule of inclusion.

    Exhaustive and search must have used the same slices and regime.
    """
    truth = [unit.neuron for unit in exhaustive if reaches(unit.estimate.ucb(alpha), tau)]
    return Share(count=len({*truth} & {*localized}), n=len(truth))


def union_coverage(flips: Bool[np.ndarray, "neuron record"]) -> Share:
    """Cov_∪: records that at least one unit flips, of all records given (all of one regime's D_b)."""
    return Share(count=int(flips.any(axis=0).sum()), n=flips.shape[1])


def jaccard(first: Collection[Neuron], second: Collection[Neuron]) -> Share:
    """|A ∩ J| of |A ∪ J|; `rate` is the Jaccard index, NaN for two empty sets."""
    return Share(count=len(set(first) & set(second)), n=len(set(first) | set(second)))


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


def _inside(group: Node, nodes: Sequence[Node]) -> list[Node]:
    """The tested groups within a group, itself left out."""
    channels = set(group.channels)
    return [node for node in nodes if node.id != group.id and channels.issuperset(node.channels)]

"""Whether small subgroups explain their groups, and whether units flip the same records (paper, appendix, overtopping).

Dom^(m)(A) = max over tested B ⊆ A with |B| ≤ m of Ê(B) / Ê(A). Pure counting over what a search tested.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from jaxtyping import Bool

from mecharule_ops.cha.tree import ChaTree
from mecharule_ops.findings.counts import Dominance, FlipOverlap
from mecharule_ops.types import ChaNode, Neuron, Share, Verdict

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


def flip_overlaps(
    neurons: Sequence[Neuron], flips: Bool[np.ndarray, "neuron record"], chosen: Sequence[Neuron]
) -> tuple[FlipOverlap, ...]:
    """For each pair of the chosen units that were measured: records that both flip of those that either flips."""
    rows = {neuron: row for neuron, row in zip(neurons, flips, strict=True) if neuron in set(chosen)}
    return tuple(
        FlipOverlap(
            first=first,
            second=second,
            shared=Share(
                count=int((rows[first] & rows[second]).sum()), n=int((rows[first] | rows[second]).sum())
            ),
        )
        for first, second in combinations(rows, 2)
    )

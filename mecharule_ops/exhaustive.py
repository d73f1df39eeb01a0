"""Brute force: every unit tested singly, through the same interface as the search (paper, §6, recall).

It is the ground truth for recall and the oracle in tests; it costs N · (n₊ + n₋) example-forwards a layer.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from mecharule_ops.cha import ChaSearch
from mecharule_ops.cha_settings import ChaSettings
from mecharule_ops.cha_tree import ChaTree
from mecharule_ops.confidence import Testing
from mecharule_ops.types import Basis, FlipEstimate, LayerCandidates, Neuron, Regime

STRENGTH_EDGES = (0.2, 0.3, 0.5)
"""Lower edges of the strength bins [.2, .3), [.3, .5), [.5, 1]."""


def exhaustive_search(candidates: LayerCandidates, *, settings: ChaSettings, regime: Regime) -> ChaSearch:
    """A search that asks every unit once, for all its examples; its tree has only roots of one unit."""
    singly = replace(settings, largest=1, testing=Testing.FIXED)
    return ChaSearch(candidates, settings=singly, regime=regime)


def singleton_estimates(tree: ChaTree, basis: Basis) -> dict[Neuron, FlipEstimate]:
    """The flip counts of every unit that a search tested singly."""
    return {
        Neuron(basis, node.layer, node.channels[0]): node.estimate
        for node in tree.nodes
        if len(node.channels) == 1
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallBin:
    """How many true agonists of one range of strength a search found."""

    low: float
    """Lower edge, included."""
    high: float
    """Upper edge, excluded unless it is 1."""
    agonists: int
    """Units of the ground truth in the bin."""
    found: int

    @property
    def recall(self) -> float:
        """found / agonists; NaN for an empty bin."""
        return self.found / self.agonists if self.agonists else float("nan")


def recall(
    found: Collection[Neuron],
    truth: Mapping[Neuron, FlipEstimate],
    *,
    alpha: float | None = None,
    edges: tuple[float, ...] = STRENGTH_EDGES,
) -> tuple[RecallBin, ...]:
    """Recall by strength bin, against brute force.

    A unit's place is its point estimate Ê, so that the bins hold the τ-agonists; with `alpha` it is Û_E at
    that α, so that they hold the units which brute force localizes (the paper's count).
    """
    strength = {
        unit: estimate.strength if alpha is None else estimate.ucb(alpha) for unit, estimate in truth.items()
    }
    bins = []
    for low, high in zip(edges, (*edges[1:], 1.0), strict=True):
        inside = {unit for unit, e in strength.items() if low <= e and (e < high or high == 1.0)}
        bins.append(RecallBin(low=low, high=high, agonists=len(inside), found=len(inside & set(found))))
    return tuple(bins)

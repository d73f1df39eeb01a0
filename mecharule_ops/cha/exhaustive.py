"""Brute force: every unit tested singly, through the same interface as the search (paper, §6, recall).

It is the ground truth for recall and the oracle in tests; it costs N · (n₊ + n₋) example-forwards a layer.
"""

from dataclasses import replace

from mecharule_ops.cha.search import ChaSearch
from mecharule_ops.cha.settings import ChaSettings
from mecharule_ops.cha.tree import ChaTree
from mecharule_ops.confidence import Testing
from mecharule_ops.types import Basis, FlipEstimate, LayerCandidates, Neuron, Regime


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

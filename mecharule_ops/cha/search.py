"""Contrastive Hierarchical Ablation of one layer, and brute force; no model and no I/O in it (paper, algorithm 1).

How a group is asked and judged is told in `group_search`. Splitting follows the paper: the root by attribution
sign, later nodes by balanced bisection. Settings beyond it start from smaller groups (`largest`) and open small
ones into units at once (`small`).

Brute force tests every unit singly through the same interface: the ground truth for recall (paper, §6) and the oracle
in tests; it costs N · (n₊ + n₋) example-forwards a layer.
"""

from dataclasses import replace

from mecharule_ops.cha import group_search, partition, under_test
from mecharule_ops.cha.settings import ChaSettings
from mecharule_ops.cha.tree import ChaTree
from mecharule_ops.confidence import Testing
from mecharule_ops.types import Basis, FlipEstimate, LayerCandidates, Neuron, Regime


class ChaSearch(group_search.GroupSearch):
    """Searches one layer from groups of neighbours in attribution, or of the order that its settings name.

    Here the third of four channels flips every example, and no other flips any:

    >>> from mecharule_ops.types import FlipCount, FlipEstimate, GroupAnswer
    >>> import numpy as np
    >>> layer = LayerCandidates(layer=0, channels=np.arange(4), scores=np.zeros(4))
    >>> search = ChaSearch(layer, settings=ChaSettings(n_associated=20, n_unrelated=20), regime=Regime(1))
    >>> while not search.done:
    ...     for asked in search.ask():
    ...         rate = 2 in asked.channels
    ...         plus, minus = (
    ...             FlipCount(flips=rate * len(part), n=len(part)) for part in (asked.associated, asked.unrelated)
    ...         )
    ...         estimate = FlipEstimate(associated=plus, unrelated=minus)
    ...         decided = search.tell(GroupAnswer(node=asked.node, estimate=estimate))
    >>> [node.channels for node in search.tree.kept]
    [(2,)]
    """

    def __init__(self, candidates: LayerCandidates, *, settings: ChaSettings, regime: Regime) -> None:
        super().__init__(candidates, settings=settings, regime=regime)
        start = partition.roots(candidates, settings.order, settings.largest)
        self.status = self._obstacle(max((len(root.channels) for root in start), default=0))
        if not self.done:
            for root in start:
                self._open(root.channels, cut=root.cut)
            self._settle()

    def _parts(self, group: under_test.GroupUnderTest) -> tuple[partition.Channels, partition.Channels]:
        return partition.bisect(group.query.channels, group.cut)


def exhaustive_search(candidates: LayerCandidates, *, settings: ChaSettings, regime: Regime) -> ChaSearch:
    """A search that asks every unit once, for all its examples; its tree has only roots of one unit."""
    return ChaSearch(candidates, settings=replace(settings, largest=1, testing=Testing.FIXED), regime=regime)


def singleton_estimates(tree: ChaTree, basis: Basis) -> dict[Neuron, FlipEstimate]:
    """The flip counts of every unit that a search tested singly."""
    return {
        Neuron(basis, node.layer, node.channels[0]): node.estimate
        for node in tree.nodes
        if len(node.channels) == 1
    }

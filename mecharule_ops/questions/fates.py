"""Which tested group settled a unit, rebuilt from what a run recorded (paper, algorithm 1).

Events name a group by its first and last unit and its size. A group is a stretch of its parent in search order,
and a root is a stretch of the layer in the order that attribution gave it, so the members of every group follow
without asking the model again. Costs no model call.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from mecharule_ops.cha.partition import Channels, roots
from mecharule_ops.cha.settings import ChaSettings
from mecharule_ops.errors import StoreError
from mecharule_ops.state.search_view import DECIDED, NodeView, SearchView
from mecharule_ops.types import LayerCandidates, Neuron


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributionRank:
    """Where attribution put a unit among all units of its basis. It chose what was tested and proves nothing."""

    rank: int
    """1 is the largest |score|; units with equal |score| share the best of their ranks."""
    units: int
    score: float


def attribution_rank(neuron: Neuron, scores: Float[np.ndarray, "layer channel"]) -> AttributionRank:
    """The rank of a unit by |score|."""
    score = float(scores[neuron.layer, neuron.channel])
    above = int((np.abs(scores) > abs(score)).sum())
    return AttributionRank(rank=above + 1, units=scores.size, score=score)


def search_order(candidates: LayerCandidates, settings: ChaSettings) -> Channels:
    """A layer's units in the order in which a search with these settings groups them."""
    parts = roots(
        candidates,
        order=settings.order,
        root_split=settings.root_split,
        largest=settings.largest,
        rng=np.random.default_rng([settings.seed, candidates.layer]),
    )
    return tuple(channel for part in parts for channel in part.channels)


def members(view: SearchView, order: Channels) -> Mapping[int, Channels]:
    """The channels of every tested node of a search, given the layer's units in search order.

    Raises `StoreError` when the events and the order do not belong together.
    """
    found: dict[int, Channels] = {}
    for number in sorted(view.nodes):
        node = view.nodes[number]
        if node.verdict is not None:
            above = order if node.parent is None else found.get(node.parent, order)
            found[number] = _stretch(node, above)
    return found


def fate(view: SearchView, nodes: Mapping[int, Channels], channel: int) -> NodeView | None:
    """The smallest decided node with a unit in it: its own test if it had one; None when it was never settled."""
    settled = [
        view.nodes[number]
        for number, channels in nodes.items()
        if view.nodes[number].verdict in DECIDED and channel in channels
    ]
    return min(settled, key=lambda node: node.size, default=None)


def path_to(view: SearchView, node: NodeView) -> tuple[NodeView, ...]:
    """The nodes from a root down to this one."""
    path = [node]
    while path[0].parent is not None and path[0].parent in view.nodes:
        path.insert(0, view.nodes[path[0].parent])
    return tuple(path)


def _stretch(node: NodeView, above: Channels) -> Channels:
    """The part of a parent's channels that a node's first unit and size name."""
    names = [Neuron.parse(text).channel for text in node.units.split(" … ")]
    if names[0] in above:
        begin = above.index(names[0])
        part = above[begin : begin + node.size]
        if len(part) == node.size and part[-1] == names[-1]:
            return part
    raise StoreError(
        f"expected node {node.node} ({node.units}, {node.size} units) inside its parent: this run's events and "
        "its attribution do not belong together; resume the run"
    )

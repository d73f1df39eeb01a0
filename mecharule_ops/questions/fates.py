"""Which tested group settled a unit, rebuilt from what a run recorded (paper, algorithm 1).

Events name a group by its first and last unit and its size. A group is a stretch of the layer's units in the order that
attribution or prediction gave them, so the members of every group follow without asking the model again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from mecharule_ops.cha.group_search import starting_groups
from mecharule_ops.cha.partition import Channels
from mecharule_ops.cha.prediction import LayerPrediction
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """What was predicted of a unit, among all units of its basis. It chose what was tested and proves nothing."""

    rank: int
    """1 is the most promising; ties share the best of their ranks."""
    units: int
    associated: float
    """Share of D̃⁺ predicted to flip."""
    unrelated: float


def promise(
    channel: int, layer: int, candidates: Sequence[LayerCandidates], predictions: Sequence[LayerPrediction]
) -> Promise:
    """The rank of a candidate by predicted strength and then by score."""
    pairs = list(zip(candidates, predictions, strict=True))
    own, predicted = next(pair for pair in pairs if pair[0].layer == layer)
    place = int(np.searchsorted(own.channels, channel))
    strength, score = predicted.strength[place], predicted.scores[place]
    above = sum(
        int(((each.strength > strength) | ((each.strength == strength) & (each.scores > score))).sum())
        for _, each in pairs
    )
    return Promise(
        rank=above + 1,
        units=sum(len(each.channels) for each, _ in pairs),
        associated=float(predicted.associated[place]),
        unrelated=float(predicted.unrelated[place]),
    )


def search_order(candidates: LayerCandidates, settings: ChaSettings) -> Channels:
    """A layer's units in the order in which a search with these settings groups them."""
    return tuple(channel for part in starting_groups(candidates, settings) for channel in part.channels)


def members(view: SearchView, order: Channels, numbers: Collection[int] | None = None) -> dict[int, Channels]:
    """The channels of every tested node of a search, or of some, given the layer's units in search order.

    Raises `StoreError` when the events and the order do not belong together.
    """
    nodes = (view.nodes[number] for number in sorted(view.nodes if numbers is None else numbers))
    return {node.node: _stretch(node, order) for node in nodes if node.verdict is not None}


def guided_members(
    view: SearchView, candidates: LayerCandidates, prediction: LayerPrediction, settings: ChaSettings
) -> dict[int, Channels]:
    """The same for a guided search: by promise, and as in `cha` from where it dropped its predictions.

    Raises `StoreError` when the events and the predictions do not belong together.
    """
    by_promise = tuple(candidates.channels[prediction.order].tolist())
    if view.dropped is None:
        return members(view, by_promise)
    begin = view.dropped.node
    found = members(view, by_promise, [node for node in view.nodes if node < begin])
    left = search_order(_left(view, candidates, found), settings)
    return found | members(view, left, [node for node in view.nodes if node >= begin])


def _left(view: SearchView, candidates: LayerCandidates, found: Mapping[int, Channels]) -> LayerCandidates:
    """The units that were searched again: those not tested alone, without the pruned ones if they were too dear."""
    alone = {channels[0] for channels in found.values() if len(channels) == 1}
    assert view.dropped is not None
    if len(candidates.channels) - len(alone) != view.dropped.units:
        for node, channels in found.items():
            alone |= set(channels) if view.nodes[node].verdict == "pruned" else set()
    return candidates.without(alone)


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


def _stretch(node: NodeView, order: Channels) -> Channels:
    """The channels that a node's first unit and size name."""
    first, last = (Neuron.parse(node.units.split(" … ")[end]).channel for end in (0, -1))
    if first in order:
        begin = order.index(first)
        part = order[begin : begin + node.size]
        if len(part) == node.size and part[-1] == last:
            return part
    raise StoreError(
        f"expected node {node.node} ({node.units}, {node.size} units) inside its parent: this run's events and "
        "its attribution do not belong together; resume the run"
    )

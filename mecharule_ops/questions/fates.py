"""Which tested group settled a unit of a recorded search, and where attribution and prediction ranked it before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from mecharule_ops.cha.prediction import LayerPrediction
from mecharule_ops.errors import ClaimNotSupported
from mecharule_ops.run.live_run import Run
from mecharule_ops.state.search_view import NodeView, SearchView
from mecharule_ops.types import LayerCandidates, Neuron, Regime


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


def settled_by(run: Run, neuron: Neuron, regime: Regime) -> tuple[NodeView, ...]:
    """The nodes of the recorded search from a root to the one that settled the unit; empty when none did.

    Raises `ClaimNotSupported` for a run whose groups do not say which units they hold.
    """
    view = run.search_view(neuron.basis, regime, neuron.layer)
    if view is None:
        return ()
    if not view.keeps_members:
        raise ClaimNotSupported(
            f"expected a run whose groups say which units they hold, {run.id} was made before they did; "
            f"start a new run, as `mecharule show {run.id} --section settings` says"
        )
    settled = view.settled(neuron.channel)
    return () if settled is None else path_to(view, settled)


def path_to(view: SearchView, node: NodeView) -> tuple[NodeView, ...]:
    """The nodes from a root down to this one."""
    path = [node]
    while path[0].parent is not None and path[0].parent in view.nodes:
        path.insert(0, view.nodes[path[0].parent])
    return tuple(path)

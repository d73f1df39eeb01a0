"""Which tested group settled a unit of a recorded search, and where attribution and prediction ranked it before."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from mecharule_ops.cha.prediction import LayerPrediction
from mecharule_ops.errors import NotStored
from mecharule_ops.run.driver import Drive, NamedSearch
from mecharule_ops.run.live_run import Run
from mecharule_ops.state.search_view import NodeView, SearchView
from mecharule_ops.types import Basis, LayerCandidates, Neuron, Regime


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

    The search is made once more from the ablations that the run keeps, which gives the members of every group: its own
    test if the unit had one, else the smallest decided group with it. Cost: no model call, a look-up in the
    run file for every group that the search asked. Raises `StoreError` on a damaged run file.
    """
    view = run.search_view(neuron.basis, regime, neuron.layer)
    candidates = run.candidates(neuron.basis, regime)
    if view is None or neuron.layer not in {layer.layer for layer in candidates.layers}:
        return ()
    searches = run.recorded_plan(neuron.basis, regime).searches(candidates, regime)
    _search_again(run, neuron.basis, regime, searches)
    (tree,) = (named.search.tree for named in searches if named.layer == neuron.layer)
    told = tuple(node for node in tree.nodes if node.node in view.nodes and view.nodes[node.node].verdict)
    settled = replace(tree, nodes=told).fate(neuron.channel)
    return () if settled is None else path_to(view, view.nodes[settled.node])


def _search_again(run: Run, basis: Basis, regime: Regime, searches: Sequence[NamedSearch]) -> None:
    """Tell searches what the run keeps, as far as it goes: one that a budget ended lacks outcomes."""
    engine = run.stored_only(run.intervention(basis))
    slices = run.slices(regime)
    drive = Drive(
        engine=engine,
        basis=basis,
        regime=regime,
        associated=slices.associated.tolist(),
        unrelated=slices.unrelated.tolist(),
        tau=run.config.tau,
        batch=1,
        width=2,
        ahead=False,
    )
    told = -1
    while told < (told := sum(len(named.search.tree.nodes) for named in searches)):
        with suppress(NotStored):
            deque(drive.run(searches), maxlen=0)


def path_to(view: SearchView, node: NodeView) -> tuple[NodeView, ...]:
    """The nodes from a root down to this one."""
    path = [node]
    while path[0].parent is not None and path[0].parent in view.nodes:
        path.insert(0, view.nodes[path[0].parent])
    return tuple(path)

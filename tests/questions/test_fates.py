"""Group members rebuilt from events equal those of the search itself, for any planted table and setting."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from mecharule_ops.cha.guided import GuidedSettings, guided_searches
from mecharule_ops.cha.prediction import LayerPrediction
from mecharule_ops.cha.search import ChaSearch
from mecharule_ops.cha.settings import ChaSettings
from mecharule_ops.cha.tree import ChaTree
from mecharule_ops.errors import StoreError
from mecharule_ops.events import PredictionsDropped
from mecharule_ops.pipeline import driver
from mecharule_ops.questions.fates import (
    attribution_rank,
    fate,
    guided_members,
    members,
    path_to,
    promise,
    search_order,
)
from mecharule_ops.state.search_view import SearchView
from mecharule_ops.types import (
    Basis,
    FlipCount,
    FlipEstimate,
    GroupAnswer,
    LayerCandidates,
    Neuron,
    Regime,
)

LAYER = 3


def _searched(
    seed: int, settings: ChaSettings, units: int = 60
) -> tuple[LayerCandidates, ChaTree, SearchView]:
    """A search on a random table in which a group flips an example when one of its units does."""
    rng = np.random.default_rng(seed)
    channels = np.sort(rng.choice(500, units, replace=False))
    candidates = LayerCandidates(layer=LAYER, channels=channels, scores=rng.normal(size=units).round(1))
    rates = np.where(rng.random(units) < 0.1, 0.5, 0.005)
    flips = {int(c): rng.random(128) < rate for c, rate in zip(channels, rates, strict=True)}
    search = ChaSearch(candidates, settings=settings, regime=Regime.BASELINE_POSITIVE)
    view = SearchView(search="cha:1:m3", regime=1, layer=LAYER, units=units)
    while pending := search.ask():
        query = pending[int(rng.integers(len(pending)))]
        flipped = np.logical_or.reduce([flips[channel] for channel in query.channels])
        parts = flipped[:64][list(query.associated)], flipped[64:][list(query.unrelated)]
        counts = [FlipCount(flips=int(part.sum()), n=len(part)) for part in parts]
        answer = GroupAnswer(
            node=query.node, estimate=FlipEstimate(associated=counts[0], unrelated=counts[1])
        )
        for node in search.tell(answer):
            view = view.apply(driver.tested_event(view.search, node, Basis.MLP_OUT))
    return candidates, search.tree, view


@pytest.mark.parametrize("settings", [ChaSettings(), ChaSettings.algorithm_1(), ChaSettings(largest=None)])
@pytest.mark.parametrize("seed", range(4))
def test_members_of_every_node_are_those_that_were_asked(seed: int, settings: ChaSettings) -> None:
    """Two routes to one set: the search's own channels, and what events and attribution imply."""
    candidates, tree, view = _searched(seed, settings)
    found = members(view, search_order(candidates, settings))
    assert found == {node.node: node.channels for node in tree.nodes}
    assert len(found) > 5


@pytest.mark.parametrize("seed", range(3))
def test_fate_is_the_trees_own_for_every_unit(seed: int) -> None:
    """The node that settled a unit, for units tested alone and units pruned in a group."""
    candidates, tree, view = _searched(seed, ChaSettings())
    nodes = members(view, search_order(candidates, ChaSettings()))
    sizes = set()
    for channel in candidates.channels.tolist():
        settled, own = fate(view, nodes, channel), tree.fate(channel)
        assert own is not None
        assert settled is not None
        assert settled.node == own.node
        sizes.add(settled.size > 1)
        path = path_to(view, settled)
        assert path[0].parent is None
        assert path[-1] == settled
        assert all(below.parent == above.node for above, below in pairwise(path))
    assert sizes == {True, False}
    assert fate(view, nodes, 999) is None


def test_an_order_that_is_not_the_searches_own_is_refused() -> None:
    """With attribution scores of another run the groups do not fit, and no members are made up."""
    candidates, _, view = _searched(0, ChaSettings())
    other = LayerCandidates(layer=LAYER, channels=candidates.channels, scores=-candidates.scores[::-1].copy())
    with pytest.raises(StoreError, match="do not belong together"):
        members(view, search_order(other, ChaSettings()))


def test_rank_counts_larger_scores_of_the_whole_basis() -> None:
    """By hand: |−3| is the largest of six, the two of size 2 share rank 2."""
    scores = np.array([[1.0, -2.0, 0.0], [2.0, -3.0, 0.5]])

    def rank(layer: int, channel: int) -> int:
        return attribution_rank(Neuron(Basis.MLP_OUT, layer, channel), scores).rank

    assert [rank(1, 1), rank(0, 1), rank(1, 0), rank(0, 0), rank(0, 2)] == [1, 2, 2, 4, 6]
    assert attribution_rank(Neuron(Basis.MLP_OUT, 1, 1), scores).score == -3.0


def _guided(strengths: np.ndarray, seed: int) -> tuple[LayerCandidates, LayerPrediction, ChaTree, SearchView]:
    """A guided search of the same kind of table, told by the driver's events."""
    rng = np.random.default_rng(seed)
    units = len(strengths)
    channels = np.sort(rng.choice(5 * units, units, replace=False))
    candidates = LayerCandidates(layer=LAYER, channels=channels, scores=rng.normal(size=units).round(1))
    prediction = LayerPrediction(associated=strengths, unrelated=strengths / 2, scores=rng.normal(size=units))
    loud = rng.choice(units, 9, replace=False)
    flips = {int(c): rng.random(128) < (0.5 if i in loud else 0.001) for i, c in enumerate(channels)}
    (search,) = guided_searches(
        [candidates], [prediction], settings=GuidedSettings(), regime=Regime.BASELINE_POSITIVE
    )
    view = SearchView(search="guided:1:m3", regime=1, layer=LAYER, units=units)
    while pending := search.ask():
        query = pending[int(rng.integers(len(pending)))]
        flipped = np.logical_or.reduce([flips[channel] for channel in query.channels])
        parts = flipped[:64][list(query.associated)], flipped[64:][list(query.unrelated)]
        counts = [FlipCount(flips=int(part.sum()), n=len(part)) for part in parts]
        told = FlipEstimate(associated=counts[0], unrelated=counts[1])
        for node in search.tell(GroupAnswer(node=query.node, estimate=told)):
            view = view.apply(driver.tested_event(view.search, node, Basis.MLP_OUT))
    if search.fallback is not None:
        dropped = PredictionsDropped(
            search=view.search,
            node=search.fallback.node,
            units=search.fallback.units,
            reason=search.fallback.sentence,
        )
        view = replace(view, dropped=dropped)
    return candidates, prediction, search.tree, view


@pytest.mark.parametrize("keeps_predictions", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_members_of_a_guided_search_follow_from_its_predictions(seed: int, keeps_predictions: bool) -> None:
    """Also where it dropped them: with none the order is random, and every pruned group was searched again.

    The order of attribution does not fit: no members are made up.
    """
    rng = np.random.default_rng(seed)
    strengths = rng.random(400) * 0.1 if keeps_predictions else np.zeros(400)
    candidates, prediction, tree, view = _guided(strengths, seed)
    assert keeps_predictions or view.dropped is not None
    found = guided_members(view, candidates, prediction, ChaSettings())
    assert found == {node.node: node.channels for node in tree.nodes}
    for channel in candidates.channels[:40].tolist():
        own, settled = tree.fate(channel), fate(view, found, channel)
        assert own is not None
        assert settled is not None
        assert settled.size == len(own.channels)
    with pytest.raises(StoreError, match="do not belong together"):
        members(view, search_order(candidates, ChaSettings()))


def test_promise_counts_the_units_of_all_layers() -> None:
    """By hand: .4 is first of five, then .2 with the larger score, .2, and both at 0 share the fourth rank."""
    layers = [
        LayerCandidates(layer=number, channels=channels, scores=np.zeros(len(channels)))
        for number, channels in ((1, np.array([3, 5])), (4, np.array([0, 2, 9])))
    ]
    told = [([0.2, 0.0], [1.0, 0.0]), ([0.1, 0.4, 0.0], [2.0, 0.0, 0.0])]
    predictions = [
        LayerPrediction(associated=np.array(rates), unrelated=np.array(rates), scores=np.array(scores))
        for rates, scores in told
    ]
    predictions[1] = replace(predictions[1], unrelated=np.array([0.2, 0.0, 0.0]))
    ranks = [promise(c, n, layers, predictions).rank for n, c in ((4, 2), (4, 0), (1, 3), (1, 5), (4, 9))]
    assert ranks == [1, 2, 3, 4, 4]
    own = promise(0, 4, layers, predictions)
    assert (own.units, own.associated, own.unrelated) == (5, 0.1, 0.2)

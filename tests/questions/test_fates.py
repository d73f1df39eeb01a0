"""Group members rebuilt from events equal those of the search itself, for any planted table and setting."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from mecharule_ops.cha.search import ChaSearch
from mecharule_ops.cha.settings import ChaSettings
from mecharule_ops.cha.tree import ChaTree
from mecharule_ops.errors import StoreError
from mecharule_ops.pipeline import driver
from mecharule_ops.questions.fates import attribution_rank, fate, members, path_to, search_order
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

"""Brute force through the search's interface."""

from __future__ import annotations

import numpy as np
from search_oracles import drive, layer_of, planted_union

from mecharule_ops.cha.exhaustive import exhaustive_search, singleton_estimates
from mecharule_ops.cha.search import ChaSearch
from mecharule_ops.cha.settings import ALGORITHM_1, ChaSettings
from mecharule_ops.types import Basis, Neuron, Regime, SearchStatus, Verdict


def unit(channel: int) -> Neuron:
    return Neuron(Basis.MLP_OUT, 3, channel)


def test_every_unit_is_asked_once_for_all_examples() -> None:
    """N roots of one unit, N · (n₊ + n₋) example-forwards, and the estimates of the units themselves."""
    rng = np.random.default_rng(0)
    oracle = planted_union(rng, units=25, agonists=4, noise=0.05)
    search = exhaustive_search(layer_of(25, rng), settings=ChaSettings(), regime=Regime.BASELINE_POSITIVE)
    assert len(search.ask()) == 25
    tree = drive(search, oracle)
    assert (tree.status, tree.queries, tree.example_forwards) == (SearchStatus.COMPLETE, 25, 25 * 128)
    assert all(node.parent is None for node in tree.nodes)
    estimates = singleton_estimates(tree, Basis.MLP_OUT)
    assert estimates == {unit(c): oracle.estimate((c,), range(64), range(64)) for c in range(25)}


def test_small_slices_do_not_stop_brute_force() -> None:
    """Eight examples can prune nothing, but each unit's rate is still measured."""
    rng = np.random.default_rng(1)
    oracle = planted_union(rng, units=6, agonists=2, n=8)
    settings = ChaSettings(n_associated=8, n_unrelated=8)
    tree = drive(exhaustive_search(layer_of(6), settings=settings, regime=Regime.BASELINE_POSITIVE), oracle)
    assert tree.status is SearchStatus.COMPLETE
    assert {node.verdict for node in tree.nodes} == {Verdict.KEPT}


def test_the_search_and_brute_force_agree_on_what_both_localize() -> None:
    """Two routes: a localized unit has the same counts and bound in the fixed search and in brute force."""
    rng = np.random.default_rng(2)
    layer, oracle = layer_of(80, rng), planted_union(rng, units=80, agonists=5)
    settings = ALGORITHM_1
    brute = drive(exhaustive_search(layer, settings=settings, regime=Regime.BASELINE_POSITIVE), oracle)
    tree = drive(ChaSearch(layer, settings=settings, regime=Regime.BASELINE_POSITIVE), oracle)
    assert tree.agonists(Basis.MLP_OUT) == brute.agonists(Basis.MLP_OUT)
    assert len(tree.kept) == 5

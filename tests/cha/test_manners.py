"""The manners of every kind of search as an ask/tell machine: order, resumption, stopping, honesty."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from search_oracles import drive_together, fate, layer_of, planted_union

from mecharule_ops.cha.group_search import GroupSearch
from mecharule_ops.cha.guided import Guide, GuidedSettings
from mecharule_ops.cha.prediction import LayerPrediction
from mecharule_ops.cha.search import ChaSearch, exhaustive_search
from mecharule_ops.cha.settings import ALGORITHM_1, ChaSettings
from mecharule_ops.nodes import Verdict
from mecharule_ops.types import GroupAnswer, LayerCandidates, Regime, SearchStatus

REGIME = Regime.BASELINE_POSITIVE
Make = Callable[[Sequence[LayerCandidates], ChaSettings], Sequence[GroupSearch]]


def guided(layers: Sequence[LayerCandidates], settings: ChaSettings) -> Sequence[GroupSearch]:
    """Rates that fall with the channel are predicted of both slices."""
    rates = [0.5 * 0.9 ** np.arange(len(layer.channels)) for layer in layers]
    told = [LayerPrediction(associated=one, unrelated=one, scores=np.zeros(len(one))) for one in rates]
    return Guide(layers, told, settings=GuidedSettings(cha=settings), regime=REGIME).searches


def alone(kind: Callable[..., GroupSearch]) -> Make:
    return lambda layers, settings: [kind(layer, settings=settings, regime=REGIME) for layer in layers]


KINDS: dict[str, tuple[Make, ChaSettings]] = {
    "algorithm 1": (alone(ChaSearch), ALGORITHM_1),
    "sequential": (alone(ChaSearch), ChaSettings()),
    "brute force": (alone(exhaustive_search), ALGORITHM_1),
    "guided": (guided, ChaSettings()),
}
SIZES = (50, 30)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def searches(kind: str, sizes: Sequence[int] = SIZES, **changes: object) -> Sequence[GroupSearch]:
    make, settings = KINDS[kind]
    layers = [layer_of(size, np.random.default_rng(2), layer) for layer, size in enumerate(sizes)]
    return make(layers, replace(settings, **changes))


ORACLES = [planted_union(np.random.default_rng(5), units=size, agonists=4, noise=0.02) for size in SIZES]


def test_the_order_of_answers_does_not_change_the_tree(kind: str) -> None:
    """Nodes, ids and costs are the same for any order, and for answers in portions."""
    orders = (None, np.random.default_rng(3), np.random.default_rng(4))
    first, *others = [drive_together(searches(kind), ORACLES, order) for order in orders]
    assert others == [first, first]
    assert all(tree.nodes for tree in first)


def test_replayed_answers_resume_a_search(kind: str) -> None:
    """New searches told the first answers, layer by layer, ask what the interrupted ones ask, and end alike."""
    whole = drive_together(searches(kind), ORACLES)
    first, second = searches(kind), searches(kind)
    log: list[tuple[int, GroupAnswer]] = []
    while len(log) < 30:
        place, query = [(place, query) for place in (1, 0) for query in first[place].ask()][-1]
        log.append((place, ORACLES[place].answer(query)))
        first[place].tell(log[-1][1])
    for place, answer in log:
        second[place].tell(answer)
    assert [one.ask() for one in second] == [one.ask() for one in first] == [one.ask() for one in first]
    assert drive_together(second, ORACLES) == whole


def test_a_stopped_search_keeps_what_it_found_and_others_go_on(kind: str) -> None:
    """It ends with the status given, and a finished search stays as it ended."""
    first, second = searches(kind)
    first.tell(ORACLES[0].answer(first.ask()[0]))
    nodes = first.tree.nodes
    first.stop(SearchStatus.BUDGET_SPENT)
    assert (first.done, first.status, first.ask()) == (True, SearchStatus.BUDGET_SPENT, ())
    assert (first.tree.nodes, fate(first.tree, 49)) == (nodes, None)
    first.stop(SearchStatus.STOPPED)
    drive_together([second], ORACLES[1:])
    assert (first.status, second.status) == (SearchStatus.BUDGET_SPENT, SearchStatus.COMPLETE)


def test_honest_non_results(kind: str) -> None:
    """No units: EMPTY. Where 13 examples a slice cannot prune: UNDERPOWERED, but brute force measures all the same."""
    empty, full = searches(kind, (0, 20))
    assert (empty.status, full.status) == (SearchStatus.EMPTY, None)
    assert searches(kind, ()) in ((), [])
    oracle = planted_union(np.random.default_rng(1), units=6, agonists=2, n=13)
    (small,) = searches(kind, (6,), n_associated=13, n_unrelated=13)
    if kind == "brute force":
        (tree,) = drive_together([small], [oracle])
        assert tree.status is SearchStatus.COMPLETE
        assert {node.verdict for node in tree.nodes} == {Verdict.KEPT}
    else:
        assert (small.status, small.ask()) == (SearchStatus.UNDERPOWERED, ())
        (larger,) = searches(kind, (6,), n_associated=17)
        assert larger.status is None

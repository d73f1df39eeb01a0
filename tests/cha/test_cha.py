"""The search: algorithm 1 node by node, its guarantees, its options, its manners as an ask/tell machine."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from naive_fate import fate
from search_oracles import Cancelling, UnionOfFlips, drive, layer_of, naive_algorithm_1, planted_union

from mecharule_ops import confidence
from mecharule_ops.cha.group_search import AnswerError
from mecharule_ops.cha.partition import Order, RootSplit
from mecharule_ops.cha.search import ChaSearch
from mecharule_ops.cha.settings import ALGORITHM_1, ChaSettings
from mecharule_ops.cha.tree import ChaTree
from mecharule_ops.confidence import AlphaPolicy, Spending
from mecharule_ops.types import (
    Basis,
    FlipCount,
    FlipEstimate,
    GroupAnswer,
    Neuron,
    Regime,
    SearchStatus,
    Verdict,
)


def search_of(units: int, settings: ChaSettings, rng: np.random.Generator | None = None) -> ChaSearch:
    return ChaSearch(layer_of(units, rng), settings=settings, regime=Regime.BASELINE_POSITIVE)


def found(tree: ChaTree) -> set[int]:
    return {node.channels[0] for node in tree.kept}


def answer(node: int, flips: int, n: int, *, unrelated: int = 0) -> GroupAnswer:
    counts = FlipCount(flips=flips, n=n), FlipCount(flips=unrelated, n=n)
    return GroupAnswer(node=node, estimate=FlipEstimate(associated=counts[0], unrelated=counts[1]))


def part_answer(node: int, flips: int, n: int, *, unrelated: bool = False) -> GroupAnswer:
    """Counts of one slice only."""
    told, nothing = FlipCount(flips=flips, n=n), FlipCount(flips=0, n=0)
    parts = (nothing, told) if unrelated else (told, nothing)
    return GroupAnswer(node=node, estimate=FlipEstimate(associated=parts[0], unrelated=parts[1]))


def test_one_agonist_of_four_worked_by_hand() -> None:
    """Unit 2 of four flips half of D⁺: the root, two halves and two units are asked; 0 flips prune."""
    search = search_of(4, ALGORITHM_1)
    (root,) = search.ask()
    assert (root.node, root.channels, root.associated, root.unrelated) == (
        0,
        (0, 1, 2, 3),
        range(64),
        range(64),
    )
    (split,) = search.tell(answer(0, 32, 64))
    assert split.verdict is Verdict.SPLIT
    assert [query.channels for query in search.ask()] == [(0, 1), (2, 3)]
    (pruned,) = search.tell(answer(1, 0, 64))
    assert (pruned.verdict, pruned.parent, pruned.depth) == (Verdict.PRUNED, 0, 1)
    assert pruned.ucb == pytest.approx(1 - 0.025 ** (1 / 64))
    search.tell(answer(2, 32, 64))
    assert [query.channels for query in search.ask()] == [(2,), (3,)]
    (kept,) = search.tell(answer(3, 32, 64, unrelated=2))
    assert (kept.verdict, kept.estimate.strength) == (Verdict.KEPT, 0.5)
    search.tell(answer(4, 0, 64))
    tree = search.tree
    assert (search.status, tree.queries, tree.example_forwards) == (SearchStatus.COMPLETE, 5, 5 * 128)
    (agonist,) = tree.agonists(Basis.MLP_OUT)
    assert agonist.neuron == Neuron(Basis.MLP_OUT, 3, 2)
    assert agonist.estimate.signed_selectivity == pytest.approx(0.5 - 2 / 64)
    assert fate(tree, 1) == pruned
    assert fate(tree, 3) == tree.nodes[4]
    assert tree.nodes[4].verdict is Verdict.DROPPED
    assert fate(tree, 9) is None
    assert [node.node for node in tree.children(2)] == [3, 4]


@pytest.mark.parametrize("seed", range(12))
def test_equals_algorithm_1_node_by_node(seed: int) -> None:
    """Groups, counts, bounds and verdicts are those of the paper's recursion; a wrong α is told apart."""
    rng = np.random.default_rng(seed)
    units = int(rng.integers(2, 40))
    layer = layer_of(units, rng)
    oracle = planted_union(rng, units=units, agonists=min(3, units), noise=0.02)
    tree = drive(ChaSearch(layer, settings=ALGORITHM_1, regime=Regime.BASELINE_POSITIVE), oracle)
    ours = {node.channels: (node.estimate, node.ucb, node.verdict.value) for node in tree.nodes}
    channels = tuple(range(units))
    assert ours == naive_algorithm_1(oracle, channels, layer.scores, n=64, tau=0.2, alpha=0.05)
    assert ours != naive_algorithm_1(oracle, channels, layer.scores, n=64, tau=0.2, alpha=0.10)


@pytest.mark.parametrize("testing", confidence.Testing)
@pytest.mark.parametrize("order", Order)
def test_no_agonist_is_lost_under_monotone_flips(testing: confidence.Testing, order: Order) -> None:
    """With exact answers every unit whose own test is not pruned is found, in at most 2N − 1 queries."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        oracle = planted_union(rng, units=60, agonists=5, noise=0.01)
        settings = replace(ALGORITHM_1, testing=testing, order=order)
        tree = drive(search_of(60, settings, rng), oracle)
        strong = set(np.flatnonzero(oracle.strengths() >= 0.25).tolist())
        assert strong <= found(tree)
        assert tree.queries <= 2 * 60 - 1


def test_an_agonist_is_lost_when_a_neighbour_cancels_it() -> None:
    """Without monotonicity a group can hide its agonist: the check above can fail."""
    flips = np.zeros((8, 64), dtype=bool)
    flips[3, :40] = True
    restores = np.zeros_like(flips)
    restores[5] = True
    oracle = Cancelling(
        associated=flips, unrelated=flips, restores_associated=restores, restores_unrelated=restores
    )
    assert found(drive(search_of(8, ALGORITHM_1), oracle)) == set()
    smaller = replace(ALGORITHM_1, largest=4)
    assert found(drive(search_of(8, smaller), oracle)) == {3}


def test_queries_grow_like_group_testing_under_separation() -> None:
    """Without noise, at most 2·k·(log₂(N/k) + 1) + 2k queries: the theorem's O(k log N/k + k)."""
    for seed, (units, agonists) in enumerate([(256, 1), (256, 4), (1024, 8), (1000, 16)]):
        rng = np.random.default_rng(seed)
        tree = drive(search_of(units, ALGORITHM_1), planted_union(rng, units=units, agonists=agonists))
        assert len(found(tree)) == agonists
        assert tree.queries <= 2 * agonists * (np.log2(units / agonists) + 1) + 2 * agonists


@pytest.mark.parametrize(
    "settings", [ALGORITHM_1, ChaSettings(), ChaSettings(order=Order.RANDOM, largest=None)]
)
def test_the_order_of_answers_does_not_change_the_tree(settings: ChaSettings) -> None:
    """Nodes, ids and costs are the same for any order, and for answers in portions."""
    oracle = planted_union(np.random.default_rng(1), units=70, agonists=6, noise=0.03)
    trees = [
        drive(search_of(70, settings, np.random.default_rng(2)), oracle, order)
        for order in (None, np.random.default_rng(3), np.random.default_rng(4))
    ]
    assert trees[0] == trees[1] == trees[2]
    assert trees[0].nodes


def test_replayed_answers_resume_a_search() -> None:
    """A fresh search told the first answers asks what the interrupted one asks, and ends in the same tree."""
    oracle = planted_union(np.random.default_rng(5), units=50, agonists=4, noise=0.02)
    settings = ChaSettings()
    whole = drive(search_of(50, settings), oracle)
    first, second = search_of(50, settings), search_of(50, settings)
    log: list[GroupAnswer] = []
    while len(log) < 9:
        log.append(oracle.answer(first.ask()[-1]))
        first.tell(log[-1])
    for told in log:
        second.tell(told)
    assert first.ask() == second.ask() == first.ask()
    assert drive(second, oracle) == whole


@pytest.mark.parametrize(
    ("units", "agonists", "noise"), [(1, 1, 0.0), (9, 0, 0.0), (9, 9, 0.0), (128, 44, 0.04), (200, 200, 0.1)]
)
@pytest.mark.parametrize("testing", confidence.Testing)
def test_cost_never_exceeds_exhaustive_by_more_than_the_overhead(
    units: int, agonists: int, noise: float, testing: confidence.Testing
) -> None:
    """In example-forwards, whatever the density; without the limit a dense layer costs more."""
    rng = np.random.default_rng(units + agonists)
    oracle = planted_union(rng, units=units, agonists=agonists, noise=noise)
    settings = ChaSettings(testing=testing)
    tree = drive(search_of(units, settings, rng), oracle)
    assert tree.example_forwards <= 1.05 * units * 128
    assert tree.status is SearchStatus.COMPLETE
    if units == agonists == 200:
        assert found(tree) == set(range(200))
        unlimited = drive(search_of(units, ALGORITHM_1, rng), oracle)
        assert unlimited.example_forwards > 1.05 * units * 128


def test_groups_beyond_the_limit_wait_until_pruning_has_freed_enough() -> None:
    """36 quiet groups of 16 units at 128 examples: the limit allows 28 at first, and none is opened into units."""
    settings = replace(ALGORITHM_1, largest=16, overhead=0.05)
    search = search_of(576, settings)
    assert len(search.ask()) == 28
    quiet = UnionOfFlips(associated=np.zeros((576, 64), bool), unrelated=np.zeros((576, 64), bool))
    tree = drive(search, quiet)
    assert (tree.queries, len(tree.nodes)) == (36, 36)


def test_curtailed_search_equals_the_fixed_one() -> None:
    """Same groups, same verdicts and the same localized units, from fewer examples."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        oracle = planted_union(rng, units=64, agonists=6, noise=0.02)
        fixed = drive(search_of(64, ALGORITHM_1), oracle)
        curtailed = drive(search_of(64, replace(ALGORITHM_1, testing=confidence.Testing.CURTAILED)), oracle)
        verdicts = [{node.channels: node.verdict for node in tree.nodes} for tree in (fixed, curtailed)]
        assert verdicts[0] == verdicts[1]
        assert fixed.agonists(Basis.MLP_OUT) == curtailed.agonists(Basis.MLP_OUT)
        assert curtailed.example_forwards < fixed.example_forwards


def test_sequential_search_finishes_what_it_keeps() -> None:
    """Kept units have their full slices; a quiet layer is pruned after 17 examples of each."""
    oracle = planted_union(np.random.default_rng(8), units=100, agonists=5, noise=0.01)
    tree = drive(search_of(100, ChaSettings()), oracle)
    assert tree.kept
    assert all(node.estimate.associated.n == node.estimate.unrelated.n == 64 for node in tree.kept)
    unlimited = ChaSettings(largest=None)
    quiet = UnionOfFlips(associated=np.zeros((100, 64), bool), unrelated=np.zeros((100, 64), bool))
    assert drive(search_of(100, unlimited), quiet).example_forwards == 2 * 17


def test_slices_are_asked_one_after_the_other() -> None:
    """The second only once the first has closed; parts begin with the slice in which their group flipped more."""
    search = search_of(8, ChaSettings(overhead=None))

    def asked() -> list[tuple[int, range, range]]:
        return [(query.node, query.associated, query.unrelated) for query in search.ask()]

    assert asked() == [(0, range(17), range(0))]
    search.tell(part_answer(0, 1, 17))
    assert asked() == [(0, range(17, 22), range(0))]
    search.tell(part_answer(0, 0, 5))
    search.tell(part_answer(0, 0, 6))
    assert asked() == [(0, range(0), range(17))]
    (split,) = search.tell(part_answer(0, 9, 17, unrelated=True))
    assert (split.verdict, split.estimate.associated.n, split.estimate.unrelated.n) == (Verdict.SPLIT, 28, 17)
    assert asked() == [(1, range(0), range(17)), (2, range(0), range(17))]
    search.tell(part_answer(1, 9, 17, unrelated=True))
    search.tell(part_answer(2, 9, 17, unrelated=True))
    assert asked() == [(node, range(0), range(17)) for node in range(3, 11)]


def test_a_slice_that_closed_stays_closed() -> None:
    """A unit without a flip in 17 of D⁺ that flips all of D⁻ is kept, with the bound of what was seen."""
    search = search_of(1, ChaSettings(largest=1))
    search.tell(part_answer(0, 0, 17))
    search.tell(part_answer(0, 17, 17, unrelated=True))
    (query,) = search.ask()
    assert (query.associated, query.unrelated) == (range(17, 64), range(17, 64))
    rest = FlipEstimate(associated=FlipCount(flips=40, n=47), unrelated=FlipCount(flips=0, n=47))
    (kept,) = search.tell(GroupAnswer(node=0, estimate=rest))
    assert (kept.verdict, kept.estimate.strength) == (Verdict.KEPT, 40 / 64)
    assert kept.ucb >= 0.2


def test_groups_that_the_limit_lets_begin_can_be_pruned() -> None:
    """144 quiet groups of four: the limit allows 108 at first, and no group is opened for want of budget."""
    settings = ChaSettings(largest=4)
    search = search_of(576, settings)
    assert len(search.ask()) == int(0.05 * 576 * 128) // 34 == 108
    quiet = UnionOfFlips(associated=np.zeros((576, 64), bool), unrelated=np.zeros((576, 64), bool))
    tree = drive(search, quiet)
    assert (tree.queries, len(tree.nodes), tree.example_forwards) == (144, 144, 144 * 34)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (answer(7, 0, 64), "open question"),
        (answer(0, 0, 63), "flips of 64 examples"),
        (answer(0, 0, 0), "flips of 64 examples"),
    ],
)
def test_an_illegal_answer_changes_nothing(wrong: GroupAnswer, message: str) -> None:
    """An unknown node or another number of examples raises, and the same question stays open."""
    search = search_of(4, ALGORITHM_1)
    before = search.ask(), search.tree
    with pytest.raises(AnswerError, match=message):
        search.tell(wrong)
    assert (search.ask(), search.tree) == before


def test_more_flips_than_examples_and_answers_told_twice_are_illegal() -> None:
    """Neither a count beyond n nor a second answer to one question is taken."""
    search = search_of(4, ALGORITHM_1)
    impossible = answer(0, 64, 64)
    object.__setattr__(impossible.estimate.associated, "flips", 65)
    with pytest.raises(AnswerError, match="got 65 of 64"):
        search.tell(impossible)
    search.tell(answer(0, 64, 64))
    before = search.ask(), search.tree
    with pytest.raises(AnswerError, match="got node 0"):
        search.tell(answer(0, 64, 64))
    assert (search.ask(), search.tree) == before


def test_a_stopped_search_keeps_what_it_found() -> None:
    """`stop` ends it with the status given; a finished search stays as it ended."""
    oracle = planted_union(np.random.default_rng(9), units=40, agonists=3)
    search = search_of(40, ALGORITHM_1)
    search.tell(oracle.answer(search.ask()[0]))
    search.stop(SearchStatus.BUDGET_SPENT)
    assert (search.done, search.status, search.ask()) == (True, SearchStatus.BUDGET_SPENT, ())
    assert len(search.tree.nodes) == 1
    assert fate(search.tree, 0) is None
    search.stop(SearchStatus.STOPPED)
    assert search.status is SearchStatus.BUDGET_SPENT


def test_honest_non_results() -> None:
    """No units: EMPTY. 16 examples a slice cannot prune at α/2 = .025 and τ = .2: UNDERPOWERED; 17 can."""
    assert search_of(0, ALGORITHM_1).status is SearchStatus.EMPTY
    small = replace(ALGORITHM_1, n_associated=16)
    assert search_of(5, small).status is SearchStatus.UNDERPOWERED
    assert search_of(5, small).ask() == ()
    assert search_of(5, replace(small, n_associated=17)).status is None


def test_slices_may_differ_in_size() -> None:
    """The shorter slice gives what it has, and its bound is that of its own size."""
    rng = np.random.default_rng(3)
    oracle = planted_union(rng, units=30, agonists=3)
    uneven = UnionOfFlips(associated=oracle.associated, unrelated=oracle.unrelated[:, :40])
    for testing in confidence.Testing:
        tree = drive(search_of(30, ChaSettings(n_unrelated=40, testing=testing)), uneven)
        assert set(np.flatnonzero(uneven.strengths() >= 0.25).tolist()) <= found(tree)
        assert {node.estimate.unrelated.n for node in tree.kept} == {40}


@pytest.mark.parametrize("spending", [Spending.UNIFORM, Spending.BY_SIZE])
def test_global_spending_prunes_less_at_the_same_examples(spending: Spending) -> None:
    """The theorem's allocations ask at least as many groups as the paper's per-node α, and lose nothing."""
    rng = np.random.default_rng(11)
    oracle = planted_union(rng, units=120, agonists=4, noise=0.004)
    strict = replace(ALGORITHM_1, alpha=AlphaPolicy(spending=spending))
    tree, loose = (drive(search_of(120, settings), oracle) for settings in (strict, ALGORITHM_1))
    assert found(loose) <= found(tree)
    assert tree.queries >= loose.queries


def test_root_splits_by_sign_and_then_in_the_middle() -> None:
    """Five units of score ≥ 0 and three below are the root's children; else it is bisected."""
    layer = replace(layer_of(8), scores=np.array([1.0, -1, 2, 0, -3, 5, -1, 1]))
    for root_split, parts in [
        (RootSplit.SIGN, [(0, 2, 3, 5, 7), (1, 4, 6)]),
        (RootSplit.NONE, [(0, 1, 2, 3), (4, 5, 6, 7)]),
    ]:
        settings = replace(ALGORITHM_1, root_split=root_split)
        search = ChaSearch(layer, settings=settings, regime=Regime.BASELINE_NEGATIVE)
        search.tell(answer(0, 64, 64))
        assert [query.channels for query in search.ask()] == parts


@pytest.mark.parametrize(
    ("order", "largest", "groups"),
    [
        (Order.ATTRIBUTION, None, [(3, 5, 2, 0, 1, 4)]),
        (Order.ATTRIBUTION, 2, [(3, 5), (2, 0), (1, 4)]),
        (Order.CHANNEL, 3, [(0, 2), (3, 5), (1, 4)]),
        (Order.CHANNEL, 1, [(0,), (2,), (3,), (5,), (1,), (4,)]),
    ],
)
def test_first_groups_follow_sign_order_and_size(
    order: Order, largest: int | None, groups: list[tuple[int, ...]]
) -> None:
    """Scores ≥ 0 come first, strongest first when asked, in equal groups that never mix the signs."""
    layer = replace(layer_of(6), scores=np.array([0.1, -0.9, 0.3, 0.7, -0.2, 0.5]))
    settings = replace(ALGORITHM_1, order=order, largest=largest)
    search = ChaSearch(layer, settings=settings, regime=Regime.BASELINE_POSITIVE)
    assert [query.channels for query in search.ask()] == groups


def test_a_small_positive_group_opens_into_units() -> None:
    """With `small` = 4 a group of four that flips is followed by its four units, one of five by two halves."""
    for units, parts in [(4, [(0,), (1,), (2,), (3,)]), (5, [(0, 1), (2, 3, 4)])]:
        search = search_of(units, replace(ALGORITHM_1, small=4))
        search.tell(answer(0, 64, 64))
        assert [query.channels for query in search.ask()] == parts


def test_random_order_is_set_by_the_seed() -> None:
    """Equal seeds give equal groups, other seeds other ones, and every unit is in one group."""
    groups = [
        [query.channels for query in search_of(40, ChaSettings(order=Order.RANDOM, seed=seed)).ask()]
        for seed in (1, 1, 2)
    ]
    assert groups[0] == groups[1] != groups[2]
    assert sorted(channel for group in groups[0] for channel in group) == list(range(40))


def test_importing_the_search_loads_no_model_library() -> None:
    """`import mecharule_ops.cha.search` brings in neither torch nor transformers."""
    code = "import sys, mecharule_ops.cha.search as c; print(c.__name__, {'torch', 'transformers'} & set(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "mecharule_ops.cha.search set()"

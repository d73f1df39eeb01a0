"""The guided search: its steps by hand, what it claims under any predictions, its manners over several layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_fate import fate
from search_oracles import Cancelling, UnionOfFlips, drive_together, planted_union

from mecharule_ops import confidence
from mecharule_ops.cha import prediction_failure
from mecharule_ops.cha.exhaustive import exhaustive_search
from mecharule_ops.cha.group_search import AnswerError, Search
from mecharule_ops.cha.guided import GuidedSearch, GuidedSettings, guided_searches, half_of_the_weight
from mecharule_ops.cha.partition import separated
from mecharule_ops.cha.prediction import LayerPrediction, PredictionError
from mecharule_ops.cha.prediction_failure import PredictionRecord
from mecharule_ops.cha.settings import ALGORITHM_1, ChaSettings
from mecharule_ops.cha.tree import ChaTree
from mecharule_ops.types import (
    FlipCount,
    FlipEstimate,
    GroupAnswer,
    LayerCandidates,
    Regime,
    SearchStatus,
    Verdict,
)

DEFAULT = GuidedSettings()
REGIME = Regime.BASELINE_POSITIVE


def predicted(strengths: np.ndarray | list[float]) -> LayerPrediction:
    """The same rate for both slices, no scores."""
    rates = np.array(strengths, dtype=float)
    return LayerPrediction(associated=rates, unrelated=rates, scores=np.zeros(len(rates)))


def layers_of(*sizes: int) -> list[LayerCandidates]:
    return [
        LayerCandidates(layer=number, channels=np.arange(size) * 2 + 1, scores=np.zeros(size))
        for number, size in enumerate(sizes)
    ]


def guided(
    predictions: list[LayerPrediction], given_settings: GuidedSettings = DEFAULT
) -> tuple[GuidedSearch, ...]:
    layers = layers_of(*(len(each.scores) for each in predictions))
    return guided_searches(layers, predictions, settings=given_settings, regime=REGIME)


class ByPlace(UnionOfFlips):
    """Channels of the layers here are odd numbers: unit i is channel 2 i + 1."""

    def group(self, flips: np.ndarray, channels: tuple[int, ...]) -> np.ndarray:
        return super().group(flips, tuple((channel - 1) // 2 for channel in channels))


def of(oracle: UnionOfFlips) -> ByPlace:
    return ByPlace(associated=oracle.associated, unrelated=oracle.unrelated)


def agonists(oracle: UnionOfFlips) -> set[int]:
    """What brute force says: channels whose unit alone reaches τ."""
    return {2 * int(place) + 1 for place in np.flatnonzero(oracle.strengths() >= DEFAULT.cha.tau)}


def kept(tree: ChaTree) -> set[int]:
    return {node.channels[0] for node in tree.kept}


def first_asked(tree: ChaTree) -> list[tuple[int, ...]]:
    """Groups until a unit comes up again: those confirmed and swept."""
    groups: list[tuple[int, ...]] = []
    for node in tree.nodes:
        if any(set(node.channels) & set(group) for group in groups):
            break
        groups.append(node.channels)
    return groups


def tell_nothing(search: Search) -> None:
    for query in search.ask():
        nothing = FlipEstimate(
            associated=FlipCount(flips=0, n=len(query.associated)),
            unrelated=FlipCount(flips=0, n=len(query.unrelated)),
        )
        search.tell(GroupAnswer(node=query.node, estimate=nothing))


def test_steps_by_hand() -> None:
    """Two layers, 12 units each: a wave of the nine most promising over both, then quiet groups of what is left.

    Left in layer 0 are rates .04 .03 .03, which make groups {.04}, {.03}, {.03} within .05 ({.03 .03} would be
    .06); in layer 1 all twelve at 0 in one group, which four groups of about half of it part afterwards.
    """
    rates = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.25, 0.1, 0.04, 0.03, 0.03]
    first, second = guided([predicted(rates), predicted([0.0] * 12)], replace(DEFAULT, quiet=0.05))
    assert [query.channels for query in first.ask()] == [(2 * place + 1,) for place in range(9)]
    assert second.ask() == ()
    assert (first.done, second.done) == (False, False)
    tell_nothing(first)
    tell_nothing(first)
    assert [query.channels for query in first.ask()] == [(19,), (21,), (23,)]
    assert [query.channels for query in second.ask()] == [tuple(range(1, 25, 2))]
    while first.ask() or second.ask():
        tell_nothing(first)
        tell_nothing(second)
    assert (first.status, second.status) == (SearchStatus.COMPLETE, SearchStatus.COMPLETE)
    assert (first.tree.queries, second.tree.queries) == (12, 1 + 4)
    assert first.fallback is second.fallback is None


def test_an_example_that_many_flip_counts_once() -> None:
    """One example of 64 that all units flip alone leaves the sweep one group; as rates alone they would need three."""
    near_tie = np.zeros((64, 100), dtype=bool)
    near_tie[5] = True
    silent = of(UnionOfFlips(associated=np.zeros((100, 64), bool), unrelated=np.zeros((100, 64), bool)))
    rates = predicted(near_tie.mean(0).tolist())
    chosen = replace(DEFAULT, quiet=0.5)
    for prediction, groups in ((rates, 3), (replace(rates, flips=(near_tie, near_tie)), 1)):
        (tree,) = drive_together(guided([prediction], chosen), [silent])
        assert len(first_asked(tree)) == DEFAULT.first_wave + groups


@given(data=st.data(), units=st.integers(1, 9))
def test_together_is_the_union_or_the_sum(data: st.DataObject, units: int) -> None:
    """Against one group at a time."""
    sizes = data.draw(st.tuples(st.integers(0, 5), st.integers(1, 5)))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    sides = tuple(rng.random((size, units)) < 0.3 for size in sizes)
    chosen = rng.permutation(units)[: rng.integers(1, units + 1)]
    rates = [side.mean(0) if len(side) else np.zeros(units) for side in sides]
    bare = LayerPrediction(associated=rates[0], unrelated=rates[1], scores=np.zeros(units))
    known = replace(bare, flips=sides)
    for end in range(1, len(chosen) + 1):
        group = chosen[:end]
        union = [side[:, group].any(1).mean() if len(side) else 0.0 for side in sides]
        assert known.together(chosen)[:, end - 1] == pytest.approx(union)
        assert bare.together(chosen)[:, end - 1] == pytest.approx([rate[group].sum() for rate in rates])


def test_hits_prolong_confirming_and_promises_too() -> None:
    """A hit in a wave brings another wave; so does a unit left that is predicted to reach τ."""
    flips = np.zeros((40, 64), dtype=bool)
    flips[4] = True
    oracle = of(UnionOfFlips(associated=flips, unrelated=np.zeros_like(flips)))
    low = np.linspace(0.019, 0.001, 40)

    def alone(strengths: np.ndarray, oracle: ByPlace) -> int:
        (tree,) = drive_together(guided([predicted(strengths)]), [oracle])
        return sum(len(node.channels) == 1 for node in tree.nodes)

    silent = of(UnionOfFlips(associated=np.zeros_like(flips), unrelated=np.zeros_like(flips)))
    assert alone(low, silent) == 9
    assert alone(low, oracle) == 18
    assert alone(np.r_[np.full(20, 0.2), np.zeros(20)], silent) == 27


@pytest.mark.parametrize(
    ("strengths", "first"),
    [([0.0] * 8, 4), ([0.3] + [0.0] * 7, 1), ([0.1, 0.1] + [0.0] * 6, 2), ([0.1, 0.0], 1), ([0.0] * 5, 3)],
)
def test_half_of_the_weight_by_hand(strengths: list[float], first: int) -> None:
    """.3 and seven times 0: weights .3375 and .0375 each, so the first alone is more than half of .6."""
    assert half_of_the_weight(np.array(strengths)) == first


def test_a_flipping_group_opens_by_prediction() -> None:
    """The promising unit of a swept group is asked alone, the fifteen others as a group again."""
    strengths = [0.04] + [0.0] * 15
    (search,) = guided([predicted(strengths)], replace(DEFAULT, worth=0.4))
    tell_nothing(search)
    tell_nothing(search)
    (query,) = search.ask()
    assert query.channels == tuple(range(3, 33, 2))
    (search,) = guided([predicted([0.0, *strengths])], replace(DEFAULT, worth=0.4))
    assert [query.channels for query in search.ask()] == [(3,)]
    (second,) = guided([predicted([0.5, *strengths])], replace(DEFAULT, worth=0.4))
    tell_nothing(second)
    tell_nothing(second)
    (group,) = second.ask()
    assert len(group.channels) == 16
    all_flip = FlipCount(flips=len(group.associated), n=len(group.associated))
    none = FlipCount(flips=0, n=0)
    second.tell(GroupAnswer(node=group.node, estimate=FlipEstimate(associated=all_flip, unrelated=none)))
    assert [query.channels for query in second.ask()] == [(3,), tuple(range(5, 35, 2))]


rates = st.floats(0, 1, allow_nan=False)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10_000),
    told=st.lists(st.tuples(rates, rates, st.floats(-1e3, 1e3)), min_size=1, max_size=90),
    planted=st.integers(0, 8),
    noise=st.sampled_from([0.0, 0.01, 0.1]),
    testing=st.sampled_from(confidence.Testing),
    sweep=st.sampled_from([1, 16, 512]),
)
def test_whatever_is_predicted_claims_are_those_of_brute_force(
    seed: int,
    told: list[tuple[float, float, float]],
    planted: int,
    noise: float,
    testing: confidence.Testing,
    sweep: int,
) -> None:
    """Every unit KEPT has the counts of its exact test, every unit is settled, the cost is within 1.05 of brute
    force's, and the order of answers changes nothing."""
    table = np.array(told)
    prediction = LayerPrediction(associated=table[:, 0], unrelated=table[:, 1], scores=table[:, 2])
    units = len(told)
    rng = np.random.default_rng(seed)
    oracle = of(planted_union(rng, units=units, agonists=min(planted, units), noise=noise))
    chosen = replace(DEFAULT, cha=ChaSettings(testing=testing), sweep=sweep)
    (tree,) = drive_together(guided([prediction], chosen), [oracle])
    exact = range(64)
    for node in tree.kept:
        assert node.estimate == oracle.estimate(node.channels, exact, exact)
        assert node.ucb >= 0.2
    assert tree.status is SearchStatus.COMPLETE
    assert all(fate(tree, 2 * place + 1) is not None for place in range(units))
    assert tree.example_forwards <= 1.05 * units * 128
    (again,) = drive_together(guided([prediction], chosen), [oracle], rng)
    assert again == tree
    (layer,) = layers_of(units)
    (brute,) = drive_together([exhaustive_search(layer, settings=chosen.cha, regime=REGIME)], [oracle])
    alone = {node.channels: node.estimate for node in brute.nodes}
    assert all(alone[node.channels] == node.estimate for node in tree.kept)


@pytest.mark.parametrize("seed", range(6))
def test_no_agonist_is_lost_under_monotone_flips(seed: int) -> None:
    """Three layers, predictions at random or against the truth: units of strength .3 and more are all found."""
    rng = np.random.default_rng(seed)
    oracles = [of(planted_union(rng, units=units, agonists=4, noise=0.002)) for units in (200, 60, 7)]
    for sign in (0.0, -1.0):
        told = [predicted(np.clip(0.5 + sign * each.strengths() + rng.random(len(each.strengths())) * 0.4, 0, 1))
                for each in oracles]  # fmt: skip
        trees = drive_together(guided(told), oracles, rng)
        for tree, oracle in zip(trees, oracles, strict=True):
            assert agonists(oracle) <= kept(tree)


def test_true_predictions_cost_less_than_false_ones() -> None:
    """800 units, 6 agonists: what brute force knows as prediction finds all at a fifth of the cost of its reverse."""
    oracle = of(planted_union(np.random.default_rng(1), units=800, agonists=6))
    costs = []
    for strengths in (oracle.strengths(), 1 - oracle.strengths()):
        (tree,) = drive_together(guided([predicted(strengths)]), [oracle])
        assert kept(tree) == agonists(oracle)
        costs.append(tree.example_forwards)
    assert costs[0] < costs[1] / 4
    assert costs[0] < 0.025 * 800 * 128


def test_replayed_answers_resume_all_layers() -> None:
    """New searches told the first answers, layer by layer, ask what the interrupted ones ask, and end alike."""
    rng = np.random.default_rng(5)
    oracles = [of(planted_union(rng, units=units, agonists=3, noise=0.02)) for units in (50, 30)]
    told = [predicted(rng.random(50) * 0.3), predicted(rng.random(30) * 0.1)]
    whole = drive_together(guided(told), oracles)
    first, second = guided(told), guided(told)
    log: list[tuple[int, GroupAnswer]] = []
    while len(log) < 40:
        pending = [(place, query) for place in (1, 0) for query in first[place].ask()]
        place, query = pending[-1]
        log.append((place, oracles[place].answer(query)))
        first[place].tell(log[-1][1])
    for place, answer in log:
        second[place].tell(answer)
    for place in (0, 1):
        assert first[place].ask() == second[place].ask() == first[place].ask()
    assert drive_together(second, oracles) == whole


def test_an_illegal_answer_changes_nothing_in_any_layer() -> None:
    """An unknown node, other counts, or a second answer raise; questions and trees of all layers stay."""
    searches = guided([predicted([0.5] * 30), predicted([0.4] * 30)])
    search = searches[0]
    query = search.ask()[0]
    before = [(each.ask(), each.tree) for each in searches]
    short = FlipEstimate(associated=FlipCount(flips=0, n=3), unrelated=FlipCount(flips=0, n=0))
    for node, message in [(query.node, "expected the flips of 17 examples"), (999, "open question")]:
        with pytest.raises(AnswerError, match=message):
            search.tell(GroupAnswer(node=node, estimate=short))
    assert [(each.ask(), each.tree) for each in searches] == before


def test_a_stopped_search_keeps_what_it_found_and_others_go_on() -> None:
    """Stopping every layer ends all; stopping one leaves the other with questions until it is complete."""
    searches = guided([predicted([0.5] * 30), predicted([0.4] * 30)])
    for each in searches:
        each.stop(SearchStatus.BUDGET_SPENT)
    assert [(each.status, each.ask()) for each in searches] == [(SearchStatus.BUDGET_SPENT, ())] * 2
    searches = guided([predicted([0.5] * 30), predicted([0.4] * 30)])
    tell_nothing(searches[0])
    searches[0].stop(SearchStatus.STOPPED)
    while searches[1].ask():
        tell_nothing(searches[1])
    assert [each.status for each in searches] == [SearchStatus.STOPPED, SearchStatus.COMPLETE]


def test_honest_non_results() -> None:
    """No units: EMPTY. Slices that cannot prune: UNDERPOWERED. Other layers are searched all the same."""
    empty, full = guided([predicted([]), predicted([0.0] * 20)])
    assert (empty.status, full.status) == (SearchStatus.EMPTY, None)
    tell_nothing(full)
    assert full.ask()
    small = replace(DEFAULT, cha=replace(ALGORITHM_1, n_associated=16))
    (search,) = guided([predicted([0.0] * 20)], small)
    assert (search.status, search.ask()) == (SearchStatus.UNDERPOWERED, ())
    assert guided([]) == ()


@pytest.mark.parametrize(
    ("prediction", "message"),
    [
        (predicted([0.1]), "expected 2 numbers, got 1"),
        (predicted([0.1, 1.5]), r"rates in \[0, 1\], got 0.1 to 1.5"),
        (predicted([0.1, float("nan")]), "or NaN"),
    ],
)
def test_predictions_that_do_not_fit_are_refused(prediction: LayerPrediction, message: str) -> None:
    """Another length, no rates, or NaN: a named error, and no search."""
    with pytest.raises(PredictionError, match=message):
        guided_searches(layers_of(2), [prediction], settings=DEFAULT, regime=REGIME)
    with pytest.raises(PredictionError, match="2 layers, got 1"):
        guided_searches(layers_of(2, 2), [prediction], settings=DEFAULT, regime=REGIME)


def test_the_prediction_fails_on_empty_promises() -> None:
    """149 units predicted to reach τ of which none is left: 1 − .05^(1/149) = .0199 < 1/50; with 148 it stands."""
    assert PredictionRecord(units=900, promised=149).failure() == (
        "of 149 units predicted to reach τ 0 could not be ruled out"
    )
    assert PredictionRecord(units=900, promised=148).failure() is None
    assert PredictionRecord(units=900, promised=236, delivered=1).failure() is not None
    assert PredictionRecord(units=900, promised=235, delivered=1).failure() is None


def test_the_prediction_fails_where_the_order_is_random() -> None:
    """Five of 101 with mean rank 40 (from 0): 50 − 1.645 · √(102 · 96 / 60) = 29 is not reached; 25 is below it."""
    random = PredictionRecord(units=101, ranks=[0, 20, 40, 60, 80])
    assert random.failure() == (
        "the 5 τ-agonists found have mean rank 41 of 101 in what was predicted, no better than at random"
    )
    assert PredictionRecord(units=101, ranks=[0, 10, 20, 35, 60]).failure() is None
    assert PredictionRecord(units=101, ranks=[70, 80, 90, 95]).failure() is None
    assert PredictionRecord(units=5, ranks=[0, 1, 2, 3, 4]).failure() is None


def test_a_layer_on_which_the_prediction_fails_is_searched_again_without_it() -> None:
    """Layer 0 promises what it does not hold: its search says so, and the rest is asked in groups of at most 8.

    Layer 1 keeps its predictions. With promises kept (the truth as prediction) nothing is dropped.
    """
    rng = np.random.default_rng(2)
    oracles = [of(planted_union(rng, units=400, agonists=5)) for _ in range(2)]
    wrong = np.where(oracles[0].strengths() > 0.1, 0.0, 0.3)
    truth = predicted(oracles[1].strengths())
    searches = guided([predicted(wrong), truth])
    trees = drive_together(searches, oracles)
    dropped = searches[0].fallback
    assert dropped is not None
    assert "predicted to reach τ 0 could not be ruled out" in dropped.sentence
    assert searches[1].fallback is None
    after = [node for node in trees[0].nodes if node.node >= dropped.node]
    assert max(len(node.channels) for node in after) == 8
    assert len({channel for node in after for channel in node.channels}) == dropped.units
    for tree, oracle in zip(trees, oracles, strict=True):
        assert kept(tree) == agonists(oracle)


def test_surprises_are_searched_again_where_groups_were_pruned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is predicted and a unit hides another in a large group: five met at random ranks bring `cha`.

    Without the test of the order the pair is parted, and the hidden unit is found so too.
    """
    rng = np.random.default_rng(0)
    flips = np.zeros((600, 64), dtype=bool)
    loud = rng.choice(np.arange(100, 600), size=9, replace=False)
    for unit in loud:
        flips[unit, rng.choice(64, size=30, replace=False)] = True
    hidden = int(loud.max())
    restores = np.zeros_like(flips)
    restores[hidden - 9] = flips[hidden]
    nothing = np.zeros_like(flips)

    class Hiding(Cancelling):
        group_of = Cancelling.group

        def group(self, flips: np.ndarray, channels: tuple[int, ...]) -> np.ndarray:
            return self.group_of(flips, tuple((channel - 1) // 2 for channel in channels))

    oracle = Hiding(
        associated=flips, unrelated=nothing, restores_associated=restores, restores_unrelated=nothing
    )
    (search,) = guided([predicted(np.zeros(600))])
    (tree,) = drive_together([search], [oracle])
    assert search.fallback is not None
    assert "no better than at random" in search.fallback.sentence
    assert 2 * hidden + 1 in kept(tree)
    assert tree.example_forwards <= 1.05 * 600 * 128
    before = {
        channel
        for node in tree.nodes
        if node.node < search.fallback.node and node.verdict is Verdict.PRUNED
        for channel in node.channels
    }
    assert 2 * hidden + 1 in before
    monkeypatch.setattr(prediction_failure, "AGONISTS", 100)
    (without_fallback,) = guided([predicted(np.zeros(600))])
    (without,) = drive_together([without_fallback], [oracle])
    assert without_fallback.fallback is None
    assert 2 * hidden + 1 in kept(without)


@dataclass(frozen=True, kw_only=True, eq=False)
class Added(UnionOfFlips):
    """What units do to a margin adds up, by example; a group flips where the sum is beyond it, either way."""

    effects: np.ndarray
    """`unit example`, in margins."""

    def group(self, flips: np.ndarray, channels: tuple[int, ...]) -> np.ndarray:
        places = (np.array(channels) - 1) // 2
        return np.asarray((np.abs(self.effects[places].sum(0)) > 1) & (flips is self.associated))

    @classmethod
    def of(cls, effects: np.ndarray) -> Added:
        nothing = np.zeros(effects.shape, bool)
        return cls(associated=np.abs(effects) > 1, unrelated=nothing, effects=effects)


STEPS = (*range(8, 16), 30, 31, 60)
"""A number x of 0 to 63 an example, in any order; units that write 2 where x ≥ k, and every other one its opposite."""


def steps(units: int, x: np.ndarray, at: Sequence[int]) -> Added:
    """Units at these places are the steps; the others write nothing."""
    effects = np.zeros((units, len(x)))
    for turn, (place, threshold) in enumerate(zip(at, STEPS, strict=True)):
        effects[place] = 2 * (-1) ** turn * (x >= threshold)
    return Added.of(effects)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("units", [23, 60, 700])
def test_units_that_cancel_are_found(seed: int, units: int) -> None:
    """Neurons of x ≥ k and x ≥ k + 1 come with opposite signs, so a group that holds as many of either flips few.

    Nothing is predicted of them. Every unit that alone reaches τ is found, in groups of any size.
    """
    rng = np.random.default_rng(seed)
    at = rng.choice(units, size=len(STEPS), replace=False).tolist()
    oracle = steps(units, rng.permutation(64), at)
    (search,) = guided([predicted(np.zeros(units))])
    (tree,) = drive_together([search], [oracle])
    assert kept(tree) >= agonists(oracle)
    assert tree.example_forwards <= 1.05 * units * 128


@given(data=st.data(), units=st.integers(10, 700))
@settings(max_examples=60, deadline=None)
def test_a_pair_that_cancels_is_parted(data: st.DataObject, units: int) -> None:
    """Together they flip nothing, one alone everything."""
    pair = data.draw(st.lists(st.integers(0, units - 1), min_size=2, max_size=2, unique=True))
    (tree,) = drive_together(guided([predicted(np.zeros(units))]), [cancelling(units, pair)])
    assert kept(tree) == {2 * place + 1 for place in pair}


@pytest.mark.parametrize("largest", [1, 4, 16])
def test_no_group_is_larger_than_the_largest(largest: int) -> None:
    """Swept, parted or searched without predictions."""
    for oracle in (cancelling(200, [20, 180]), steps(200, np.arange(64)[::-1], range(40, 200, 15)[:11])):
        chosen = GuidedSettings(cha=ChaSettings(largest=largest), sweep=largest)
        (tree,) = drive_together(guided([predicted(np.zeros(200))], chosen), [oracle])
        assert max(len(node.channels) for node in tree.nodes) == largest


def test_without_parting_the_pair_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GuidedSearch, "_part", lambda self: False)
    (tree,) = drive_together(guided([predicted(np.zeros(300))]), [cancelling(300, [20, 280])])
    assert kept(tree) == set()


def cancelling(units: int, pair: Sequence[int]) -> Added:
    effects = np.zeros((units, 64))
    effects[pair] = [[2.0], [-2.0]]
    return Added.of(effects)


@given(st.integers(1, 700))
def test_any_two_units_are_separated(units: int) -> None:
    """One group holds exactly one of any two, none a unit more than half, and as few groups as can be."""
    groups = separated(tuple(range(units)))
    member = np.zeros((units, len(groups)), bool)
    for place, group in enumerate(groups):
        member[list(group), place] = True
    apart = (member[:, None] != member[None]).any(2)
    assert (apart | np.eye(units, dtype=bool)).all()
    assert member.any(1).all()
    assert 2 ** len(groups) > units >= 2 ** (len(groups) - 1)
    assert all(0 < len(group) <= (units + 1) / 2 for group in groups)

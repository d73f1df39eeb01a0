"""What the controls decide: by hand, as properties, and how often they err where nothing is to be found."""

from collections.abc import Callable
from itertools import combinations, product

import numpy as np
import pytest
from findings_fixture import ALPHA, EPSILON, TAU, estimate
from scipy import stats
from search_oracles import estimate as one_of

from mecharule_ops.facts.control_facts import baseline_words
from mecharule_ops.findings import controls
from mecharule_ops.types import Baseline, Basis, FlipEstimate, Neuron, Share

UNIT = Neuron(Basis.MLP_OUT, 0, 0)
LAYERS, WIDTH, SLICE, HELD_OUT, CONTROLLED = 4, 64, 64, 64, 5
Flips = np.ndarray
"""A row a unit, a column a record."""


def unit(place: int) -> Neuron:
    return Neuron(Basis.MLP_OUT, *divmod(int(place), WIDTH))


def beside(share: Share | None, split: FlipEstimate | None = None) -> controls.AgonistControls:
    return controls.AgonistControls(neuron=UNIT, basis=share, split=split)


def test_a_tie_counts_against_a_unit() -> None:
    flips = {unit(place): count for place, count in enumerate((5, 5, 4, 6, 0))}
    assert controls.as_many(flips, unit(0), [unit(place) for place in range(1, 5)]) == Share(count=2, n=4)


def test_holm_by_hand() -> None:
    """.01, .04, .03 of three: times 3, 1, 2, and never below a smaller one's."""
    assert controls.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert controls.holm([]) == []


def test_the_permutation_p_counts_every_permutation() -> None:
    """Against every way to lay a split over seven records, for every size of a side and every number of flips."""
    for first, flips in product(range(1, 7), range(8)):
        flipped = np.arange(7) < flips
        sides = [np.isin(np.arange(7), side) for side in combinations(range(7), first)]
        apart = [abs(flipped[side].mean() - flipped[~side].mean()) for side in sides]
        for side, seen in zip(sides, apart, strict=True):
            split = one_of(int(flipped[side].sum()), first, int(flipped[~side].sum()), 7 - first)
            wanted = np.mean([other >= seen - 1e-9 for other in apart])
            assert controls.permutation_p(split) == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("split", "said"),
    [
        (estimate(50, 8), controls.Selective.SELECTIVE),
        (estimate(8, 50), controls.Selective.SELECTIVE),
        (estimate(30, 28), controls.Selective.NOT_SELECTIVE),
        (estimate(30, 25), controls.Selective.UNDECIDED),
        (estimate(6, 5, 20), controls.Selective.UNDECIDED),
        (one_of(0, 1, 12, 64), controls.Selective.UNDECIDED),
        (estimate(2, 0, 3), controls.Selective.UNDECIDED),
        (estimate(0, 0, 0), controls.Selective.UNDECIDED),
        (None, controls.Selective.UNDECIDED),
    ],
)
def test_selective_needs_a_difference_of_epsilon_that_permutations_do_not_explain(
    split: FlipEstimate | None, said: controls.Selective
) -> None:
    """2 of 3 against 0 of 3 is large and may be chance; `not selective` needs an interval within ±ε."""
    (one,) = controls.decided([beside(Share(count=50, n=99), split)], alpha=ALPHA, epsilon=EPSILON)
    assert one.selective is said


@pytest.mark.parametrize(
    ("second", "main", "said"),
    [
        (estimate(3, 2), estimate(30, 2), ", below τ: its strength depends on the baseline"),
        (estimate(12, 2), estimate(13, 2), ", below τ there, not told apart"),
        (estimate(2, 12), estimate(2, 30), ", below τ: its strength depends on the baseline"),
        (estimate(30, 2), estimate(30, 2), ""),
    ],
)
def test_a_second_baseline_below_tau_is_said_and_whether_the_counts_are_told_apart(
    second: FlipEstimate, main: FlipEstimate, said: str
) -> None:
    ran = controls.AgonistControls(neuron=UNIT, second_baseline=Baseline.ZERO, second=second)
    assert baseline_words(ran, main, TAU).partition(")")[2].partition(")")[2] == said
    assert ran.depends_on_baseline(main, TAU) is said.endswith("baseline")
    assert not controls.AgonistControls(neuron=UNIT).depends_on_baseline(main, TAU)


def bernoulli(rng: np.random.Generator, rates: np.ndarray, records: int) -> Flips:
    """Each unit flips each record at its own rate; records are alike."""
    return rng.random((len(rates), records)) < rates[:, None]


def fragile(rng: np.random.Generator, rates: np.ndarray, records: int) -> Flips:
    """Records differ in how easily any unit flips them: a few nearly always, most hardly ever."""
    ease = rng.beta(0.3, 0.3 * (1 - rates.mean()) / rates.mean(), records)
    return rng.random((len(rates), records)) < np.clip(rates[:, None] / rates.mean() * ease, 0, 1)


Drawn = Callable[[np.random.Generator, np.ndarray, int], Flips]


def whole_decision(
    rng: np.random.Generator, rates: np.ndarray, draw: Drawn
) -> list[controls.AgonistControls]:
    """A run on such units: those that reach τ on the slices, strongest first, then their controls on other records."""
    strength = np.maximum(*[draw(rng, rates, SLICE).mean(axis=1) for _ in range(2)])
    chosen = [
        place
        for place in np.argsort(-strength, kind="stable")[:CONTROLLED].tolist()
        if strength[place] >= TAU
    ]
    held_out = draw(rng, rates, HELD_OUT)
    fires = rng.random(HELD_OUT) < 0.4
    ran = []
    for place in chosen:
        plus, minus = (int(held_out[place, side].sum()) for side in (fires, ~fires))
        split = one_of(plus, int(fires.sum()), minus, int((~fires).sum()))
        ran.append(controls.AgonistControls(neuron=unit(place), split=split))
    return controls.decided(ran, alpha=ALPHA, epsilon=EPSILON)


RUNS = 200
RATES = (0.02, 0.06, 0.12, 0.15, 0.2, 0.3)


@pytest.mark.parametrize("draw", [bernoulli, fragile])
def test_where_all_units_are_alike_none_is_selective(draw: Drawn) -> None:
    """256 units at one rate from .02 to .3, whole decision: at most 5 % of the runs call any selective, at every rate.

    200 runs a rate and 1,200 in all: up to 21 of 200 and 85 of 1,200 are within the binomial error (99.9 %) of 5 %.
    """
    selective = []
    for rate in RATES:
        runs = [
            whole_decision(np.random.default_rng([seed, int(100 * rate)]), np.full(256, rate), draw)
            for seed in range(RUNS)
        ]
        told = controls.Selective.SELECTIVE
        selective.append(sum(any(one.selective is told for one in run) for run in runs))
    one_rate, all_rates = (int(stats.binom.ppf(0.999, n, ALPHA)) for n in (RUNS, RUNS * len(RATES)))
    assert max(selective) <= one_rate, selective
    assert sum(selective) <= all_rates, selective


def test_a_unit_that_follows_the_split_is_called_selective() -> None:
    """.7 where the rule fires and .2 elsewhere on 100 held-out records, among five units: in at least 90 % of 100."""
    rng, found = np.random.default_rng(0), 0
    for _ in range(100):
        splits = [
            one_of(int(rng.binomial(40, high)), 40, int(rng.binomial(60, 0.2)), 60)
            for high in (0.7, 0.2, 0.2, 0.2, 0.2)
        ]
        ran = controls.decided([beside(None, split) for split in splits], alpha=ALPHA, epsilon=EPSILON)
        found += ran[0].selective is controls.Selective.SELECTIVE
    assert found >= 90

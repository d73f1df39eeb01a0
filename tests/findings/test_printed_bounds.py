"""The lower bounds that are printed of found units hold, though the units were chosen by the same counts."""

import re

import numpy as np
import pytest
from findings_fixture import ALPHA, TAU
from scipy import stats

from mecharule_ops.confidence import searched_alpha
from mecharule_ops.facts.flips import stronger_slice
from mecharule_ops.types import FlipCount, FlipEstimate

UNITS, RUNS = 256, 400


def strongest(rates: np.ndarray, n: int, seed: int) -> tuple[int, FlipEstimate]:
    """Place and counts of the strongest of so many units on two slices of n."""
    flips = np.random.default_rng([seed, n, int(1000 * rates[0])]).binomial(n, rates, (2, len(rates)))
    place = int(flips.max(axis=0).argmax())
    plus, minus = (FlipCount(flips=int(each), n=n) for each in flips[:, place])
    return place, FlipEstimate(associated=plus, unrelated=minus)


@pytest.mark.parametrize("n", [48, 64])
@pytest.mark.parametrize("rate", [0.12, 0.15])
def test_the_bound_of_the_strongest_of_like_units_is_above_the_truth_in_few_runs(rate: float, n: int) -> None:
    """256 units at one rate: at most 5 % of 400 runs (binomial error at 99.9 %); of one unit named alone, in most."""
    over, single = 0, 0
    for seed in range(RUNS):
        _, estimate = strongest(np.full(UNITS, rate), n, seed)
        over += estimate.lcb(searched_alpha(ALPHA, UNITS)) > rate
        single += estimate.lcb(ALPHA) > rate
        told = re.search(r"of all such at least ([\d.]+) %", stronger_slice(estimate, TAU, UNITS))
        if n == 48 and estimate.reaches(TAU):
            assert told, "a rate below τ has a bound below τ beside it"
            assert float(told[1]) / 100 <= estimate.lcb(searched_alpha(ALPHA, UNITS)) + 0.005
    assert over <= stats.binom.ppf(0.999, RUNS, ALPHA)
    assert single > 0.9 * RUNS


@pytest.mark.parametrize("n", [48, 64])
def test_a_unit_that_stands_far_above_the_others_is_told_apart_from_tau(n: int) -> None:
    """.6 among 255 of .02: in at least 90 % of 200 runs."""
    rates = np.full(UNITS, 0.02)
    rates[17] = 0.6
    found = 0
    for seed in range(200):
        place, estimate = strongest(rates, n, seed)
        said = stronger_slice(estimate, TAU, UNITS)
        found += place == 17 and estimate.lcb(searched_alpha(ALPHA, UNITS)) >= TAU and "not told" not in said
    assert found >= 180

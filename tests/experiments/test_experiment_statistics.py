"""Intervals over seeds: by hand, against SciPy, by simulation, and what they let one say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from mecharule_ops.experiments.seed_intervals import (
    FEWEST,
    Direction,
    Interval,
    direction_of,
    paired_difference,
    rank_correlation,
    same_words,
    simultaneous,
    spelled,
    spelled_percent,
    t_interval,
)


def test_the_interval_of_one_two_three() -> None:
    """Mean 2, s = 1, t(2) at .975 is 4.3027: 2 ± 4.3027 / √3."""
    found = t_interval([1.0, 2.0, 3.0])
    assert (found.mean, found.n) == (2.0, 3)
    assert found.high - 2 == pytest.approx(4.302653 / math.sqrt(3), abs=1e-6)
    assert found.low == pytest.approx(4 - found.high)


def test_what_is_the_same_in_every_seed_has_no_interval() -> None:
    """1 − .9 five times: rounding is no spread, and .1 on the same units is no difference shown."""
    found = paired_difference([1.0] * 5, [0.9, 0.9, 0.9, 0.9, 0.9 + 1e-16])
    assert found.low == found.high
    assert direction_of(found) is Direction.NOT_SHOWN
    assert same_words(found) == " (the same in every seed; seeds share units, so no interval)"
    assert not same_words(t_interval([1.0]))
    assert not same_words(t_interval([1.0, 2.0]))


def test_missing_values_are_left_out_and_few_give_no_interval() -> None:
    """NaN is a seed without the number, not a zero."""
    assert t_interval([1.0, math.nan, 2.0, 3.0]) == t_interval([1.0, 2.0, 3.0])
    assert math.isnan(t_interval([4.0]).low)
    assert t_interval([]).n == 0


@settings(max_examples=40)
@given(st.lists(st.tuples(st.floats(-50, 50), st.floats(-50, 50)), min_size=3, max_size=12))
def test_paired_differences_are_scipys(pairs: list[tuple[float, float]]) -> None:
    """Two routes to one interval."""
    first, second = zip(*pairs, strict=True)
    if np.std(np.subtract(first, second)) < 1e-6:
        return
    mine, other = (
        paired_difference(first, second, 0.9),
        stats.ttest_rel(first, second).confidence_interval(0.9),
    )
    assert (mine.low, mine.high) == pytest.approx((other.low, other.high), abs=1e-6)


def test_the_interval_holds_the_mean_as_often_as_it_says() -> None:
    """Of 2,000 samples of five normal numbers about 95 % of the intervals hold the true mean; at half the
    width they would not (the check can fail)."""
    samples = np.random.default_rng(0).normal(3.0, 2.0, (2000, 5))
    found = [t_interval(list(sample)) for sample in samples]
    held = np.mean([one.low <= 3.0 <= one.high for one in found])
    halved = np.mean([abs(one.mean - 3.0) <= (one.high - one.low) / 4 for one in found])
    assert 0.935 < held < 0.965
    assert halved < 0.9


def test_several_intervals_hold_together_at_a_higher_level_each() -> None:
    """Six at 95 % together need 99.17 % each, so they are wider."""
    assert simultaneous(6) == pytest.approx(1 - 0.05 / 6)
    values = [1.0, 2.0, 4.0, 4.0, 5.0]
    assert t_interval(values, simultaneous(6)).high > t_interval(values).high


@pytest.mark.parametrize(
    ("low", "high", "n", "said"),
    [
        (0.1, 2.0, FEWEST, Direction.MORE),
        (-2.0, -0.1, FEWEST, Direction.FEWER),
        (-0.1, 2.0, FEWEST, Direction.NOT_SHOWN),
        (0.0, 0.0, FEWEST, Direction.NOT_SHOWN),
        (25.0, 25.0, FEWEST, Direction.NOT_SHOWN),
        (0.1, 2.0, FEWEST - 1, Direction.TOO_FEW),
    ],
)
def test_a_difference_is_called_one_only_without_zero_and_with_enough_seeds(
    low: float, high: float, n: int, said: Direction
) -> None:
    """An interval that touches zero shows nothing, nor does one without width: seeds share the model's units."""
    assert direction_of(Interval(mean=(low + high) / 2, low=low, high=high, n=n)) is said


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=2, max_size=30))
def test_rank_correlation_is_spearmans(pairs: list[tuple[int, int]]) -> None:
    """Ties included; a constant side has none."""
    first, second = zip(*pairs, strict=True)
    mine = rank_correlation(first, second)
    if len(set(first)) == 1 or len(set(second)) == 1:
        assert math.isnan(mine)
    else:
        assert mine == pytest.approx(stats.spearmanr(first, second).statistic)


def test_numbers_are_printed_with_what_is_known() -> None:
    """Brackets only where seeds differ; counts not below 0, shares within 0 and 100 %."""
    assert spelled(Interval(mean=4.25, low=-1.0, high=9.5, n=5)) == "4.2 [0.0, 9.5]"
    assert spelled(Interval(mean=-0.04, low=-1.0, high=0.9, n=5), signed=True) == "0.0 [-1.0, 0.9]"
    assert spelled(t_interval([2.0, 2.0])) == "2.0"
    assert spelled(t_interval([])) == "–"
    assert spelled_percent(Interval(mean=0.99, low=0.9, high=1.09, n=2)) == "99 % [90, 100]"
    assert spelled_percent(t_interval([0.05])) == "5.0 %"

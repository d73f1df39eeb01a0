"""The bootstrap interval of a held-out MCC equals the naive one, and is refused where records are too few."""

from __future__ import annotations

import numpy as np
import pytest

from mecharule_ops.rules.algebra import mcc
from mecharule_ops.rules.interval import LEAST_SIDE, mcc_interval


def noisy(seed: int, records: int, wrong: float) -> tuple[np.ndarray, np.ndarray]:
    """A prediction and a target that disagree on about a share of the records."""
    rng = np.random.default_rng(seed)
    fires = rng.random(records) < 0.4
    return fires, fires ^ (rng.random(records) < wrong)


@pytest.mark.parametrize(("records", "wrong"), [(80, 0.3), (400, 0.1)])
def test_it_equals_naive_resampling_of_records(records: int, wrong: float) -> None:
    """Drawing record numbers one by one and scoring each resample gives the same ends, up to the draws."""
    fires, target = noisy(0, records, wrong)
    found = mcc_interval(fires, target, np.random.default_rng(1), resamples=8000)
    rng = np.random.default_rng(2)
    drawn = [rng.integers(0, records, records) for _ in range(4000)]
    low, high = np.quantile([mcc(fires[rows], target[rows]) for rows in drawn], [0.025, 0.975])
    assert found is not None
    assert (found.mcc, found.n, found.positives) == (pytest.approx(mcc(fires, target)), records, target.sum())
    assert found.low == pytest.approx(low, abs=0.02)
    assert found.high == pytest.approx(high, abs=0.02)
    assert found.above_chance


def test_more_records_narrow_it_and_a_lower_level_too() -> None:
    """An interval of a quarter of the records is about twice as wide."""
    small, large = (mcc_interval(*noisy(3, n, 0.2), np.random.default_rng(0)) for n in (200, 3200))
    lower = mcc_interval(*noisy(3, 200, 0.2), np.random.default_rng(0), level=0.5)
    assert small is not None
    assert large is not None
    assert lower is not None
    assert 2.5 < (small.high - small.low) / (large.high - large.low) < 6
    assert small.low < lower.low < small.mcc < lower.high < small.high


def test_too_few_records_of_a_side_give_none() -> None:
    """Nine positives or nine negatives are too few, ten are enough."""
    target = np.arange(100) < LEAST_SIDE
    assert mcc_interval(target, target, np.random.default_rng(0)) is not None
    assert mcc_interval(target, np.arange(100) < LEAST_SIDE - 1, np.random.default_rng(0)) is None
    assert mcc_interval(target, np.arange(100) > LEAST_SIDE - 2, np.random.default_rng(0)) is None


def test_a_rule_that_never_fires_is_not_above_chance() -> None:
    """Its MCC is 0 on every resample."""
    target = np.arange(100) < 40
    found = mcc_interval(np.zeros(100, bool), target, np.random.default_rng(0))
    assert found is not None
    assert (found.mcc, found.low, found.high, found.above_chance) == (0, 0, 0, False)
    assert str(found) == ".00 [.00, .00]"

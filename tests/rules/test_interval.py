"""The interval of a held-out MCC covers the true one near 0 and near 1 too, and is refused where records are few."""

from itertools import product

import numpy as np
import pytest

from mecharule_ops.rules.algebra import mcc
from mecharule_ops.rules.interval import LEAST_SIDE, MccInterval, mcc_interval
from mecharule_ops.rules.matthews import mcc_of_counts

TABLES = 300
"""Held-out samples drawn of each true table."""
LEAST_COVERAGE = 0.93
TOLERANCE = 2.5 * np.sqrt(LEAST_COVERAGE * (1 - LEAST_COVERAGE) / TABLES)
"""Two and a half standard errors of a coverage over so many samples: 3.7 %."""


def noisy(seed: int, records: int, wrong: float) -> tuple[np.ndarray, np.ndarray]:
    """A prediction and a target that disagree on about a share of the records."""
    rng = np.random.default_rng(seed)
    fires = rng.random(records) < 0.4
    return fires, fires ^ (rng.random(records) < wrong)


def records_of(cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A prediction and a target with these counts: both, prediction alone, target alone, neither."""
    return np.repeat([True, True, False, False], cells), np.repeat([True, False, True, False], cells)


def held_out_samples(true: float, n: int, rate: float, fired: float) -> np.ndarray:
    """Tables of n records each, drawn where prediction and target have these rates and this MCC."""
    both = rate * fired + true * np.sqrt(rate * (1 - rate) * fired * (1 - fired))
    shares = np.clip([both, fired - both, rate - both, 1 - rate - fired + both], 0, None)
    drawn = np.random.default_rng(0).multinomial(n, shares / shares.sum(), size=4 * TABLES)
    positives = drawn[:, 0] + drawn[:, 2]
    return drawn[(positives >= LEAST_SIDE) & (n - positives >= LEAST_SIDE)][:TABLES]


def coverage(true: float, cells: np.ndarray, interval=mcc_interval) -> float:
    """Share of the samples whose interval holds the true MCC."""
    unique, times = np.unique(cells, axis=0, return_counts=True)
    found = [interval(*records_of(each)) for each in unique]
    return (
        sum(often for one, often in zip(found, times, strict=True) if one.low <= true <= one.high)
        / times.sum()
    )


def percentile_interval(fires: np.ndarray, target: np.ndarray) -> MccInterval:
    """Percentiles over resampled records, nothing added to the cells: it has no width where no record is wrong."""
    cells = np.array([(fires & target).sum(), (fires & ~target).sum(), (~fires & target).sum(), 0])
    cells[3] = len(target) - cells.sum()
    drawn = np.random.default_rng(0).multinomial(len(target), cells / len(target), size=2000)
    hits, fired, positives = drawn[:, 0], drawn[:, 0] + drawn[:, 1], drawn[:, 0] + drawn[:, 2]
    low, high = np.quantile(mcc_of_counts(hits, fired, positives, len(target)), [0.025, 0.975])
    return MccInterval(mcc=mcc(fires, target), low=low, high=high, n=len(target), positives=int(target.sum()))


@pytest.mark.parametrize("true", [0.0, 0.5, 0.9, 0.98, 1.0])
@pytest.mark.parametrize("n", [100, 276, 737])
def test_it_covers_the_true_mcc(true: float, n: int) -> None:
    """In 93 % of the held-out samples or more, at base rates .1, .3 and .5; 100 records of an MCC of .98 included."""
    held = {rate: coverage(true, held_out_samples(true, n, rate, rate)) for rate in (0.1, 0.3, 0.5)}
    assert min(held.values()) >= LEAST_COVERAGE - TOLERANCE, held
    assert np.mean(list(held.values())) >= LEAST_COVERAGE


def test_it_covers_where_a_rule_fires_seldom_or_often() -> None:
    """The rates of prediction and target need not be alike."""
    cases = [(true, rate, fired) for true, rate, fired in product((0.0, 0.3), (0.1, 0.3), (0.05, 0.5))]
    held = [coverage(true, held_out_samples(true, 276, rate, fired)) for true, rate, fired in cases]
    assert min(held) >= LEAST_COVERAGE - TOLERANCE, held


def test_resampled_records_alone_do_not_cover_near_one() -> None:
    """The coverage above can fail: plain percentiles hold an MCC of .98 in a third to two thirds of the samples."""
    held = [
        coverage(0.98, held_out_samples(0.98, 100, rate, rate), percentile_interval)
        for rate in (0.1, 0.3, 0.5)
    ]
    assert max(held) < 0.8


def test_a_rule_without_an_error_is_not_certain() -> None:
    """On 276 records, 80 of them flips: the interval reaches down to .96 or so, and up to 1."""
    target = np.arange(276) < 80
    found = mcc_interval(target, target)
    assert (found.mcc, found.high) == (1, 1)
    assert 0.95 < found.low < 0.98
    assert percentile_interval(target, target).low == 1


@pytest.mark.parametrize(("records", "wrong"), [(80, 0.3), (400, 0.1)])
def test_it_is_resampling_with_half_a_record_more_in_each_cell(records: int, wrong: float) -> None:
    """Drawing records one by one, each cell with half a record added, gives the same ends, up to the draws."""
    fires, target = noisy(0, records, wrong)
    found = mcc_interval(fires, target)
    both, corners = np.tile([False, True], 2), np.repeat([False, True], 2)
    fires_too, target_too = np.append(fires, both), np.append(target, corners)
    share = np.append(np.ones(records), np.full(4, 0.5)) / (records + 2)
    rng = np.random.default_rng(2)
    drawn = [rng.choice(records + 4, records, p=share) for _ in range(4000)]
    low, high = np.quantile([mcc(fires_too[rows], target_too[rows]) for rows in drawn], [0.025, 0.975])
    assert (found.mcc, found.n, found.positives) == (pytest.approx(mcc(fires, target)), records, target.sum())
    assert found.low == pytest.approx(low, abs=0.02)
    assert found.high == pytest.approx(high, abs=0.02)
    assert found.above_chance


def test_too_few_records_of_a_side_give_none() -> None:
    """Nine positives or nine negatives are too few, ten are enough."""
    target = np.arange(100) < LEAST_SIDE
    assert mcc_interval(target, target) is not None
    assert mcc_interval(target, np.arange(100) < LEAST_SIDE - 1) is None
    assert mcc_interval(target, np.arange(100) > LEAST_SIDE - 2) is None


def test_a_lower_bound_that_prints_as_zero_is_not_above_it() -> None:
    """.004 is printed as .00, so it doesn't count as above 0; .006 is printed as .01."""
    barely, above = (MccInterval(mcc=0.2, low=low, high=0.4, n=100, positives=50) for low in (0.004, 0.006))
    assert (str(barely), barely.above_chance) == (".20 [.00, .40]", False)
    assert (str(above), above.above_chance) == (".20 [.01, .40]", True)

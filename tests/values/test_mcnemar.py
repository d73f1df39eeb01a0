"""Paired counts: McNemar's exact test against SciPy's binomial one, and an interval that holds its level."""

import numpy as np
import pytest
from scipy.stats import binomtest

from mecharule_ops import errors, mcnemar
from mecharule_ops.rules.interval import difference


def paired(n: int, before: int, fixed: int, broken: int) -> mcnemar.Paired:
    return mcnemar.Paired(n=n, before=before, fixed=fixed, broken=broken, acted=fixed + broken)


@pytest.mark.parametrize(
    ("fixed", "broken"), [(0, 0), (1, 0), (0, 5), (12, 3), (7, 7), (140, 31), (8, 9), (165, 18)]
)
def test_p_is_that_of_the_exact_test(fixed: int, broken: int) -> None:
    """Fixed of all changed records under a fair coin, two-sided."""
    wanted = binomtest(fixed, fixed + broken).pvalue if fixed + broken else 1.0
    assert paired(3000, 2500, fixed, broken).p_value == pytest.approx(wanted, rel=1e-9)


def test_counts_come_from_labels() -> None:
    """By hand: of six records two are fixed, one is broken, four were acted on."""
    before = np.array([False, False, True, True, False, True])
    after = np.array([True, True, False, True, False, True])
    found = mcnemar.Paired.of(before, after, np.array([True, True, True, True, False, False]))
    assert (found.before, found.fixed, found.broken, found.after, found.acted) == (3, 2, 1, 4, 4)
    assert found.points == pytest.approx(100 / 6)


def test_the_interval_covers_the_true_change() -> None:
    """Of 2,000 draws with rare changes the interval holds the truth in about 95 %."""
    generator = np.random.default_rng(0)
    fix, harm, n = 0.03, 0.005, 1000
    inside = 0
    for fixed, broken, _ in generator.multinomial(n, [fix, harm, 1 - fix - harm], 2000):
        low, high = paired(n, n // 2, int(fixed), int(broken)).interval
        inside += low <= 100 * (fix - harm) <= high
    assert 0.93 < inside / 2000 < 0.975


def test_impossible_counts_are_refused() -> None:
    """More fixed records than were wrong."""
    with pytest.raises(errors.UsageError, match="same 10 records"):
        paired(10, 9, 2, 0)


def test_the_whole_interval_at_the_threshold_and_corrected_p_support_and_the_interval_refutes() -> None:
    """By hand: 30 of 40 against 10 of 60."""
    told = difference(np.arange(100) < 40, np.concatenate([np.arange(40) < 30, np.arange(60) < 10]), 0.05)
    assert told.value == pytest.approx(30 / 40 - 10 / 60)
    assert told.low < 0.5 < told.value < told.high
    for threshold, p, state in (
        *((0.3, 0.01, "supported"), (0.3, 0.2, "undecided"), (0.9, 0.01, "refuted")),
        (0.5, 0.01, "undecided"),  # A point estimate at the threshold is not enough.
    ):
        assert told.state(threshold, p, 0.05) == state

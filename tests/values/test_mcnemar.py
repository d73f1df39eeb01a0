"""Paired counts: McNemar's exact test against SciPy's binomial one, and an interval that holds its level."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.stats import binomtest

from mecharule_ops.errors import UsageError
from mecharule_ops.mcnemar import Paired, sign_flip_p


def paired(n: int, before: int, fixed: int, broken: int) -> Paired:
    return Paired(n=n, before=before, fixed=fixed, broken=broken, acted=fixed + broken)


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
    acted = np.array([True, True, True, True, False, False])
    found = Paired.of(before, after, acted)
    assert (found.before, found.fixed, found.broken, found.after, found.acted) == (3, 2, 1, 4, 4)
    assert found.points == pytest.approx(100 / 6)
    assert found.ratio == 2


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
    with pytest.raises(UsageError, match="same 10 records"):
        paired(10, 9, 2, 0)


@pytest.mark.parametrize("net", [(), (0, 0), (3,), (2, -1, 4), (1, 1, 1, 1, 1), (5, -5, 2, 0, 7, 1)])
def test_sign_flips_are_those_of_every_sign(net: tuple[int, ...]) -> None:
    """Counted over all 2^C choices of signs; of clusters of one record it is McNemar's test."""
    sums = [
        abs(sum(sign * one for sign, one in zip(signs, net, strict=True)))
        for signs in product((1, -1), repeat=len(net))
    ]
    assert sign_flip_p(net) == pytest.approx(np.mean([one >= abs(sum(net)) for one in sums]))
    alone = [1] * 12 + [-1] * 3
    assert sign_flip_p(alone) == pytest.approx(paired(3000, 2500, 12, 3).p_value)


def clustered(generator: np.random.Generator, clusters: int, size: int = 15) -> Paired:
    """No change in the mean, but each cluster has a tendency of its own to be fixed or broken."""
    cluster = np.repeat(np.arange(clusters), size)
    up = generator.random(clusters) < 0.5
    changes = generator.random(len(cluster)) < np.repeat(generator.uniform(0.1, 0.5, clusters), size)
    before = ~up[cluster]
    return Paired.of(before, before ^ changes, changes, cluster)


@pytest.mark.parametrize("clusters", [6, 10, 30])
def test_where_clusters_share_what_happens_one_in_twenty_is_called(clusters: int) -> None:
    """Of 1,000 draws without a mean change 5 % have p ≤ .05, 7 % an interval without 0; by records over 30 %."""
    generator = np.random.default_rng(clusters)
    drawn = [clustered(generator, clusters) for _ in range(1000)]
    assert np.mean([one.p_value <= 0.05 for one in drawn]) <= 0.05 + 2 * 0.007
    assert np.mean([not one.interval[0] <= 0 <= one.interval[1] for one in drawn]) <= 0.07
    alone = [paired(one.n, one.before, one.fixed, one.broken) for one in drawn]
    assert np.mean([one.p_value <= 0.05 for one in alone]) > 0.3


def test_clusters_that_say_little_say_so() -> None:
    """One cluster gives p = 1 and every change; an interval is never narrower than that of independent records."""
    before, after = np.array([False] * 9 + [True]), np.ones(10, bool)
    one = Paired.of(before, after, after, np.zeros(10, int))
    assert (one.p_value, one.interval) == (1.0, (-100.0, 100.0))
    before = np.arange(40) % 3 > 0
    even = Paired.of(before, before | (np.arange(40) < 9), np.ones(40, bool), np.arange(40) % 5)
    plain = paired(40, int(before.sum()), even.fixed, 0)
    assert even.interval[0] <= plain.interval[0] < plain.interval[1] <= even.interval[1]

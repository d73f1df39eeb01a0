"""Bounds against SciPy, error budgets over trees, and sequential tests against simulation and exact sums."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from mecharule_ops import confidence
from mecharule_ops.cha.partition import bisect
from mecharule_ops.cha.sequential import Decision, SequentialPlan, SlicePlan, look_sizes, node_test
from mecharule_ops.confidence import (
    AlphaPolicy,
    Spending,
    flipless_size,
    lower_bound,
    required_slice_size,
    upper_bound,
)
from mecharule_ops.errors import UsageError

STREAMS = 10_000
ALPHA, TAU, N = 0.05, 0.2, 64


def test_bounds_equal_scipys_exact_interval() -> None:
    """Both bounds are the ends of one-sided Clopper–Pearson intervals; another level differs."""
    rng = np.random.default_rng(0)
    for _ in range(40):
        n = int(rng.integers(1, 200))
        flips, alpha = int(rng.integers(0, n + 1)), float(rng.uniform(0.001, 0.2))
        above = binomtest(flips, n, alternative="less").proportion_ci(1 - alpha, "exact").high
        below = binomtest(flips, n, alternative="greater").proportion_ci(1 - alpha, "exact").low
        assert upper_bound(flips, n, alpha) == pytest.approx(above)
        assert lower_bound(flips, n, alpha) == pytest.approx(below)
    assert upper_bound(3, 20, 0.05) != pytest.approx(upper_bound(3, 20, 0.025))


def test_bounds_at_the_ends() -> None:
    """Nothing seen bounds nothing; without flips the upper bound solves (1 − p)ⁿ = α."""
    assert (upper_bound(0, 0, 0.05), lower_bound(0, 0, 0.05)) == (1.0, 0.0)
    assert (upper_bound(9, 9, 0.05), lower_bound(0, 9, 0.05)) == (1.0, 0.0)
    assert upper_bound(0, 17, 0.025) == pytest.approx(1 - 0.025 ** (1 / 17))


def test_seventeen_examples_are_the_fewest_that_prune() -> None:
    """At α = .05 over two slices and τ = .2; the formula equals a search over n."""
    assert required_slice_size(0.05, 0.2) == 17
    for alpha, tau in [(0.05, 0.1), (0.01, 0.2), (0.05, 0.5), (0.2, 0.35), (0.25, 0.5)]:
        fewest = next(n for n in range(1, 500) if upper_bound(0, n, alpha / 2) < tau)
        assert required_slice_size(alpha, tau) == fewest
        assert flipless_size(alpha / 2, tau) == fewest


def tree_sizes(units: int, cut: int) -> list[int]:
    """Sizes of all nodes of a full tree whose root is cut anywhere and whose other nodes are bisected."""
    sizes, pending = [], [(tuple(range(units)), cut)]
    while pending:
        channels, at = pending.pop()
        sizes.append(len(channels))
        if len(channels) > 1:
            pending += [(part, 0) for part in bisect(channels, at)]
    return sizes


@pytest.mark.parametrize("spending", Spending)
def test_the_theorems_budgets_sum_to_at_most_alpha(spending: Spending) -> None:
    """Over the full tree of any N and any root cut; the paper's per-node α exceeds it."""
    rng = np.random.default_rng(1)
    policy = AlphaPolicy(alpha=ALPHA, spending=spending)
    for units in [1, 2, 3, 7, 64, 65, *rng.integers(2, 700, size=8).tolist()]:
        sizes = tree_sizes(units, int(rng.integers(0, units)))
        total = sum(policy.node_alpha(size, units) for size in sizes)
        assert len(sizes) == 2 * units - 1
        assert (total <= ALPHA * (1 + 1e-12)) == (spending is not Spending.PER_NODE or units == 1)


def test_by_size_gives_large_groups_the_larger_share() -> None:
    """The root of 64 units gets α/8, a unit α/512."""
    policy = AlphaPolicy(alpha=ALPHA, spending=Spending.BY_SIZE)
    assert policy.node_alpha(64, 64) == pytest.approx(ALPHA / 8)
    assert policy.node_alpha(1, 64) == pytest.approx(ALPHA / 512)


def plan(mode: confidence.Testing, n_unrelated: int = N) -> SequentialPlan:
    return node_test(mode, N, n_unrelated, ALPHA, TAU)


def counts(rng: np.random.Generator, rate: float, sizes: tuple[int, ...]) -> np.ndarray:
    """Flips seen by each look, a row a stream."""
    stream = rng.random((STREAMS, sizes[-1])) < rate
    return np.cumsum(stream, axis=1)[:, np.array(sizes) - 1]


def violations(part: SlicePlan, rate: float) -> int:
    """Streams in which the rate exceeds the upper bound of any look."""
    seen = counts(np.random.default_rng(int(rate * 1000)), rate, part.sizes)
    bounds = np.stack([row[seen[:, look]] for look, row in enumerate(part.uppers)], axis=1)
    return int((bounds < rate).any(axis=1).sum())


RATES = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


@pytest.mark.parametrize("rate", RATES)
def test_sequential_bounds_hold_at_every_look_together(rate: float) -> None:
    """At most α/2 of 10,000 streams ever have a bound below the true rate, for equal and uneven slices."""
    for part in (
        plan(confidence.Testing.SEQUENTIAL).associated,
        plan(confidence.Testing.SEQUENTIAL, 40).unrelated,
    ):
        assert violations(part, rate) <= ALPHA / 2 * STREAMS


def test_uncorrected_looks_break_the_bound() -> None:
    """The full α at every look is violated too often: the simulation can fail."""
    sizes = plan(confidence.Testing.SEQUENTIAL).sizes
    rows = tuple(np.array([upper_bound(x, n, ALPHA / 2) for x in range(n + 1)]) for n in sizes)
    greedy = SlicePlan(sizes=sizes, spent=(0.025,) * len(sizes), uppers=rows, opens=sizes)
    assert max(violations(greedy, rate) for rate in RATES) > ALPHA / 2 * STREAMS


@pytest.mark.parametrize("rates", [(0.2, 0.0), (0.2, 0.2), (0.0, 0.21), (0.25, 0.01), (0.3, 0.1)])
@pytest.mark.parametrize("mode", confidence.Testing)
def test_a_group_at_tau_is_pruned_with_probability_at_most_alpha(
    rates: tuple[float, float], mode: confidence.Testing
) -> None:
    """Whatever the other slice does, over all looks, by simulation."""
    test = plan(mode)
    rng = np.random.default_rng(7)
    pruned = np.zeros(STREAMS, dtype=bool)
    seen = [counts(rng, rate, test.sizes) for rate in rates]
    for look in range(len(test.sizes)):
        below = [
            part.uppers[look][part_seen[:, look]] < TAU
            for part, part_seen in zip((test.associated, test.unrelated), seen, strict=True)
        ]
        pruned |= below[0] & below[1]
    assert pruned.sum() <= ALPHA * STREAMS


def test_boundaries_spend_exactly_what_is_allowed() -> None:
    """At τ the chance of ever crossing, summed over paths, is within the spending; one flip more is not."""
    part = plan(confidence.Testing.SEQUENTIAL).associated
    prune_to = [int((row < TAU).sum()) - 1 for row in part.uppers]

    def crossing(boundaries: list[int]) -> list[float]:
        law, seen, total, out = np.ones(1), 0, 0.0, []
        for size, boundary in zip(part.sizes, boundaries, strict=True):
            law = np.convolve(law, binom.pmf(np.arange(size - seen + 1), size - seen, TAU))
            total, seen = total + law[: boundary + 1].sum(), size
            law[: boundary + 1] = 0
            out.append(total)
        return out

    assert all(used <= spent for used, spent in zip(crossing(prune_to), part.spent, strict=True))
    for look in range(len(prune_to)):
        bolder = [*prune_to[:look], prune_to[look] + 1, *prune_to[look + 1 :]]
        assert crossing(bolder)[look] > part.spent[look]


def outcome(test: SequentialPlan, associated: np.ndarray, unrelated: np.ndarray) -> tuple[Decision, int]:
    """The decision on one pair of streams, and the examples a slice it took."""
    for look, size in enumerate(test.sizes):
        decision = test.decide(look, int(associated[:size].sum()), int(unrelated[:size].sum()))
        if decision is not Decision.CONTINUE:
            return decision, size
    raise AssertionError("the last look must decide")


def test_curtailment_never_changes_the_fixed_verdict() -> None:
    """Group by group the same decision, sooner; spending α over looks does change some near τ."""
    rng = np.random.default_rng(3)
    sooner, changed = 0, 0
    for _ in range(1500):
        rates = rng.uniform(0, 0.4, size=2)
        streams = rng.random((2, N)) < rates[:, None]
        fixed = outcome(plan(confidence.Testing.FIXED), *streams)
        curtailed = outcome(plan(confidence.Testing.CURTAILED), *streams)
        assert curtailed[0] is fixed[0]
        sooner += curtailed[1] < fixed[1]
        changed += outcome(plan(confidence.Testing.SEQUENTIAL), *streams)[0] is not fixed[0]
    assert sooner > 500
    assert 0 < changed < 150


def test_quiet_groups_close_and_loud_groups_open_early() -> None:
    """Without flips: pruned at 20 a slice. Four of the first five flip: opened. Half flip: 13 on average."""
    test = plan(confidence.Testing.SEQUENTIAL)
    assert look_sizes(N, ALPHA / 2, TAU) == test.sizes == (5, 10, 20, 31, 42, 53, 64)
    quiet, loud = np.zeros(N, dtype=bool), np.arange(N) < 4
    assert outcome(test, quiet, quiet) == (Decision.PRUNE, 20)
    assert outcome(test, quiet, loud) == (Decision.OPEN, 5)
    rng = np.random.default_rng(5)
    taken = [outcome(test, *(rng.random((2, N)) < 0.5)) for _ in range(400)]
    assert {decision for decision, _ in taken} == {Decision.OPEN}
    assert np.mean([size for _, size in taken]) < 14


def test_few_examples_leave_one_look_and_too_few_no_prune() -> None:
    """18 examples are looked at once; 16 cannot prune at all."""
    assert node_test(confidence.Testing.SEQUENTIAL, 18, 18, ALPHA, TAU).sizes == (18,)
    assert node_test(confidence.Testing.SEQUENTIAL, 18, 18, ALPHA, TAU).can_prune
    assert not node_test(confidence.Testing.SEQUENTIAL, 64, 16, ALPHA, TAU).can_prune
    assert not node_test(confidence.Testing.FIXED, 64, 0, ALPHA, TAU).can_prune


def test_the_fixed_plan_bounds_by_clopper_and_pearson() -> None:
    """Û_E of a fixed plan is the larger of the two slices' bounds at α/2."""
    for flips in [(0, 0), (3, 7), (64, 1)]:
        expected = max(upper_bound(x, N, ALPHA / 2) for x in flips)
        assert plan(confidence.Testing.FIXED).ucb(0, *flips) == expected


@pytest.mark.parametrize(("alpha", "tau"), [(0.05, 0.0), (0.05, 1.0), (0.0, 0.2), (1.0, 0.2)])
def test_thresholds_without_a_slice_size_are_refused(alpha: float, tau: float) -> None:
    with pytest.raises(UsageError, match="α and τ between 0 and 1"):
        required_slice_size(alpha, tau)

"""Bounds against SciPy, error budgets over trees, and sequential tests against simulation and exact sums."""

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from mecharule_ops import confidence, nodes
from mecharule_ops.cha.sequential import SlicePlan, look_sizes, slice_plan
from mecharule_ops.confidence import difference_interval, flipless_size, lower_bound, upper_bound

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


def test_the_interval_of_a_difference_is_newcombes_and_covers() -> None:
    """Newcombe (1998), table II, method 10: his examples; and by all tables of 30 and 34 at rates apart and alike."""
    for counts, ends in (
        ((56, 70, 48, 80), (0.0524, 0.3339)),
        ((9, 10, 3, 10), (0.1705, 0.8090)),
        ((5, 56, 0, 29), (-0.0381, 0.1926)),
    ):
        assert difference_interval(*counts, ALPHA) == pytest.approx(ends, abs=6e-5)
    assert difference_interval(0, 0, 3, 4, ALPHA) == (-1.0, 1.0)
    for first, second in ((0.1, 0.1), (0.1, 0.3), (0.5, 0.3)):
        chance = np.outer(binom.pmf(range(31), 30, first), binom.pmf(range(35), 34, second))
        ends = [[difference_interval(a, 30, b, 34, ALPHA) for b in range(35)] for a in range(31)]
        low, high = np.moveaxis(np.array(ends), 2, 0)
        assert chance[(low <= first - second) & (first - second <= high)].sum() > 0.93


def test_fourteen_examples_are_the_fewest_that_prune() -> None:
    """At α = .05 a slice and τ = .2, 17 at α/2 as in the paper; the formula equals a search over n."""
    assert (flipless_size(0.05, 0.2), flipless_size(0.025, 0.2)) == (14, 17)
    for alpha, tau in [(0.05, 0.1), (0.01, 0.2), (0.05, 0.5), (0.2, 0.35), (0.25, 0.5)]:
        assert flipless_size(alpha, tau) == next(n for n in range(1, 500) if upper_bound(0, n, alpha) < tau)


@pytest.mark.parametrize("rates", [(0.2, 0.0), (0.2, 0.2), (0.35, 0.3), (0.05, 0.01)])
def test_the_bound_of_the_strength_needs_no_share_of_alpha_a_slice(rates: tuple[float, float]) -> None:
    """max(U₊, U₋) at α each is below the strength in at most α of 10,000 samples; the smaller bound is not."""
    rng = np.random.default_rng(11)
    rows = np.array([upper_bound(flips, N, ALPHA) for flips in range(N + 1)])
    bounds = np.stack([rows[rng.binomial(N, rate, STREAMS)] for rate in rates])
    assert (bounds.max(0) < max(rates)).sum() <= ALPHA * STREAMS
    assert (bounds.min(0) < max(rates)).sum() > ALPHA * STREAMS


def plan(mode: confidence.Testing, n: int = N) -> SlicePlan:
    return slice_plan(mode, n, ALPHA, TAU)


def counts(rng: np.random.Generator, rate: float, sizes: tuple[int, ...]) -> np.ndarray:
    """Flips seen by each look, a row a stream."""
    return np.cumsum((rng.random((STREAMS, sizes[-1])) < rate), axis=1)[:, np.array(sizes) - 1]


def bounds_at_looks(part: SlicePlan, seen: np.ndarray) -> np.ndarray:
    """The upper bound at each look, a row a stream."""
    return np.stack([row[seen[:, look]] for look, row in enumerate(part.uppers)], axis=1)


def violations(part: SlicePlan, rate: float) -> int:
    """Streams in which the rate exceeds the upper bound of any look."""
    seen = counts(np.random.default_rng(int(rate * 1000)), rate, part.sizes)
    return int((bounds_at_looks(part, seen) < rate).any(axis=1).sum())


RATES = (0.01, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.6, 0.9)


@pytest.mark.parametrize("rate", RATES)
def test_sequential_bounds_hold_at_every_look_together(rate: float) -> None:
    """At most α of 10,000 streams ever have a bound below the true rate, whatever the slice's size."""
    for n in (N, 40):
        assert violations(plan(confidence.Testing.SEQUENTIAL, n), rate) <= ALPHA * STREAMS


def test_uncorrected_looks_break_the_bound() -> None:
    """The full α at every look is violated too often: the simulation can fail."""
    sizes = plan(confidence.Testing.SEQUENTIAL).sizes
    rows = tuple(np.array([upper_bound(x, n, ALPHA) for x in range(n + 1)]) for n in sizes)
    greedy = SlicePlan(
        tau=TAU, sizes=sizes, spent=(ALPHA,) * len(sizes), uppers=rows, prunes=sizes, opens=sizes
    )
    assert max(violations(greedy, rate) for rate in RATES) > ALPHA * STREAMS


@pytest.mark.parametrize("rates", [(0.2, 0.0), (0.2, 0.2), (0.0, 0.21), (0.25, 0.01), (0.3, 0.1)])
@pytest.mark.parametrize("mode", confidence.Testing)
def test_a_group_at_tau_is_pruned_with_probability_at_most_alpha(
    rates: tuple[float, float], mode: confidence.Testing
) -> None:
    """Both slices must close, each at any of its looks; if either did, more than α would be pruned."""
    rng = np.random.default_rng(7)
    test = plan(mode)
    closed = [(bounds_at_looks(test, counts(rng, rate, test.sizes)) < TAU).any(axis=1) for rate in rates]
    assert (closed[0] & closed[1]).sum() <= ALPHA * STREAMS
    if min(rates) < TAU:
        assert (closed[0] | closed[1]).sum() > ALPHA * STREAMS


def test_boundaries_spend_exactly_what_is_allowed() -> None:
    """At τ the chance of ever crossing, summed over paths, is within the spending; one flip more is not."""
    part = plan(confidence.Testing.SEQUENTIAL)
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


def outcome(test: SlicePlan, stream: np.ndarray) -> tuple[nodes.Verdict, int]:
    """The decision on one stream, and the examples it took."""
    for look, size in enumerate(test.sizes):
        decision = test.decide(look, int(stream[:size].sum()))
        if decision is not None:
            return decision, size
    raise AssertionError("the last look must decide")


def test_looking_sooner_changes_few_verdicts() -> None:
    """Near τ alone, of streams of all rates up to twice that, and most take fewer examples."""
    rng = np.random.default_rng(3)
    plans = [plan(each) for each in confidence.Testing]
    streams = [rng.random(N) < rng.uniform(0, 0.4) for _ in range(1500)]
    pairs = [[outcome(one, stream) for one in plans] for stream in streams]
    assert 0 < sum(fixed[0] is not sequential[0] for fixed, sequential in pairs) < 150
    assert sum(sequential[1] < fixed[1] for fixed, sequential in pairs) > 500


def test_quiet_slices_close_and_loud_slices_open_early() -> None:
    """Without flips: pruned at 17. Seven of the first 17 flip: opened. Half flip: 18 on average."""
    test = plan(confidence.Testing.SEQUENTIAL)
    assert look_sizes(N, ALPHA, TAU) == test.sizes == (17, 22, 28, 35, 44, 55, 64)
    assert outcome(test, np.zeros(N, dtype=bool)) == (nodes.Verdict.PRUNED, 17)
    assert outcome(test, np.arange(N) < 7) == (nodes.Verdict.SPLIT, 17)
    rng = np.random.default_rng(5)
    taken = [outcome(test, rng.random(N) < 0.5) for _ in range(400)]
    assert {decision for decision, _ in taken} == {nodes.Verdict.SPLIT}
    assert np.mean([size for _, size in taken]) < 18.5


def test_where_a_slice_closes_if_no_more_flip_is_found_by_trying() -> None:
    """For every look and count: the first later look whose bound is below τ, or the end."""
    test = plan(confidence.Testing.SEQUENTIAL)
    for seen in (0, *test.sizes[:-1]):
        for flips in range(min(seen, 9) + 1):
            later = [look for look, size in enumerate(test.sizes) if size > seen]
            closing = [test.sizes[look] for look in later if test.ucb(look, flips) < TAU]
            assert test.closing(seen, flips) == (closing[0] if closing else N)
    assert (test.closing(0, 0), test.closing(17, 1), test.closing(17, 9)) == (17, 28, N)


def test_few_examples_leave_one_look_and_too_few_no_prune() -> None:
    """15 examples are looked at once; 13 cannot prune at all. A fixed plan bounds by Clopper and Pearson."""
    assert plan(confidence.Testing.SEQUENTIAL, 15).sizes == (15,)
    assert [plan(confidence.Testing.SEQUENTIAL, n).can_prune for n in (15, 13)] == [True, False]
    assert not plan(confidence.Testing.FIXED, 0).can_prune
    assert plan(confidence.Testing.FIXED).ucb(0, 7) == upper_bound(7, N, ALPHA)

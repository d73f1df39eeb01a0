"""How many agonists a population can hold when a random sample of it held so many (exact, one-sided).

Every number K of agonists with P_K(sample holds ≤ found) ≤ α is rejected. With one stratum the sample's count
is hypergeometric. With several it is a sum of independent hypergeometric counts, and so of at most K
independent Bernoulli trials of mean at least f · K, where f is the smallest sampling fraction; its lower tail
is then at most that of Binomial(K, f) up to f · K − 1 (Hoeffding 1956, theorem 4), however K is spread.

A test that looks at a part of the examples overlooks a τ-agonist with probability `slip` at most. All units share
the order of the examples, so it may overlook many at once, and only Markov's inequality holds: of more than
x + d drawn agonists all but x are overlooked with probability (x + d + 1) / (d + 1) · slip at most. So
P(found ≤ x) ≤ P(drawn ≤ x + d) + (x + d + 1) / (d + 1) · slip for every d ≥ 0, and the smallest one is taken.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import scipy

from mecharule_ops.confidence import log_choose


def most_agonists(
    population: Sequence[int], sample: Sequence[int], found: int, alpha: float, slip: float = 0.0
) -> int:
    """The largest number of agonists in all strata that is not rejected at level α; the found ones count.

    `population` and `sample` give the units and the units tested of each stratum; each agonist among the tested
    is overlooked with probability `slip` at most.
    """
    units, tested = sum(population), sum(sample)
    tail: Callable[[int, int], float]
    if len(population) == 1:
        tail = partial(_hypergeometric_tail, units, tested)
    else:
        fractions = [part / whole for whole, part in zip(population, sample, strict=True) if whole]
        tail = partial(_binomial_tail, min(fractions, default=1.0))
    if not slip:
        return _largest(lambda agonists: tail(found, agonists) > alpha, found, units - tested + found)
    doubts = [(found + more, (found + more + 1) / (more + 1) * slip) for more in range(found + 2)]
    return _largest(
        lambda agonists: all(tail(drawn, agonists) + doubt > alpha for drawn, doubt in doubts), found, units
    )


def sample_within(population: Sequence[int], tests: int) -> tuple[int, ...]:
    """The largest proportional sample of at most so many tests."""
    fits = _largest(lambda tested: sum(_proportional(population, tested)) <= tests, 0, sum(population))
    return _proportional(population, fits)


def _proportional(population: Sequence[int], tested: int) -> tuple[int, ...]:
    """Each stratum's share of a sample, rounded up so that no stratum is sampled more thinly."""
    units = max(sum(population), 1)
    return tuple(-(-tested * part // units) for part in population)


def _hypergeometric_tail(units: int, tested: int, found: int, agonists: int) -> float:
    """P(X ≤ found) for `tested` draws without replacement from `units` that hold so many agonists."""
    hit = np.arange(max(0, tested + agonists - units), min(found, agonists, tested) + 1)
    ways = log_choose(agonists, hit) + log_choose(units - agonists, tested - hit)
    return float(np.exp(ways - log_choose(units, np.array(tested))).sum())


def _binomial_tail(fraction: float, found: int, agonists: int) -> float:
    return 1.0 if found > fraction * agonists - 1 else float(scipy.special.bdtr(found, agonists, fraction))


def _largest(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The largest integer up to `high` for which a condition that once fails stays false; it holds at `low`."""
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low

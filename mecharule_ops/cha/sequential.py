"""When a slice lets a group be pruned or opened before all its examples are seen (paper, §4.4, appendix A).

A few looks with α spent over them, exactly rather than by a union bound: for every rate p the boundaries
c₁(p), c₂(p), … are the largest with P_p(X₁ ≤ c₁ or … or Xᵢ ≤ cᵢ) ≤ spentᵢ, and the upper bound at look i is
the smallest p whose boundaries do not reject its count. All looks hold together: P_p(p > some bound) ≤ α.
This needs examples in exchangeable order, so slices are shuffled first.

A group's strength is the flip rate of its stronger slice, so max(U₊, U₋) falls below it only if that one
slice's bound fails. Therefore each slice may spend the group's whole α (an intersection–union test), and a
slice once below τ need not be looked at again. Algorithm 1 halves α between the slices.

Opening costs no α, since only a prune can lose an agonist. A group opens as soon as no later look can prune
it, which is the verdict that waiting would give, or as soon as its lower bound exceeds τ.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Float

from mecharule_ops import confidence, nodes

STEP = 1.25
"""Growth from look to look: α is spent over the looks, so the more there are, the less each has."""
RATES = 501
"""Rates on the grid over which bounds are inverted; a bound is rounded up to the next one."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SlicePlan:
    """The looks at one slice, at its own level α."""

    tau: float
    sizes: tuple[int, ...]
    """Examples seen by each look, ascending."""
    spent: tuple[float, ...]
    """Error probability used up to each look; the last is the slice's α."""
    uppers: tuple[Float[np.ndarray, " _"], ...]
    """Upper bound by number of flips, for each look."""
    prunes: tuple[int, ...]
    """Most flips with which the bound is below τ, for each look; −1 if it cannot be."""
    opens: tuple[int, ...]
    """Flips from which the group is opened, for each look; one more than its size if it cannot be."""

    @property
    def last(self) -> int:
        """Index of the final look."""
        return len(self.sizes) - 1

    @property
    def can_prune(self) -> bool:
        """Whether the slice allows pruning if nothing of it ever flips; otherwise it is too small."""
        return self.prunes[-1] >= 0

    def ucb(self, look: int, flips: int) -> float:
        """The upper bound of the slice's flip rate at a look."""
        return float(self.uppers[look][flips])

    def closing(self, seen: int, flips: int) -> int:
        """The examples after which the bound is below τ if no more flip; all of them if none suffice."""
        for size, most in zip(self.sizes, self.prunes, strict=True):
            if size > seen and flips <= most:
                return size
        return self.sizes[-1]

    def decide(self, look: int, flips: int) -> nodes.Verdict | None:
        """Prune when the bound is below τ, open when no later one can be or the rate surely is above τ."""
        if flips <= self.prunes[look]:
            return nodes.Verdict.PRUNED
        return nodes.Verdict.SPLIT if flips >= self.opens[look] or look == self.last else None


@lru_cache(maxsize=512)
def slice_plan(mode: confidence.Testing, n: int, alpha: float, tau: float) -> SlicePlan:
    """The plan of a slice of n examples at level α; remembered, since a new one takes a while."""
    sizes = (n,) if mode is confidence.Testing.FIXED else look_sizes(n, alpha, tau)
    spent = tuple(_spent(size, n, alpha, tau) for size in sizes)
    uppers = _upper_bounds(sizes, spent, tau)
    prunes = tuple(int(np.count_nonzero(row < tau)) - 1 for row in uppers)
    opens = tuple(
        min(max(prunes[look:]) + 1, _surely_above(size, alpha, tau)) for look, size in enumerate(sizes)
    )
    return SlicePlan(tau=tau, sizes=sizes, spent=spent, uppers=uppers, prunes=prunes, opens=opens)


def look_sizes(n: int, alpha: float, tau: float) -> tuple[int, ...]:
    """Where to look in n examples of a slice at level α.

    First where a group without flips is pruned at α/2, then each time a quarter further.
    """
    sizes = [min(n, confidence.flipless_size(alpha / 2, tau))]
    while sizes[-1] < n:
        sizes.append(min(n, math.ceil(sizes[-1] * STEP)))
    return tuple(sizes)


def _spent(size: int, n: int, alpha: float, tau: float) -> float:
    """Half of α at the first look that can prune, the rest in proportion to examples; all of it at n."""
    if size == n:
        return alpha
    first = confidence.flipless_size(alpha / 2, tau)
    return alpha * (0.5 + 0.5 * (size - first) / (n - first))


def _surely_above(n: int, alpha: float, tau: float) -> int:
    """The fewest flips whose lower bound exceeds τ; n + 1 if none does."""
    return next((flips for flips in range(n + 1) if confidence.lower_bound(flips, n, alpha) > tau), n + 1)


def _upper_bounds(
    sizes: tuple[int, ...], spent: tuple[float, ...], tau: float
) -> tuple[Float[np.ndarray, " _"], ...]:
    """Upper bound by flips at each look: Clopper–Pearson at the first, then exact spending."""
    first = np.array([confidence.upper_bound(flips, sizes[0], spent[0]) for flips in range(sizes[0] + 1)])
    return first, *(_spending_bounds(sizes, spent, tau)[1:] if len(sizes) > 1 else ())


def _spending_bounds(
    sizes: tuple[int, ...], spent: tuple[float, ...], tau: float
) -> list[Float[np.ndarray, " _"]]:
    """Invert the exact crossing probabilities over a grid of rates; τ⁻ is on it, so that pruning is exact.

    Between grid points a rate is at least as hard to cross as the point below it, so rounding up is safe.
    """
    rates = np.union1d(np.linspace(0, 1, RATES), np.nextafter(tau, 0))
    mass = np.zeros((len(rates), sizes[-1] + 1))
    mass[:, 0] = 1.0
    crossed, seen, rows = np.zeros(len(rates)), 0, []
    for size, used in zip(sizes, spent, strict=True):
        mass, seen = _observe(mass, rates, size - seen), size
        below = np.cumsum(mass, axis=1) + crossed[:, None] <= used
        crossed += (mass * below).sum(axis=1)
        mass = mass * ~below
        rejects = np.minimum.accumulate((below.sum(axis=1) - 1)[::-1])[::-1]
        rows.append(np.append(rates, 1.0)[np.searchsorted(rejects, np.arange(size + 1))])
    return rows


def _observe(mass: np.ndarray, rates: np.ndarray, examples: int) -> np.ndarray:
    """Carry the law of the flip count over some more examples, one row a rate."""
    p = rates[:, None]
    for _ in range(examples):
        grown = mass * (1 - p)
        grown[:, 1:] += mass[:, :-1] * p
        mass = grown
    return mass

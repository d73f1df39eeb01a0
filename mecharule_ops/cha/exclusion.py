"""When a part of a finite slice rules a unit out as a τ-agonist of that slice, with a small chance of error.

A slice of n examples holds k = ⌈τ n⌉ flips or more of a τ-agonist. Seen in a random order, m of them hold few flips
with a chance that follows by counting: the count is hypergeometric, and fewest at k itself. At each look the
boundary is the largest count with which the chance of ever having stopped stays within what may be spent by then
(exact spending, as in `sequential`, but without replacement). The last look is the whole slice and never errs.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Float

from mecharule_ops.cha.sequential import STEP
from mecharule_ops.thresholds import reaches

AT_FIRST = 0.8
"""Share of the error that the first look may spend: most units never flip."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExclusionPlan:
    """The looks at one slice."""

    needed: int
    """Flips of the whole slice from which its rate is τ or more."""
    sizes: tuple[int, ...]
    """Examples seen by each look, ascending; the last is all of them."""
    most: tuple[int, ...]
    """Most flips with which the unit is ruled out, for each look; −1 if it cannot be."""

    def excludes(self, seen: int, flips: int) -> bool:
        """Whether the counts of a look rule the unit out."""
        return flips <= self.most[self.sizes.index(seen)]

    def following(self, seen: int) -> range:
        """The examples up to the next look."""
        return range(seen, next(size for size in self.sizes if size > seen))


@lru_cache(maxsize=64)
def exclusion_plan(n: int, tau: float, slip: float) -> ExclusionPlan:
    """The plan for a slice of n examples: a τ-agonist of it is ruled out with probability `slip` at most."""
    needed = next((flips for flips in range(n + 1) if flips >= 1 and reaches(flips / n, tau)), n + 1)
    sizes = _look_sizes(n, needed, slip)
    if not slip:  # Counted: a chance too small for a float is not none.
        sure = tuple(max(needed - 1 - n + size, -1) for size in sizes)
        return ExclusionPlan(needed=needed, sizes=sizes, most=sure)
    mass, crossed = np.zeros(needed + 1), 0.0
    mass[0], seen, most = 1.0, 0, []
    for size in sizes[:-1]:
        mass, seen = _observe(mass, seen, size, n, needed), size
        spent = slip * (AT_FIRST + (1 - AT_FIRST) * (size - sizes[0]) / (n - sizes[0]))
        stops = crossed + np.cumsum(mass) <= spent
        crossed += float(mass[stops].sum())
        mass = mass * ~stops
        most.append(int(stops.sum()) - 1)
    return ExclusionPlan(needed=needed, sizes=sizes, most=(*most, needed - 1))


def _look_sizes(n: int, needed: int, slip: float) -> tuple[int, ...]:
    """First where a unit without a flip is ruled out, then each time a quarter further, then everything."""
    flipless = 1.0
    for size in range(1, n):
        flipless *= max(n - size + 1 - needed, 0) / (n - size + 1)
        if flipless <= slip * AT_FIRST and (slip or size > n - needed):
            sizes = [size]
            while (further := math.ceil(sizes[-1] * STEP)) < n:
                sizes.append(further)
            return (*sizes, n)
    return (n,)


def _observe(
    mass: Float[np.ndarray, " flips"], seen: int, size: int, n: int, needed: int
) -> Float[np.ndarray, " flips"]:
    """Carry the law of the flips seen from `seen` to `size` examples, when the slice holds `needed` flips."""
    flips = np.arange(len(mass))
    for drawn in range(seen, size):
        chance = (needed - flips) / (n - drawn)
        grown = mass * (1 - chance)
        grown[1:] += (mass * chance)[:-1]
        mass = grown
    return mass

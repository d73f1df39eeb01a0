"""How flip counts, strengths and the two slices are said.

"τ-agonist" is a point estimate that reaches τ; a unit whose upper bound alone does is "not ruled out"; both are
"localized". A count on a slice speaks of these examples; on few of them it comes with how low the rate may lie.
"""

from mecharule_ops import numbers, thresholds, types
from mecharule_ops.confidence import lower_bound, searched_alpha
from mecharule_ops.findings.records import Unit


def of_these(count: types.FlipCount, name: str, tau: float = thresholds.TAU, units: int = 0) -> str:
    """`50 of these 64 of D+ (78 %)`; of fewer than 64 also `(20 %; of all such at least 1.2 %, as one of 256 units)`.

    That is the exact lower bound at 97.5 % over both slices of all `units` searched at once, since a unit that is shown
    was chosen by its count; said where it does not reach the run's τ. Nothing is said where `units` is 0: of slices
    that are covers, of groups, and where a unit was named beforehand.
    """
    if not count.n:
        return f"0/0 of {name}"
    lower, doubt = lower_bound(count.flips, count.n, searched_alpha(thresholds.ALPHA, units) / 2), ""
    if units and count.n < thresholds.SLICE and count.flips and not thresholds.reaches(lower, tau):
        among = numbers.plural(units, "unit")
        doubt = f"; of all such at least {numbers.percent_at_least(lower)}, as one of {among}"
    return f"{count.flips:,} of these {count.n:,} of {name} ({numbers.percent(count.flips / count.n)}{doubt})"


def stronger_slice(estimate: types.FlipEstimate, tau: float = thresholds.TAU, units: int = 0) -> str:
    """The slice that gives the strength, with its counts: `50 of these 64 of D+ (78 %)`."""
    name, count = estimate.stronger
    return of_these(count, name, tau, units)


def unit_flips(unit: Unit) -> str:
    """The same of a localized unit, with the doubt over all units of its search."""
    return stronger_slice(unit.estimate, unit.agonist.tau, unit.search.bounded)


def both_slices(estimate: types.FlipEstimate, tau: float = thresholds.TAU, units: int = 0) -> str:
    """`50 of these 64 of D+ (78 %) and 8 of these 64 of D- (12 %)`."""
    plus, minus = estimate.associated, estimate.unrelated
    return f"{of_these(plus, 'D+', tau, units)} and {of_these(minus, 'D-', tau, units)}"

"""How flip counts, strengths and the two slices are said.

"τ-agonist" is a point estimate that reaches τ; a unit whose upper bound alone does is "not ruled out"; both are
"localized". A count on a slice speaks of these examples; on few of them it comes with how low the rate may lie.
"""

from __future__ import annotations

from mecharule_ops.confidence import lower_bound
from mecharule_ops.report.document import percent
from mecharule_ops.thresholds import ALPHA, SLICE, reaches
from mecharule_ops.types import Agonist, FlipCount, FlipEstimate


def of_these(count: FlipCount, name: str, tau: float) -> str:
    """`50 of these 64 of D+ (78 %)`; of fewer than 64 also `4 of these 20 of D+ (20 %, not told apart from 5.7 %)`.

    That is the exact lower bound at 97.5 %, said where it does not reach the run's τ. A slice that is short holds all
    there are, so no choice among them bent it.
    """
    if not count.n:
        return f"0/0 of {name}"
    lower = lower_bound(count.flips, count.n, ALPHA / 2)
    doubtful = count.n < SLICE and lower > 0 and not reaches(lower, tau)
    doubt = f", not told apart from {percent(lower)}" if doubtful else ""
    return f"{count.flips:,} of these {count.n:,} of {name} ({percent(count.flips / count.n)}{doubt})"


def stronger_slice(estimate: FlipEstimate, tau: float) -> str:
    """The slice that gives the strength, with its counts: `50 of these 64 of D+ (78 %)`."""
    name, count = estimate.stronger
    return of_these(count, name, tau)


def both_slices(estimate: FlipEstimate, tau: float) -> str:
    """`50 of these 64 of D+ (78 %) and 8 of these 64 of D- (12 %)`."""
    return f"{of_these(estimate.associated, 'D+', tau)} and {of_these(estimate.unrelated, 'D-', tau)}"


def by_strength(agonists: tuple[Agonist, ...]) -> list[Agonist]:
    """Strongest first; on a tie in the order of their names."""
    return sorted(agonists, key=lambda agonist: (-agonist.estimate.strength, agonist.neuron))


def leaning(selectivity: float | None, epsilon: float) -> str:
    """`more on D+`, `more on D-`, or `alike on both` where the slices differ by less than ε: a point estimate."""
    if selectivity is None or not abs(selectivity) >= epsilon:
        return "alike on both"
    return "more on D+" if selectivity > 0 else "more on D-"

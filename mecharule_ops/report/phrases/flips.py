"""How flip counts, strengths and the two slices are said.

"τ-agonist" is a point estimate that reaches τ; a unit whose upper bound alone does is "not ruled out"; both are
"localized". A percentage comes with its counts.
"""

from __future__ import annotations

from mecharule_ops.report.document import k_of_n
from mecharule_ops.types import Agonist, FlipEstimate


def stronger_slice(estimate: FlipEstimate) -> str:
    """The slice that gives the strength, with its counts: `50/64 (78 %) of D+`."""
    name, count = estimate.stronger
    return f"{k_of_n(count)} of {name}"


def both_slices(estimate: FlipEstimate) -> str:
    """`50/64 (78 %) of D+ and 8/64 (12 %) of D-`."""
    return f"{k_of_n(estimate.associated)} of D+ and {k_of_n(estimate.unrelated)} of D-"


def by_strength(agonists: tuple[Agonist, ...]) -> list[Agonist]:
    """Strongest first; on a tie in the order of their names."""
    return sorted(agonists, key=lambda agonist: (-agonist.estimate.strength, agonist.neuron))


def leaning(selectivity: float | None, epsilon: float) -> str:
    """`more on D+`, `more on D-`, or `alike on both` where the slices differ by less than ε: a point estimate."""
    if selectivity is None or not abs(selectivity) >= epsilon:
        return "alike on both"
    return "more on D+" if selectivity > 0 else "more on D-"

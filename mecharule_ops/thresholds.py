"""The defaults of τ, ε, α, competitors and a repair's harm; the one place that says what reaches τ. Light."""

from dataclasses import dataclass

TAU = 0.2
"""Strength threshold τ of the paper's runs."""
EPSILON = 0.2
"""Its selectivity threshold ε, for reporting only."""
ALPHA = 0.05
"""Its confidence parameter α of a node."""
SLICE = 64
"""Examples of a compact slice; on fewer a rate is too coarse to stand without its lower bound."""
COMPETITORS = 3
"""Other tokens that first order sets a lead against: a strong unit changes who comes second, so the runner-up alone
misses flips."""
RANDOM_UNITS = 99
"""Units drawn from the basis that a found unit is ranked among; after Holm 99 allow p ≤ .05 for five units."""
HARM = 3.0
"""Fixed answers that one broken answer weighs where gates are learned and chosen."""


def reaches(value: float, tau: float) -> bool:
    """Whether a flip rate or a bound of one is at least τ; NaN, the rate of no examples, is not.

    Of the strength Ê it makes a unit a τ-agonist, of the upper bound Û_E a unit not ruled out (localized: the
    paper's inclusion rule), of the lower bound a unit whose τ-agonism the counts alone show.

    >>> reaches(0.2, 0.2), reaches(0.19, 0.2), reaches(float("nan"), 0.2)
    (True, False, False)
    """
    return bool(value >= tau)


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """What a run's flips are judged by; the paper's until the run has said its own."""

    tau: float = TAU
    epsilon: float = EPSILON
    alpha: float = ALPHA

    def reached_by(self, strength: float | None) -> bool:
        """Whether a strength was measured and is at least τ."""
        return strength is not None and reaches(strength, self.tau)

    def __str__(self) -> str:
        return f"τ {self.tau}, ε {self.epsilon}, α {self.alpha}"

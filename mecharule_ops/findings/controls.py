"""What the controls beside a unit show: two claims, each decided by itself (paper, E1 and §7).

*Effect*: ablating the unit flips more than ablating random units of its layer. p is of Fisher's exact test, one-sided,
of the unit's flips against the pooled flips of the random units on the same slice; the smaller p of the two slices
counts, times 2 for the two slices and times every unit searched, from which this one was picked by the same flips.
What it tests is that the unit flips more often than the average random unit; not that no other unit does as much, nor
that its strength reaches τ (its lower bound says that). It takes examples as independent, although the unit and the
random units meet the same ones: units that agree on which examples are fragile make it conservative.

*Selective*: its flips follow the split. The first line that applies decides:

1. UNDECIDED      a slice is empty.
2. NOT_SELECTIVE  |δ̂₊ − δ̂₋| < ε, or the split of a fake rule gives at least the same |δ̂₊ − δ̂₋|.
3. UNDECIDED      Fisher's exact test of the two slices, two-sided, gives p > α; or no fake rule was at hand; or the
                  lower bound of the difference (lower bound of the one rate less upper bound of the other, each at
                  α/2) does not lie above the fake rule's difference.
4. SELECTIVE      none of the above.

Neither claim needs the other: a head may flip nearly everything, on both slices alike, where random heads flip nothing.
Neither is decided by the second baseline, because the paper defines an agonist relative to one replacement;
`depends_on_baseline` says when the strength does not survive the change.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from jaxtyping import Float, Int

from mecharule_ops.binomials import log_choose
from mecharule_ops.confidence import lower_bound, upper_bound
from mecharule_ops.findings.counts import Share
from mecharule_ops.types import Baseline, FlipCount, FlipEstimate, Neuron


class Effect(StrEnum):
    """Whether a unit is told apart from random units of its layer."""

    BEYOND_RANDOM = "beyond random units"
    NOT_TOLD_APART = "not told apart from random units"
    UNTESTED = "no random unit was ablated"


class Selective(StrEnum):
    """Whether a unit's flips follow the split, told apart from a fake rule's."""

    SELECTIVE = "selective"
    NOT_SELECTIVE = "not selective"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgonistControls:
    """The controls run beside one localized unit and what they show; None where a control was not run."""

    neuron: Neuron
    effect: Effect
    effect_p: float | None
    """p of the effect in [0, 1], corrected for two slices and every unit searched; None when untested."""
    selective: Selective
    selective_p: float
    """p in [0, 1] of Fisher's exact test that both slices flip at one rate."""
    searched: int
    """Units from which this one was picked: p of the effect is corrected for them."""
    random_units: int = 0
    """How many random units of the same layer were ablated, each alone."""
    random: FlipEstimate | None = None
    """Flips pooled over those units, on the same slices."""
    fake_split: FlipEstimate | None = None
    """This unit on the slices of a rule learned from permuted targets (experiment E1, condition d)."""
    second_baseline: Baseline | None = None
    second: FlipEstimate | None = None
    """This unit with `second_baseline` as its replacement, on the same slices."""
    out_of_range: Share | None = None
    """Replaced values outside the range that the unit takes at that position in the data."""

    @classmethod
    def of(
        cls,
        neuron: Neuron,
        estimate: FlipEstimate,
        *,
        random: FlipEstimate | None,
        searched: int,
        epsilon: float,
        alpha: float,
        random_units: int = 0,
        fake_split: FlipEstimate | None = None,
        second_baseline: Baseline | None = None,
        second: FlipEstimate | None = None,
        out_of_range: Share | None = None,
    ) -> AgonistControls:
        """With both claims decided from the counts by the rules of the module docstring; `searched` ≥ 1."""
        effect_p = None if random is None else effect_test(estimate, random, searched)
        told_apart = Effect.BEYOND_RANDOM if (effect_p or 0.0) <= alpha else Effect.NOT_TOLD_APART
        return cls(
            neuron=neuron,
            effect=Effect.UNTESTED if effect_p is None else told_apart,
            effect_p=effect_p,
            selective=_selective(estimate, fake_split, epsilon, alpha),
            selective_p=fisher_exact(estimate),
            searched=searched,
            random_units=random_units,
            random=random,
            fake_split=fake_split,
            second_baseline=second_baseline,
            second=second,
            out_of_range=out_of_range,
        )

    def depends_on_baseline(self, tau: float) -> bool:
        """True when a second replacement baseline was run and its point estimate stays below τ."""
        return self.second is not None and not self.second.reaches(tau)

    def layer_is_fragile(self, tau: float) -> bool:
        """True when the random units, pooled, reach τ themselves: then the unit's strength is nothing special."""
        return self.random is not None and self.random.reaches(tau)


def effect_test(estimate: FlipEstimate, random: FlipEstimate, searched: int) -> float:
    """One-sided p that a unit flips no more than pooled random units, corrected for 2 slices and `searched` units."""
    pairs = ((estimate.associated, random.associated), (estimate.unrelated, random.unrelated))
    return min(1.0, 2 * searched * min(fisher_greater(unit, others) for unit, others in pairs))


def fisher_greater(unit: FlipCount, others: FlipCount) -> float:
    """One-sided p of Fisher's exact test that `unit` flips no more often than `others`; 1.0 when either is empty."""
    seen, log_p = _tables(unit, others)
    return float(min(1.0, np.exp(log_p[seen >= unit.flips]).sum()))


def fisher_exact(estimate: FlipEstimate) -> float:
    """Two-sided p of Fisher's exact test that both slices flip at one rate; 1.0 when a slice is empty.

    Sums the hypergeometric probabilities of every table at most as likely as the one seen.
    """
    seen, log_p = _tables(estimate.associated, estimate.unrelated)
    observed = log_p[estimate.associated.flips - seen[0]]
    return float(min(1.0, np.exp(log_p[log_p <= observed + 1e-7]).sum()))


def difference_at_least(estimate: FlipEstimate, alpha: float) -> float:
    """A lower bound on |δ₊ − δ₋|: of the higher rate its lower, of the other its upper bound, each at α/2."""
    high, low = sorted((estimate.associated, estimate.unrelated), key=lambda part: -part.flip_rate)
    return lower_bound(high.flips, high.n, alpha / 2) - upper_bound(low.flips, low.n, alpha / 2)


def _selective(
    estimate: FlipEstimate, fake_split: FlipEstimate | None, epsilon: float, alpha: float
) -> Selective:
    difference = abs(estimate.signed_selectivity)
    fake = float("nan") if fake_split is None else abs(fake_split.signed_selectivity)
    if np.isnan(difference):
        return Selective.UNDECIDED
    if difference < epsilon or fake >= difference:
        return Selective.NOT_SELECTIVE
    if fisher_exact(estimate) <= alpha and difference_at_least(estimate, alpha) > fake:
        return Selective.SELECTIVE
    return Selective.UNDECIDED


def _tables(
    first: FlipCount, second: FlipCount
) -> tuple[Int[np.ndarray, " table"], Float[np.ndarray, " table"]]:
    """Every possible flip count of `first` under the margins seen, and its log probability."""
    flips = first.flips + second.flips
    seen = np.arange(max(0, flips - second.n), min(flips, first.n) + 1)
    log_p = log_choose(first.n, seen) + log_choose(second.n, flips - seen)
    return seen, log_p - log_choose(first.n + second.n, np.array([flips]))

"""What a finished run knows of one localized unit, put together: flips, rule, controls, and what would refute it.

Pure counting over findings; no model, no file.
"""

from __future__ import annotations

from dataclasses import dataclass

from mecharule_ops.confidence import lower_bound
from mecharule_ops.findings.records import AgonistControls, Findings, SearchOutcome
from mecharule_ops.thresholds import reaches
from mecharule_ops.types import Agonist, AnchoredRule, FlipCount, Neuron, Regime

SINGLETON, HELD_OUT = "exact singleton on the compact slice", "held-out"
"""Grades: the unit alone was ablated; its rule predicts flips on records that chose nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitAccount:
    """One localized unit in one regime."""

    agonist: Agonist
    rule: AnchoredRule | None
    controls: AgonistControls | None
    searched: int
    """Units of the search that found it."""
    bounded: int
    """The same where a bound on D⁺ or D⁻ may be said, else 0."""
    hq_t: bool
    """The rule reaches both floors on held-out records."""
    flips_needed: int | None
    """Fewest flips on the stronger slice whose lower bound, of a unit named beforehand, reaches τ, or None."""

    @property
    def grade(self) -> str:
        """The highest grade that its claims reach."""
        return HELD_OUT if self.hq_t else SINGLETON

    @property
    def neuron(self) -> Neuron:
        """The unit it is about."""
        return self.agonist.neuron

    @property
    def regime(self) -> Regime:
        """The direction of its flips: a unit found in both regimes has two accounts."""
        return self.agonist.regime

    @property
    def stronger(self) -> tuple[str, FlipCount]:
        """The slice that gives the strength, with its counts."""
        return self.agonist.estimate.stronger


def account(findings: Findings, outcome: SearchOutcome, neuron: Neuron) -> UnitAccount | None:
    """What a search knows of a unit, None when it did not localize it."""
    unit = findings.unit(neuron, outcome.regime)
    if unit is None:
        return None
    return UnitAccount(
        agonist=unit.agonist,
        rule=unit.rule,
        controls=unit.controls,
        searched=outcome.cost.candidates,
        bounded=outcome.bounded,
        hq_t=unit.rule is not None and findings.is_hq_t(unit.rule),
        flips_needed=flips_needed(unit.estimate.stronger[1].n, findings.tau, findings.alpha),
    )


def flips_needed(n: int, tau: float, alpha: float) -> int | None:
    """The fewest flips of n whose one-sided lower bound at α/2 reaches τ; None when even n flips do not."""
    return next((flips for flips in range(n + 1) if reaches(lower_bound(flips, n, alpha / 2), tau)), None)


def strongest(findings: Findings, place: int = 1, regime: Regime | None = None) -> Agonist | None:
    """The unit of that place by strength over all searches, where it is strongest; None when there are fewer.

    With a regime, over the searches of that direction alone.
    """
    named = (
        outcome
        for outcome in findings.searches
        if not outcome.suppressed and regime in (None, outcome.regime)
    )
    found = [agonist for outcome in named for agonist in outcome.agonists]
    found.sort(key=lambda agonist: (-agonist.estimate.strength, agonist.neuron))
    first: dict[Neuron, Agonist] = {}
    for agonist in found:
        first.setdefault(agonist.neuron, agonist)
    units = list(first.values())
    return units[place - 1] if 1 <= place <= len(units) else None

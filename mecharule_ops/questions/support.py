"""Which unit is strongest, and how well each claim about one is supported by its bounds and controls.

A claim is "this unit alone reaches τ", made of every τ-agonist. Nothing new is measured: the weak points are read off
the findings.
"""

from __future__ import annotations

from dataclasses import dataclass

from mecharule_ops.findings.records import Findings, Unit
from mecharule_ops.types import Agonist, Neuron, Regime


@dataclass(frozen=True, slots=True, kw_only=True)
class Support:
    """One claim about a unit, and what speaks against relying on it."""

    unit: Unit
    weak_points: tuple[str, ...]
    """One phrase each, without numbers that stand elsewhere; empty when bounds and controls leave nothing open."""


def by_support(findings: Findings) -> tuple[Support, ...]:
    """Every claim about a named unit: most weak points first, then the one that lies lowest against τ."""
    claims = [
        Support(unit=unit, weak_points=tuple(_weak_points(findings, unit)))
        for unit in findings.units()
        if unit.is_tau_agonist and not unit.search.suppressed
    ]
    return tuple(
        sorted(claims, key=lambda claim: (-len(claim.weak_points), claim.unit.lower, claim.unit.neuron))
    )


def _weak_points(findings: Findings, unit: Unit) -> list[str]:
    controls, points = unit.controls, []
    if not unit.counts_show_it:
        points.append("its lower bound does not reach τ")
    if controls is None or controls.basis is None:
        points.append("no random unit was ablated beside it")
    elif controls.basis.count and not controls.stands_out(findings.alpha):
        points.append("random units flip as many records")
    elif controls.effect_p is None:
        points.append("too few random units were drawn for a p")
    if unit.depends_on_baseline:
        points.append("under another baseline it stays below τ")
    return points


def strongest(
    findings: Findings, place: int = 1, regime: Regime | None = None, noun: str = ""
) -> Agonist | None:
    """The unit of that place among `by_strength`; None when there are fewer."""
    units = by_strength(findings, regime, noun)
    return units[place - 1] if 1 <= place <= len(units) else None


def by_strength(findings: Findings, regime: Regime | None = None, noun: str = "") -> list[Agonist]:
    """Every unit found, by strength over all searches, each where it is strongest.

    With a regime, over the searches of that direction alone; with a `noun` such as `head`, over those of such units,
    where the run searched any: `neuron` is also said of units in general.
    """
    nouns = {outcome.intervention.basis.row.noun for outcome in findings.searches}
    named = (
        outcome
        for outcome in findings.searches
        if not outcome.suppressed
        and regime in (None, outcome.regime)
        and (noun not in nouns or outcome.intervention.basis.row.noun == noun)
    )
    found = [agonist for outcome in named for agonist in outcome.agonists]
    found.sort(key=lambda agonist: (-agonist.estimate.strength, agonist.neuron))
    first: dict[Neuron, Agonist] = {}
    for agonist in found:
        first.setdefault(agonist.neuron, agonist)
    return list(first.values())

"""Which units are shown, in which order, and how well each claim about one is supported by bounds and controls.

A claim is "this unit alone reaches τ", made of every τ-agonist. Nothing new is measured: the weak points are read off
the findings.
"""

from __future__ import annotations

from dataclasses import dataclass

from mecharule_ops.findings.records import Findings, Unit
from mecharule_ops.types import Agonist, Regime


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
    points = []
    if not unit.counts_show_it:
        points.append("its lower bound does not reach τ")
    if unit.evidence is None:
        points.append("no random unit was ablated beside it")
    elif not unit.is_shown:
        points.append("on answers kept aside it is not told apart from random units")
    if unit.depends_on_baseline:
        points.append("under another baseline it stays below τ")
    return points


def strongest(
    findings: Findings, place: int = 1, regime: Regime | None = None, noun: str = ""
) -> Agonist | None:
    """The shown unit of that place among `by_evidence`; None when there are fewer."""
    units = [unit for unit in by_evidence(findings, regime, noun) if unit.is_shown]
    return units[place - 1].agonist if 1 <= place <= len(units) else None


def by_evidence(findings: Findings, regime: Regime | None = None, noun: str = "") -> list[Unit]:
    """Every localized unit once: the shown by the bound of what they flip, then the others in the order of their names.

    With a regime, over the searches of that direction alone; with a `noun` such as `head`, over those of such units,
    where the run searched any: `neuron` is also said of units in general.
    """
    searched = {outcome.intervention.basis.row.noun for outcome in findings.searches}
    return [
        unit
        for unit in findings.by_evidence(regime)
        if noun not in searched or unit.neuron.basis.row.noun == noun
    ]

"""How well each claim about a unit is supported: what its bounds and controls leave open, weakest first.

A claim is "this unit alone reaches τ", made of every τ-agonist. Nothing new is measured: the weak points are read off
the findings.
"""

from __future__ import annotations

from dataclasses import dataclass

from mecharule_ops.findings.records import AgonistControls, Findings, Unit
from mecharule_ops.thresholds import reaches
from mecharule_ops.types import Agonist


@dataclass(frozen=True, slots=True, kw_only=True)
class Support:
    """One claim about a unit, and what speaks against relying on it."""

    agonist: Agonist
    controls: AgonistControls | None
    lower: float
    """The lower bound of its strength over both slices of all units searched, in [0, 1]."""
    units: int
    """Over so many a bound on D⁺ or D⁻ holds at once (`SearchOutcome.bounded`)."""
    weak_points: tuple[str, ...]
    """One phrase each, without numbers that stand elsewhere; empty when bounds and controls leave nothing open."""


def by_support(findings: Findings) -> tuple[Support, ...]:
    """Every claim about a named unit: most weak points first, then the one that lies lowest against τ."""
    claims = [
        _support(findings, unit)
        for unit in findings.units()
        if unit.is_tau_agonist and not unit.search.suppressed
    ]
    return tuple(
        sorted(claims, key=lambda claim: (-len(claim.weak_points), claim.lower, claim.agonist.neuron))
    )


def _support(findings: Findings, unit: Unit) -> Support:
    controls, points = unit.controls, []
    if not reaches(unit.lower, findings.tau):
        points.append("its lower bound does not reach τ")
    if controls is None or controls.basis is None:
        points.append("no random unit was ablated beside it")
    elif controls.basis.count and not controls.stands_out(findings.alpha):
        points.append("random units flip as many records")
    elif controls.effect_p is None:
        points.append("too few random units were drawn for a p")
    if controls is not None and controls.depends_on_baseline(unit.estimate, findings.tau):
        points.append("under another baseline it stays below τ")
    return Support(
        agonist=unit.agonist,
        controls=controls,
        lower=unit.lower,
        units=unit.search.bounded,
        weak_points=tuple(points),
    )

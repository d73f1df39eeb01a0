"""The claim of a run that has least support."""

from __future__ import annotations

from mecharule_ops.numbers import plural
from mecharule_ops.pipeline.opening import findings_of, opened
from mecharule_ops.questions.support import Support, by_support
from mecharule_ops.saying.fact import Fact, fact
from mecharule_ops.saying.flips import both_slices
from tools._accounts import estimate_data
from tools.arguments import Weakest
from tools.registry import Tell
from tools.result import ToolResult, stated


def weakest(given: Weakest, tell: Tell) -> ToolResult:
    """The claims with most weak points, and among equals the lowest lower bound, in sentences."""
    with opened(given.run) as run:
        findings = findings_of(run)
    claims = by_support(findings)
    source = f"run:{findings.run}"
    facts = [fact for claim in claims[: given.limit] for fact in _facts(claim, findings.tau, source)]
    if claims:
        sound = sum(not claim.weak_points for claim in claims)
        facts.append(
            fact(
                f"Of the claims about {plural(len(claims), 'τ-agonist')}, {sound or 'none'} "
                f"{'has' if sound < 2 else 'have'} no weak point",
                source,
            )
        )
    else:
        facts.append(fact("This run claims nothing of any unit, so no claim is the weakest", source))
    data = {
        "run": findings.run,
        "tau": findings.tau,
        "claims": [_data(claim) for claim in claims[: given.limit]],
        "claims_in_all": len(claims),
        "without_weak_points": sum(not claim.weak_points for claim in claims),
    }
    return stated(data, facts)


def _facts(claim: Support, tau: float, source: str) -> list[Fact]:
    agonist = claim.agonist
    unit = str(agonist.neuron)
    points = "; ".join(claim.weak_points) or "its bounds and controls leave nothing open"
    said = (
        f"The claim with least support is that {unit} reaches τ ({agonist.regime.arrow}): {points}",
        f"Ablating {unit} alone flips {both_slices(agonist.estimate, tau, claim.units)}",
        f"The lower bound of {unit}'s strength, over all units searched, is {claim.lower:.2f}, against τ = {tau:g}",
    )
    return [fact(sentence, source, unit=unit) for sentence in said]


def _data(claim: Support) -> dict[str, object]:
    return {
        "neuron": str(claim.agonist.neuron),
        "regime": claim.agonist.regime.value,
        **estimate_data(claim.agonist.estimate),
        "lower": claim.lower,
        "weak_points": list(claim.weak_points),
    }

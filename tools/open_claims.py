"""What a run leaves open: its claims about units, least supported first, and what its searches may have missed."""

from __future__ import annotations

from mecharule_ops.codec import encode
from mecharule_ops.findings.records import Findings, SearchOutcome
from mecharule_ops.numbers import plural
from mecharule_ops.questions.support import Support, by_support
from mecharule_ops.run.opening import findings_of, opened
from mecharule_ops.saying.fact import Fact, fact
from mecharule_ops.saying.flips import both_slices
from mecharule_ops.saying.searches import audit_sentence, cost_words, recall_words, search_name
from mecharule_ops.types import Share
from tools.arguments import MissedArguments, WeakestArguments
from tools.registry import Tell, ToolResult, stated


def weakest(given: WeakestArguments, tell: Tell) -> ToolResult:
    """The claims with most weak points, and among equals the lowest lower bound, in sentences."""
    with opened(given.run) as run:
        findings = findings_of(run)
    claims = by_support(findings)
    source = f"run:{findings.run}"
    facts = [fact for claim in claims[: given.limit] for fact in _facts(claim, findings.tau, source)]
    sound = sum(not claim.weak_points for claim in claims)
    said = "This run claims nothing of any unit, so no claim is the weakest"
    if claims:
        of = f"of the claims about {plural(len(claims), 'τ-agonist')}"
        said = (
            f"{sound} {of} {'has' if sound == 1 else 'have'} no weak point"
            if sound
            else f"Each {of} has a weak point"
        )
    data = {
        "run": findings.run,
        "tau": findings.tau,
        "claims": [_data(claim) for claim in claims[: given.limit]],
        "claims_in_all": len(claims),
        "without_weak_points": sound,
    }
    return stated(data, [*facts, fact(said, source)])


def _facts(claim: Support, tau: float, source: str) -> list[Fact]:
    unit = claim.unit
    points = "; ".join(claim.weak_points) or "its bounds and controls leave nothing open"
    said = (
        f"The claim with least support is that {unit.neuron} reaches τ ({unit.search.regime.arrow}): {points}",
        f"Ablating {unit.neuron} alone flips {both_slices(unit.estimate, tau, unit.search.bounded)}",
        f"The lower bound of {unit.neuron}'s strength, over all units searched, is {unit.lower:.2f}, against τ = "
        f"{tau:g}",
    )
    return [fact(sentence, source, unit=unit.neuron) for sentence in said]


def _data(claim: Support) -> dict[str, object]:
    return {
        "neuron": str(claim.unit.neuron),
        "regime": claim.unit.search.regime.value,
        **encode(claim.unit.estimate),
        "lower": claim.unit.lower,
        "weak_points": list(claim.weak_points),
    }


def missed(given: MissedArguments, tell: Tell) -> ToolResult:
    """For each search: τ-agonists known to be missed, or the number of units whose own strength is unknown."""
    with opened(given.run) as run:
        findings = findings_of(run)
    rows = [_row(findings, outcome) for outcome in findings.searches]
    said = [f"{row['search']}: {row['sentence']}" for row in rows] or ["No search was run"]
    facts = [fact(sentence, f"run:{findings.run}") for sentence in said]
    return stated({"run": findings.run, "searches": rows}, facts)


def _row(findings: Findings, outcome: SearchOutcome) -> dict[str, object]:
    units, tau = outcome.cost.candidates, findings.tau
    row: dict[str, object] = {"search": search_name(outcome), "candidates": units}
    if outcome.exhaustive is None:
        untested = max(0, units - outcome.singletons_tested)
        if outcome.audit is not None:
            return row | {
                "untested": outcome.audit.untested,
                "reopened": outcome.audit.reopened,
                "found": len(outcome.tau_agonists),
                "missed_at_most": outcome.audit.missed_at_most,
                "confidence": outcome.audit.confidence,
                "group_ablations": outcome.cost.queries,
                "share_of_testing_every_unit": outcome.cost.share_of_exhaustive_forwards,
                "sentence": f"{audit_sentence(outcome, outcome.audit).removesuffix('.')}; {cost_words(outcome.cost)}",
            }
        sentence = (
            f"every one of {units:,} units was tested alone, so none was left out with a group"
            if not untested
            else f"{untested:,} of {units:,} units were never tested alone, because a group that held them was pruned "
            "or the search ended first; what they hide is not bounded here. Testing every unit alone "
            "(--exhaustive-up-to) would settle it"
        )
        return row | {"untested": untested, "missed": None, "sentence": sentence}
    units_missed = outcome.missed(tau)
    truth = sum(unit.estimate.reaches(tau) for unit in outcome.exhaustive.units)
    names = ", ".join(str(unit.neuron) for unit in units_missed[:10])
    sentence = (
        f"every one of {units:,} units was also tested alone: {truth} reach τ = {tau:g}, and the search found "
        f"{recall_words(Share(count=truth - len(units_missed), n=truth))}"
        + (f", not {names}" if names else "")
    )
    return row | {
        "untested": 0,
        "tau_agonists": truth,
        "missed": [str(unit.neuron) for unit in units_missed],
        "sentence": sentence,
    }

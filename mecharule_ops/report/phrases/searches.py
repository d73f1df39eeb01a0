"""How a search is named, and what it missed at most."""

from __future__ import annotations

from mecharule_ops.findings.records import Findings, SearchAudit, SearchCost, SearchOutcome, Share
from mecharule_ops.report.document import k_of_n, percent, plural
from mecharule_ops.types import Regime


def search_name(outcome: SearchOutcome) -> str:
    """`mlp_out · mean-positional · decode · 1→0`."""
    how = outcome.intervention
    return f"{how.basis} · {how.baseline} · {how.phase} · {outcome.regime.arrow}"


def search_names(findings: Findings) -> tuple[str, ...]:
    """A name a search: `mlp_out 1→0` where that tells them apart and all replace alike, else the full one."""
    short = tuple(f"{each.intervention.basis} {each.regime.arrow}" for each in findings.searches)
    if shared_replacement(findings) and len(set(short)) == len(short):
        return short
    return tuple(map(search_name, findings.searches))


def shared_replacement(findings: Findings) -> str | None:
    """`baseline mean-positional, phase decode` when all searches replace alike; None otherwise."""
    how = {(each.intervention.baseline, each.intervention.phase) for each in findings.searches}
    if len(how) != 1:
        return None
    baseline, phase = how.pop()
    return f"baseline {baseline}, phase {phase}"


def is_risk(findings: Findings, outcome: SearchOutcome) -> bool:
    """Whether the flips of a search do harm: 0→1 where success is harm."""
    return findings.words.success_is_harm and outcome.regime is Regime.BASELINE_NEGATIVE


def audit_sentence(audit: SearchAudit) -> str:
    """How many τ-agonists the search missed at most, and on what that rests."""
    drawn = (
        f"Of the {plural(audit.unknown, 'unit')} whose full strength the search left unknown, "
        f"{audit.tested:,} were drawn at random and tested alone: {len(audit.found) or 'none'} "
        f"{'reaches' if len(audit.found) <= 1 else 'reach'} τ"
    )
    if not audit.untested:
        return f"{drawn}, so nothing is left unknown."
    bound = "none" if not audit.missed_at_most else f"at most {audit.missed_at_most:,}"
    return (
        f"{drawn}, so {bound} of the other {audit.untested:,} "
        f"{'does' if audit.missed_at_most <= 1 else 'do'} ({100 * audit.confidence:g} % confidence)."
    )


def cost_words(cost: SearchCost) -> str:
    """`the search took 82 group ablations, 11 % of what testing every unit alone takes`."""
    return (
        f"the search took {plural(cost.queries, 'group ablation')}, {percent(cost.share_of_exhaustive_forwards)} of "
        "what testing every unit alone takes"
    )


def recall_sentence(outcome: SearchOutcome, tau: float) -> str:
    """How much of what there is the search found, or what bounds it."""
    if outcome.exhaustive is None:
        untested = max(0, outcome.cost.candidates - outcome.singletons_tested)
        if not untested:
            return "Every searched unit was tested alone."
        if outcome.audit is not None:
            return audit_sentence(outcome.audit)
        was = "was" if untested == 1 else "were"
        return (
            f"{plural(untested, 'unit')} {was} never tested alone, so what the search missed is not bounded."
        )
    truth = sum(unit.estimate.reaches(tau) for unit in outcome.exhaustive.units)
    if truth == 0:
        return "Every searched unit was also tested alone, and none reaches τ on the point estimate."
    found = Share(count=truth - len(outcome.missed(tau)), n=truth)
    return f"The search found {k_of_n(found)} of the τ-agonists that testing every unit alone finds."


def missed_words(outcome: SearchOutcome, tau: float) -> str:
    """The same in a few words: `at most 23 missed (95 % confidence)`, `3/4 (75 %) of those that brute force finds`."""
    if outcome.exhaustive is not None:
        truth = sum(unit.estimate.reaches(tau) for unit in outcome.exhaustive.units)
        return f"{len(outcome.missed(tau))} missed of the {truth} that testing every unit alone finds"
    if outcome.singletons_tested >= outcome.cost.candidates:
        return "every unit was tested alone"
    if outcome.audit is None:
        return "what was missed is not bounded"
    most = outcome.audit.missed_at_most if outcome.audit.untested else 0
    return (
        f"at most {most:,} missed ({100 * outcome.audit.confidence:g} % confidence)"
        if most
        else "none missed"
    )


def predicted_words(outcome: SearchOutcome) -> str:
    """Where the law ranked the τ-agonists of a guided search before any unit was ablated; empty for another search."""
    strong = {agonist.neuron for agonist in outcome.tau_agonists}
    ranks = [unit.rank for unit in outcome.predicted if unit.neuron in strong]
    if not ranks:
        return ""
    shown = ", ".join(f"{rank:,}" for rank in ranks[:_RANKS]) + (" …" if len(ranks) > _RANKS else "")
    return (
        f"Before any unit was ablated first order ranked the {plural(len(ranks), 'τ-agonist')} {shown} of "
        f"{outcome.cost.candidates:,}."
    )


_RANKS = 12

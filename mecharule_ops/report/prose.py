"""The words that every part of a report shares: names of searches, slices, controls and scores.

No phrase is stronger than its evidence. "τ-agonist" is a point estimate that reaches τ; a unit whose upper
bound alone does is "not ruled out"; both are "localized". A percentage comes with its counts.
"""

from __future__ import annotations

from mecharule_ops.findings.controls import verdict
from mecharule_ops.findings.records import Findings, SearchAudit, SearchOutcome
from mecharule_ops.report.document import k_of_n, plural, two_decimals
from mecharule_ops.types import Agonist, FlipEstimate, Regime, RuleScore

NO_CONTROL = "no control run"


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


def stronger_slice(estimate: FlipEstimate) -> str:
    """The slice that gives the strength, with its counts: `50/64 (78 %) of D+`."""
    plus, minus = estimate.associated, estimate.unrelated
    on_plus = minus.n == 0 or plus.flip_rate >= minus.flip_rate
    return f"{k_of_n(plus)} of D+" if on_plus else f"{k_of_n(minus)} of D-"


def both_slices(estimate: FlipEstimate) -> str:
    """`50/64 (78 %) of D+ and 8/64 (12 %) of D-`."""
    return f"{k_of_n(estimate.associated)} of D+ and {k_of_n(estimate.unrelated)} of D-"


def by_strength(agonists: tuple[Agonist, ...]) -> list[Agonist]:
    """Strongest first; on a tie in the order of their names."""
    return sorted(agonists, key=lambda agonist: (-agonist.estimate.strength, agonist.neuron))


def control_word(findings: Findings, outcome: SearchOutcome, agonist: Agonist) -> str:
    """The controls' verdict, or `no control run`."""
    controls = outcome.controls_of(agonist.neuron)
    if controls is None or controls.random is None:
        return NO_CONTROL
    return verdict(agonist.estimate, controls, findings.tau, findings.epsilon, findings.alpha).value


def is_small(score: RuleScore) -> bool:
    """True when n < 30 or either outcome has fewer than 5 records: an MCC there is unstable."""
    return score.n < 30 or min(score.positives, score.n - score.positives) < 5


def rule_note(score: RuleScore) -> str:
    """A rule score as printed: `0.78 (n 412, 96 flips)`, with † on a small sample."""
    mark = " †" if is_small(score) else ""
    return f"{two_decimals(score.mcc)} (n {score.n:,}, {plural(score.positives, 'flip')}){mark}"


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

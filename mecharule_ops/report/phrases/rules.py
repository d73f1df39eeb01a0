"""When a unit flips the behaviour, in one line under the unit: a rule only where held-out records bear it out.

A weak unit's learned rule is a long disjunction fitted to few flips. It is printed for a τ-agonist, or where
its held-out MCC is .50 or more; called a rule only from the floor of high quality on (paper, §4.5).
"""

from __future__ import annotations

from collections.abc import Sequence

from mecharule_ops.findings.records import Findings, SearchOutcome
from mecharule_ops.report.document import k_of_n, percent, plural, two_decimals
from mecharule_ops.types import Agonist, AnchoredRule, FlipCount, RuleScore

WORTH_PRINTING = 0.50
"""Held-out MCC from which the rule of a unit that is no τ-agonist is printed."""
LONGEST_WEAK_RULE = 200
"""Characters of a rule below the floor of high quality that are printed."""


def is_small(score: RuleScore) -> bool:
    """True when n < 30 or either outcome has fewer than 5 records: an MCC there is unstable."""
    return score.n < 30 or min(score.positives, score.n - score.positives) < 5


def rule_note(score: RuleScore) -> str:
    """A rule score as printed: `0.78 (n 412, 96 flips)`, with † on a small sample."""
    mark = " †" if is_small(score) else ""
    return f"{two_decimals(score.mcc)} (n {score.n:,}, {plural(score.positives, 'flip')}){mark}"


def is_told(outcome: SearchOutcome, agonist: Agonist) -> bool:
    """True when the unit has a line on its rule; the others are counted together."""
    rule = outcome.rule_of(agonist.neuron)
    held = rule.held_out if rule else None
    return agonist.is_tau_agonist or (held is not None and held.mcc >= WORTH_PRINTING)


def rule_line(findings: Findings, outcome: SearchOutcome, agonist: Agonist) -> str:
    """What is known of when ablating this unit flips a record."""
    rule = outcome.rule_of(agonist.neuron)
    if rule is None:
        return "Rule: not anchored in this run."
    if rule.rule is None:
        flips = k_of_n(FlipCount(flips=rule.flips, n=rule.eligible))
        return f"No rule: no clause was found for the {flips} records that it flips."
    if rule.held_out is None:
        return f"No rule: there were no held-out records to score {clipped(rule.rule, findings.run)}"
    if rule.held_out.mcc < findings.mcc_floor:
        return (
            f"No rule: the best one learned reaches only {rule_note(rule.held_out)} on held-out records: "
            f"{clipped(rule.rule, findings.run)}"
        )
    return f"Rule: {rule.rule} – {_quality(findings, rule, rule.held_out)}."


def clipped(rule: str, run: str) -> str:
    """The rule, or its beginning with a sign that more follows and the command that shows it."""
    if len(rule) <= LONGEST_WEAK_RULE:
        return rule
    kept = rule[:LONGEST_WEAK_RULE].rsplit(" ", 1)[0]
    return f"{kept} … (`mecharule rules {run}`)"


def untold_sentence(outcome: SearchOutcome, agonists: Sequence[Agonist]) -> str:
    """One line on the rules of those units that have no line of their own; empty when there are none."""
    untold = [agonist for agonist in agonists if not is_told(outcome, agonist)]
    if not untold:
        return ""
    other = "other " if len(untold) < len(agonists) else ""
    missing = sum(outcome.rule_of(agonist.neuron) is None for agonist in untold)
    some = "" if missing == len(untold) else f"{missing} of them "
    skipped = f" ({some}not anchored in this run)" if missing else ""
    return (
        f"{plural(len(untold), f'{other}unit')} not ruled out: no rule reaches MCC ≥ {WORTH_PRINTING:.2f} on held-out "
        f"records{skipped}."
    )


def _quality(findings: Findings, rule: AnchoredRule, held: RuleScore) -> str:
    reads = "reads the prompt only" if rule.prompt_only else "reads the output too"
    floor = "" if findings.is_hq_t(rule) else f", under the floor of {percent(findings.coverage_floor)}"
    return f"held-out MCC {rule_note(held)}, fires on {percent(held.coverage)} of {held.n:,}{floor}; {reads}"

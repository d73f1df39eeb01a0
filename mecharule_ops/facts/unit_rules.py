"""The one rule that is told of a unit, and which of all its rules are shown, in words."""

from __future__ import annotations

from mecharule_ops.facts.control_facts import p_words
from mecharule_ops.facts.flips_where import counted_when, not_shown_words
from mecharule_ops.facts.rules import rule_words, short
from mecharule_ops.findings.accounts import Account
from mecharule_ops.findings.records import Findings
from mecharule_ops.numbers import plural
from mecharule_ops.rules.families import Family, UnitRule


def told_rule(account: Account | None, anchored: UnitRule | None) -> UnitRule | None:
    """The one rule that is told of a unit, everywhere: its account's over the prompt, the anchored one without account.

    None where neither was sought. The others stand in the tables that `show --table rules` and `explain` print.
    """
    return anchored if account is None else account.family(Family.INPUT)


def when_told(account: Account | None, anchored: UnitRule | None, run: str) -> str:
    """When a unit flips, for who has ten seconds: the words of that rule with counts; else as `rule_words`.

    Of a rule that is not shown too, where it is short: what it comes to says why it is not.
    """
    rule = told_rule(account, anchored)
    if counted := counted_when(rule) or not_shown_words(rule):
        return counted
    said = rule_words(rule, run)
    return said if rule is not None and rule.shown else said[:1].upper() + said[1:]


def shown_words(rule: UnitRule) -> str:
    """Whether a rule is shown and why: `yes, p = .004`, `no, p = .08`, `no, its interval reaches 0`; `–` without one.

    The p is that of Fisher's exact test on held-out records, corrected over all learned rules of the run (Holm).
    """
    if rule.rule is None:
        return "–"
    return f"yes, {_tested(rule)}" if rule.shown else f"no, {why_not_shown(rule)}"


def why_not_shown(rule: UnitRule) -> str:
    """`p = .08`, `its interval reaches 0` or `too few held out` of a learned rule that is not shown."""
    if (interval := rule.interval) is None:
        return "too few held out"
    return _tested(rule) if interval.above_chance else "its interval reaches 0"


def _tested(rule: UnitRule) -> str:
    adjusted = None if rule.chance is None else rule.chance.adjusted
    return "not corrected" if adjusted is None else p_words(adjusted)


def shown_of_all(findings: Findings) -> str:
    """`2 of 24 learned rules are shown (corrected for 24, α = .05)`; empty without a rule that was tested so."""
    rules = [rule for outcome in findings.searches for rule in outcome.rules]
    tests = [rule.chance for rule in rules if rule.chance is not None and rule.chance.adjusted is not None]
    if not tests:
        return ""
    shown = sum(rule.shown for rule in rules)
    are = "is" if 1 in (shown, len(rules)) else "are"
    over = " to ".join(map(str, sorted({test.rules for test in tests})))  # Those learned later are more.
    over = f"corrected for {over}, α = {short(tests[0].level)}"
    return f"{shown} of {plural(len(rules), 'learned rule')} {are} shown ({over})"

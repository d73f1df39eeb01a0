"""Every rule of a unit as one kind of value, whichever way it was learned: what all tables of rules lay out."""

from __future__ import annotations

from dataclasses import dataclass

from mecharule_ops.facts.control_facts import p_words
from mecharule_ops.facts.flips_where import counted_when, not_shown_words
from mecharule_ops.facts.rules import anchored_words, family_words, predicts, short
from mecharule_ops.findings.accounts import Account
from mecharule_ops.findings.records import Findings, SearchOutcome, Unit
from mecharule_ops.numbers import plural
from mecharule_ops.rules.algebra import Rule
from mecharule_ops.rules.families import AnchoredRule, Family, FamilyRule
from mecharule_ops.rules.interval import MccInterval, interval_of
from mecharule_ops.types import ChanceTest, FlipsWhere, Neuron

ANCHORED = "anchored"
"""In place of a family: the paper's rule (§4.5), which has no free-form trees beside it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitRule:
    """When one unit flips, by one family of rules."""

    neuron: Neuron
    family: str
    learned: Rule | None = None
    """What train chose, whether or not it is shown."""
    words: str = ""
    """The same in the words of the task; empty in runs that did not keep it."""
    where: FlipsWhere | None = None
    """Held-out flips where it holds and elsewhere; None where a run did not keep it."""
    absent: str = ""
    """What is said where none was learned."""
    shown: bool = False
    held_out: MccInterval | None = None
    """Of what train chose; None without one or on too few records."""
    chance: ChanceTest | None = None
    trees: MccInterval | None = None
    """Of trees of any form over the same columns, on the same records."""
    prompt_only: bool = False
    """Whether it can be checked before the model answers."""
    checked: str = ""
    """When it can be checked; empty without a rule."""
    anchored: AnchoredRule | None = None
    """The paper's rule with its scores; None for any other."""

    @property
    def unscored(self) -> bool:
        """Whether one was learned and too few held-out records flip, or do not, for an interval of its score."""
        return self.learned is not None and self.held_out is None


def unit_rule(neuron: Neuron, rule: AnchoredRule | FamilyRule) -> UnitRule:
    """The rule as every table lists it."""
    if isinstance(rule, AnchoredRule):
        scored = None if rule.rule is None or rule.held_out is None else interval_of(rule.held_out)
        checked = "before the model answers" if rule.prompt_only else "after the answer"
        return UnitRule(
            neuron=neuron,
            family=ANCHORED,
            learned=rule.rule,
            words=rule.words,
            where=rule.where,
            absent="none learned",
            shown=predicts(rule) is not None,
            held_out=scored,
            chance=rule.chance,
            prompt_only=rule.prompt_only,
            checked=checked if rule.rule else "",
            anchored=rule,
        )
    before = rule.prompt_only and rule.family is Family.INPUT
    late = rule.family is Family.INPUT and not before
    return UnitRule(
        neuron=neuron,
        family=rule.family.value,
        learned=rule.learned,
        words=rule.words,
        shown=rule.rule is not None,
        held_out=rule.held_out,
        chance=rule.chance,
        absent=f"none: {rule.status.value}",
        trees=rule.free_form,
        where=rule.where,
        prompt_only=before,
        checked="" if rule.learned is None else "after the answer" if late else rule.family.gates,
    )


def told_rule(account: Account | None, anchored: AnchoredRule | None) -> UnitRule | None:
    """The one rule that is told of a unit, everywhere: its account's over the prompt, the anchored one without account.

    None where neither was sought. The others stand in the tables that `show --table rules` and `explain` print.
    """
    if account is not None:
        return unit_rule(account.neuron, account.family(Family.INPUT))
    return None if anchored is None else unit_rule(anchored.neuron, anchored)


def when_told(account: Account | None, anchored: AnchoredRule | None, run: str) -> str:
    """When a unit flips, for who has ten seconds: the words of that rule with counts; else as `told_words`.

    Of a rule that is not shown too, where it is short: what it comes to says why it is not.
    """
    rule = anchored if account is None else account.family(Family.INPUT)
    if counted := counted_when(rule) or not_shown_words(rule):
        return counted
    said, told = told_words(account, anchored, run), told_rule(account, anchored)
    return said if told is not None and told.shown else said[:1].upper() + said[1:]


def told_words(account: Account | None, anchored: AnchoredRule | None, run: str) -> str:
    """That rule in a sentence with its score, or why there is none."""
    return anchored_words(anchored, run) if account is None else family_words(account.family(Family.INPUT))


def rules_of(unit: Unit) -> list[UnitRule]:
    """The families of its account, then the anchored rule where one was sought."""
    rules = [] if unit.account is None else _of_account(unit.account)
    return rules if unit.rule is None else [*rules, unit_rule(unit.neuron, unit.rule)]


def learned_rules(outcome: SearchOutcome) -> list[UnitRule]:
    """Every rule that was learned for a unit of a search, shown or not."""
    rules = [unit_rule(rule.neuron, rule) for rule in outcome.anchored]
    for account in outcome.accounts:
        rules += _of_account(account)
    return [rule for rule in rules if rule.learned]


def _of_account(account: Account) -> list[UnitRule]:
    return [unit_rule(account.neuron, rule) for rule in account.families]


def shown_words(rule: UnitRule) -> str:
    """Whether a rule is shown and why: `yes, p = .004`, `no, p = .08`, `no, its interval reaches 0`; `–` without one.

    The p is that of Fisher's exact test on held-out records, corrected over all learned rules of the run (Holm).
    """
    if rule.learned is None:
        return "–"
    return f"yes, {_tested(rule)}" if rule.shown else f"no, {why_not_shown(rule)}"


def why_not_shown(rule: UnitRule) -> str:
    """`p = .08`, `its interval reaches 0` or `too few held out` of a learned rule that is not shown."""
    if rule.held_out is None:
        return "too few held out"
    return _tested(rule) if rule.held_out.above_chance else "its interval reaches 0"


def _tested(rule: UnitRule) -> str:
    adjusted = None if rule.chance is None else rule.chance.adjusted
    return "not corrected" if adjusted is None else p_words(adjusted)


def shown_of_all(findings: Findings) -> str:
    """`2 of 24 learned rules are shown (corrected for 24, α = .05)`; empty without a rule that was tested so."""
    rules = [rule for outcome in findings.searches for rule in learned_rules(outcome)]
    tests = [rule.chance for rule in rules if rule.chance is not None and rule.chance.adjusted is not None]
    if not tests:
        return ""
    shown = sum(rule.shown for rule in rules)
    are = "is" if 1 in (shown, len(rules)) else "are"
    over = " to ".join(map(str, sorted({test.rules for test in tests})))  # Those learned later are more.
    over = f"corrected for {over}, α = {short(tests[0].level)}"
    return f"{shown} of {plural(len(rules), 'learned rule')} {are} shown ({over})"

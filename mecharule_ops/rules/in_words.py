"""A rule in the words of its task, simplified by what the task makes impossible."""

from __future__ import annotations

from dataclasses import replace

from mecharule_ops.rules.algebra import Rule
from mecharule_ops.rules.families import UnitRule
from mecharule_ops.rules.simplified import simplified
from mecharule_ops.tasks.base import Task
from mecharule_ops.tasks.phrases import Speaker, clause_phrases

EVERYWHERE, NOWHERE = "always: the task has no other input", "never: the task has no such input"


def rule_in_words(rule: Rule, task: Task) -> str:
    """`the right answer is negative, or b's units digit is 1 and …`: the shortest clause first.

    In a clause what is comes before what is not; a comma stands before each `or` between clauses. A literal without
    words stands as syntax, in backticks. Equal to the rule on every input of the task, as `simplified` says; columns
    are taken to hold no NaN. Cost: no model call.
    """
    plain, speaker = simplified(rule, task.domain), Speaker(task.wording, task.domain.ranges)
    if isinstance(plain, bool):
        return EVERYWHERE if plain else NOWHERE
    clauses = sorted(plain.clauses, key=lambda clause: len(clause.conditions))
    said = (
        clause_phrases([(one.predicate, one.value) for one in clause.conditions], speaker)
        for clause in clauses
    )
    return ", or ".join(" and ".join(phrase.text for phrase in phrases) for phrases in said)


def with_words(rule: UnitRule, task: Task) -> UnitRule:
    """The unit's rule with its words, as it is stored: no room above needs the task to say it."""
    return rule if rule.rule is None else replace(rule, words=rule_in_words(rule.rule, task))

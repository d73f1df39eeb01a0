"""A rule in the words of its task, simplified by what the task makes impossible; the syntax stands behind it."""

from __future__ import annotations

from mecharule_ops.predicates.atoms import Literal
from mecharule_ops.rules.algebra import Rule
from mecharule_ops.rules.simplified import simplified
from mecharule_ops.tasks.column_words import Domain, Wording, domain_of, wording_of
from mecharule_ops.tasks.phrases import clause_phrases

EVERYWHERE, NOWHERE = "always: the task has no other input", "never: the task has no such input"


def rule_in_words(text: str, task: object) -> str:
    """`the right answer is negative, or b's units digit is 1 and …`: the shortest clause first.

    In a clause what is comes before what is not; a comma stands before each `or` between clauses. A literal without
    words stands as syntax, in backticks. Equal to the rule on every input of the task, as `simplified` says; columns
    are taken to hold no NaN. Cost: no model call. Raises `UsageError` on what is no rule.
    """
    wording, domain = wording_of(task), domain_of(task)
    rule = simplified(Rule.parse(text), domain)
    if isinstance(rule, bool):
        return EVERYWHERE if rule else NOWHERE
    clauses = sorted(rule.clauses, key=lambda clause: len(clause.conditions))
    return ", or ".join(
        _clause([(one.predicate, one.value) for one in clause.conditions], wording, domain)
        for clause in clauses
    )


def _clause(literals: list[Literal], wording: Wording, domain: Domain) -> str:
    return " and ".join(phrase.text for phrase in clause_phrases(literals, wording, domain.ranges))

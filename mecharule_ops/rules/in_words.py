"""A rule in the words of its task, simplified by what the task makes impossible, and such words read back."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from mecharule_ops.errors import UsageError
from mecharule_ops.rules.algebra import Rule
from mecharule_ops.rules.families import UnitRule
from mecharule_ops.rules.simplified import simplified
from mecharule_ops.tasks.base import Task
from mecharule_ops.tasks.phrases import Speaker, clause_phrases

EVERYWHERE, NOWHERE = "always: the task has no other input", "never: the task has no such input"
_NUMBER = re.compile(r"-?\d+")


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


def rule_from_words(text: str, predicates: Sequence[str], task: Task) -> str | None:
    """The rule whose words these are, of the predicates, their contraries and both with other numbers.

    None where it is none of them: nothing is guessed, what is given has exactly these words. Parts joined by `and` are
    read one by one. Cost: no model call.
    """
    whole = _one(text, predicates, task)
    if whole is not None or " and " not in text:
        return whole
    parts = [_one(part, predicates, task) for part in text.split(" and ")]
    return " and ".join(part for part in parts if part) if all(parts) else None


def _one(text: str, predicates: Sequence[str], task: Task) -> str | None:
    asked = _plain(text)
    form, numbers = _NUMBER.sub("#", asked), _NUMBER.findall(asked)
    for predicate in (form_of for one in predicates for form_of in (one, f"not ({one})")):
        said = _said(predicate, task)
        if said == asked:
            return predicate
        if _NUMBER.sub("#", said) == form:
            for other in _with_numbers(predicate, _NUMBER.findall(said), numbers):
                if _said(other, task) == asked:
                    return other
    return None


def _with_numbers(predicate: str, said: Sequence[str], asked: Sequence[str]) -> Iterator[str]:
    """The predicate with the one number that differs put in, at each place where it may stand."""
    changed = [(old, new) for old, new in zip(said, asked, strict=True) if old != new]
    if len(changed) != 1:
        return
    old, new = changed[0]
    for found in _NUMBER.finditer(predicate):
        if found.group() == old:
            yield predicate[: found.start()] + new + predicate[found.end() :]


def _said(predicate: str, task: Task) -> str:
    try:
        return _plain(rule_in_words(Rule.parse(predicate), task))
    except UsageError:
        return ""


def _plain(text: str) -> str:
    """In small letters, with straight quotes and single spaces, without `the`; `the answer` alone is the right one."""
    straight = text.lower().replace("’", "'").replace("right answer", "answer")
    return " ".join(word for word in straight.split() if word != "the")

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
from mecharule_ops.tasks.column_words import column_words
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
    """The rule whose words these are, of the predicates, their contraries and both with another number.

    None where it is none of them: nothing is guessed, what is given has exactly these words. What `and` joins is read
    part by part where the whole is none of them. Cost: no model call.
    """
    forms: dict[str, list[tuple[str, list[str]]]] = {}
    for form in (form for one in dict.fromkeys(predicates) for form in (one, f"not ({one})")):
        words = _said(form, task)
        forms.setdefault(_NUMBER.sub("#", words), []).append((form, _NUMBER.findall(words)))

    def one(asked: str) -> str | None:
        numbers = _NUMBER.findall(asked)
        for form, own in forms.get(_NUMBER.sub("#", asked), ()):
            for known in (form, *_with_numbers(form, own, numbers)):
                if _said(known, task) == asked:
                    return known
        return None

    def read(parts: Sequence[str]) -> str | None:
        for count in range(len(parts), 0, -1):
            first = one(" and ".join(parts[:count]))
            rest = read(parts[count:]) if first and parts[count:] else ""
            if first and rest is not None:
                return f"{first} and {rest}" if rest else first
        return None

    return read(_plain(text).split(" and "))


def column_from_words(text: str, columns: Sequence[str], task: Task) -> str:
    """The column that these words stand for; the text itself where it is a column's name, or no column's words."""
    words = {name: column_words(task.wording, name) for name in columns}
    nouns = {_plain(each.noun): name for name, each in words.items() if each and not each.unit}
    return text if text in words else nouns.get(_plain(text), text)


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

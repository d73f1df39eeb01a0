"""A condition as a person writes it: a predicate, a word such as carry, or the words in which rules are said."""

from __future__ import annotations

from contextlib import suppress

from mecharule_ops.errors import UsageError
from mecharule_ops.facts.properties import PROPERTIES
from mecharule_ops.questions.own_words import worded_conditions
from mecharule_ops.rules.algebra import Rule
from mecharule_ops.rules.in_words import rule_from_words
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.tabulating import fires


def condition_of(run: Run, text: str) -> str:
    """The rule that it stands for, as rules print; a column of one's own table before a word. Raises `UsageError`."""
    for tried in (text, *(known.predicate for known in [PROPERTIES.get(text)] if known)):
        with suppress(UsageError):
            fires(run, tried)
            return str(Rule.parse(tried))
    text = rule_from_words(text, worded_conditions(run), run.task) or text
    fires(run, text)
    return str(Rule.parse(text))

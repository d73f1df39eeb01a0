"""A condition as a person writes it: a predicate, a word such as carry, or the words in which rules are said."""

from __future__ import annotations

from mecharule_ops.errors import UsageError
from mecharule_ops.rules.algebra import Rule
from mecharule_ops.rules.from_words import rule_from_words
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.tabulating import fires
from mecharule_ops.saying.properties import PROPERTIES
from mecharule_ops.tasks.rival_families import families_of


def condition_of(run: Run, text: str) -> str:
    """The rule that it stands for, as rules print. Raises `UsageError`."""
    known = PROPERTIES.get(text)
    if known is not None:
        text = known.predicate
    try:
        fires(run, text)
    except UsageError:
        families = families_of(run.task, run.columns)
        read = rule_from_words(text, [one for family in families for one in family.predicates], run.task)
        if read is None:
            raise
        text = read
    return str(Rule.parse(text))

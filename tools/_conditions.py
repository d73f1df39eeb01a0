"""A condition as a person writes it: a predicate, a word such as carry, or the words in which rules are said."""

from __future__ import annotations

from contextlib import suppress
from itertools import combinations

import numpy as np
from jaxtyping import Int

from mecharule_ops.errors import UsageError
from mecharule_ops.facts.properties import PROPERTIES
from mecharule_ops.rules.algebra import Rule
from mecharule_ops.rules.in_words import rule_from_words
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.tabulating import Part, drawn, few_valued, fires
from mecharule_ops.types import Regime


def condition_of(run: Run, text: str) -> str:
    """The rule that it stands for, as rules print; a column of one's own table before a word. Raises `UsageError`."""
    for tried in (text, *(known.predicate for known in [PROPERTIES.get(text)] if known)):
        with suppress(UsageError):
            fires(run, tried)
            return str(Rule.parse(tried))
    text = rule_from_words(text, _worded(run), run.task) or text
    fires(run, text)
    return str(Rule.parse(text))


def records_among(run: Run, regime: Regime, part: Part, where: str | None) -> Int[np.ndarray, " record"]:
    """The records of a part that start from the regime's outcome, those where a condition holds if one is given."""
    positions = drawn(run, regime, part)
    return positions if where is None else positions[fires(run, condition_of(run, where))[positions]]


def _worded(run: Run) -> list[str]:
    """Predicates that are known by their words: the task's own, single values, equal columns, the prompt's length."""
    few = few_valued(run)
    return [
        *run.task.account_predicates(),
        *(f"{name} == {value!r}" for name, values in few.items() for value in values),
        *(f"{x} == {y}" for x, y in combinations(few, 2) if type(few[x][0]) is type(few[y][0])),
        *(["length(prompt) >= 2"] if "prompt" in run.columns else []),
    ]

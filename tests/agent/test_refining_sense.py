"""A hypothesis whose words and condition differ, or that copies the printed rule, is not tested."""

from __future__ import annotations

import pytest
from test_refining import _case

from agent.refining.sense import checked
from mecharule_ops.predicates.language import parse_predicate, schema_of
from mecharule_ops.predicates.type_check import PredicateRefused

CASE = _case()


def _check(statement: str, condition: str) -> None:
    checked(CASE, statement, parse_predicate(condition, schema_of(CASE.columns)))


@pytest.mark.parametrize(
    ("statement", "condition"),
    [
        ("It flips where b is at least 5.", "a >= 5"),
        ("It flips where a > 5.", "b >= 5"),
        ("It flips where a's units digit is large.", "digit(b, 0) >= 5"),
    ],
)
def test_words_about_other_columns_are_refused(statement: str, condition: str) -> None:
    """The reason names the columns of both."""
    with pytest.raises(PredicateRefused, match="say both of the same columns"):
        _check(statement, condition)


@pytest.mark.parametrize(
    ("statement", "condition"),
    [
        ("It flips where a carry leaves the units.", "carry_at(a, b, 0)"),
        ("It flips where a is greater than b.", "a > b + 20"),
        ("It flips where b ends on a digit above 4.", "digit(b, 0) >= 5"),
        ("It flips where the prompt is long.", "a >= 10"),
    ],
)
def test_words_about_the_same_columns_or_none_pass(statement: str, condition: str) -> None:
    """An article is no column, and neither is the word for a prompt."""
    _check(statement, condition)


@pytest.mark.parametrize("condition", ["a > b", "b < a", "not (a <= b)", "a - b >= 1"])
def test_a_copy_of_the_printed_rule_is_known(condition: str) -> None:
    """However it is spelt: it holds on the same train records."""
    with pytest.raises(PredicateRefused, match="known: it holds where the unit's rule does, a > b"):
        _check("It flips there.", condition)

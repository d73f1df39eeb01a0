"""What a model in a file is held to: whatever fits the expression parses, and what a person would write fits it."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.proposing.typed_grammar import predicate_pattern
from mecharule_ops.predicates.language import parse_predicate, schema_of
from mecharule_ops.predicates.type_check import PredicateRefused

COLUMNS = {
    "a": np.array([3, 120, 7]),
    "b": np.array([5, -2, 9]),
    "op": np.array(["+", "-", "+"]),
    "share": np.array([0.5, 1.5, 2.0]),
    "even": np.array([True, False, True]),
    "prompt": np.array([f"{'word ' * 5}{place}" for place in range(3)]),
}
SCHEMA = schema_of(COLUMNS)
PATTERN = predicate_pattern(COLUMNS, SCHEMA, frozenset(COLUMNS))


@given(st.from_regex(PATTERN.removesuffix("$") + r"\Z"))
@settings(max_examples=200, deadline=None)
def test_whatever_fits_is_a_predicate(text: str) -> None:
    """By construction: columns, types and arguments are right."""
    assert parse_predicate(text, SCHEMA).text


@pytest.mark.parametrize(
    "text",
    [
        "a >= 100",
        "b == -2",
        "a < b",
        "carry_at(a, b, 0)",
        "op == '+' and digit(a, 1) >= 5",
        "even",
        "contains(prompt, 'word')",
        "a % 10 == 3",
    ],
)
def test_what_is_meant_fits(text: str) -> None:
    """The forms that rules are made of."""
    assert re.fullmatch(PATTERN, text)


@pytest.mark.parametrize(
    "text", ["", "c > 3", "op >= 3", "a >= 'x'", "op == '*'", "a >= 1 and", "import os", "a > 12345"]
)
def test_what_would_be_refused_does_not_fit(text: str) -> None:
    """Another column, another type, a value that does not occur, no predicate."""
    assert not re.fullmatch(PATTERN, text)


def test_columns_read_off_the_output_are_left_out() -> None:
    """They would restate the label."""
    pattern = predicate_pattern(COLUMNS, SCHEMA, frozenset({"a"}))
    assert re.fullmatch(pattern, "a >= 3")
    assert not re.fullmatch(pattern, "b >= 3")
    with pytest.raises(PredicateRefused):
        parse_predicate("nosuch >= 3", SCHEMA)

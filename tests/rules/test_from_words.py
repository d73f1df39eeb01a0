"""Conditions read back from their words: exactly what is said, with other numbers too, and nothing guessed."""

from __future__ import annotations

import pytest

from mecharule_ops.rules.algebra import Rule
from mecharule_ops.rules.in_words import rule_from_words, rule_in_words
from mecharule_ops.tasks.arithmetic import Arithmetic

TASK = Arithmetic(operators=("+", "-"), high=999)
KNOWN = TASK.account_predicates()


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("the answer's units digit is 1", "digit(expected, 0) == 1"),
        ("The answer’s  units digit is not 1", "not (digit(expected, 0) == 1)"),
        ("b's tens digit is 7 or more", "digit(b, 1) >= 7"),
        ("the answer is 57 or more", "expected >= 57"),
        ("it is a subtraction and a is 57 or more", "op == '-' and a >= 57"),
        ("the moon is full", None),
        ("the answer's units digit is 1 and the moon is full", None),
    ],
)
def test_words_are_read_back(text: str, rule: str | None) -> None:
    assert rule_from_words(text, KNOWN, TASK) == rule


def test_every_predicate_is_read_back_from_its_own_words() -> None:
    """What is read has the same words; two predicates of one meaning may be one."""
    for text in KNOWN[::7]:
        said = rule_in_words(Rule.parse(text), TASK)
        if not said.startswith(("always", "never")):
            read = rule_from_words(said, KNOWN, TASK)
            assert read is not None
            assert rule_in_words(Rule.parse(read), TASK) == said

"""Proposed gates: read in the closed language, judged on the find records by counting, and refused with a reason."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from mecharule_ops.repair.learning import GateSettings
from mecharule_ops.repair.proposing import Sheet, judged
from mecharule_ops.rules.algebra import Rule
from mecharule_ops.types import Neuron


def sheet(records: int = 400, seed: int = 0) -> Sheet:
    """Ablation fixes where `a > 5` and the operator is minus, breaks a few elsewhere."""
    generator = np.random.default_rng(seed)
    a, op = generator.integers(0, 10, records), np.array(["+", "-"])[generator.integers(0, 2, records)]
    inside = (a > 5) & (op == "-")
    value = np.where(inside, 1, np.where(generator.random(records) < 0.1, -1, 0))
    return Sheet(
        unit=Neuron.parse("m1.3"),
        columns={"a": a, "op": op},
        before_answer=frozenset({"a", "op"}),
        value=value,
        learned=Rule.parse("a == 9 and op == '-'").clauses,
        settings=GateSettings(max_literals=2, harm=3.0, least_fixed=4),
    )


def test_what_may_compete_is_what_counting_says() -> None:
    """Over every pair of literals, record by record: enough fixed, more than three for each broken, nothing known."""
    given = sheet()
    atoms = ["a > 5", "not (a > 5)", "a < 3", "op == '-'", "not (op == '-')"]
    texts = [f"{left} and {right}" for left, right in product(atoms[:3], atoms[3:])]
    allowed = []
    for text in texts:
        left, right = text.split(" and ")
        rows = [
            value
            for a, op, value in zip(given.columns["a"], given.columns["op"], given.value, strict=True)
            if {"a > 5": a > 5, "not (a > 5)": a <= 5, "a < 3": a < 3}[left]
            and (op == "-") == (right == "op == '-'")
        ]
        allowed.append(rows.count(1) >= 4 and rows.count(1) > 3 * rows.count(-1))
    found = judged(given, texts)
    assert [bool(one.clauses) for one in found] == allowed
    assert any(allowed)
    assert not all(allowed)
    assert all(one.read and bool(one.reason) != bool(one.clauses) for one in found)


@pytest.mark.parametrize(
    ("text", "read", "reason"),
    [
        ("import os", False, "expected a rule"),
        ("__import__('os').system('x')", False, "expected"),
        ("zzz > 1", False, "zzz"),
        ("expected == '7'", False, "expected"),
        ("a > 5 and not (a > 5)", False, "cannot hold both"),
        ("a > 5 and op == '-' and a < 9", True, "3 conditions, at most 2"),
        ("op == '-' and a >= 9", True, "known already"),
        ("op == '+'", True, "it fixes 0 and breaks"),
        ("", False, "expected a rule"),
    ],
)
def test_a_refusal_names_its_reason(text: str, read: bool, reason: str) -> None:
    """In one line; a text that is no rule is not counted as read."""
    (found,) = judged(sheet(), [text])
    assert (found.clauses, found.read) == ((), read)
    assert reason in found.reason
    assert "\n" not in found.reason


def test_clauses_are_kept_once_and_as_the_language_prints_them() -> None:
    """Of a rule the clauses that hold good; a second text that holds in the same places is known already."""
    first, second = judged(sheet(), ["(op=='-' and a>5) or (op == '+' and a > 2)", "a >= 6 and op == '-'"])
    assert [str(clause) for clause in first.clauses] == ["a > 5 and op == '-'"]
    assert (second.clauses, second.read) == ((), True)


def test_a_gate_needs_more_fixed_than_its_harm() -> None:
    """The same clause with the same counts is refused once a broken answer weighs more."""
    given = sheet()
    text = ["op == '-'"]
    fixed, broken = given.changed(given.columns["op"] == "-")
    assert broken > 0
    ratio = fixed / broken
    for harm, kept in ((ratio * 0.99, True), (ratio * 1.01, False)):
        settings = replace(given.settings, harm=harm)
        assert bool(judged(replace(given, settings=settings), text)[0].clauses) is kept

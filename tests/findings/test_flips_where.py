"""A rule with its words and its counts: made from stored flips, kept, read back, said."""

from dataclasses import replace

import numpy as np
import pytest
from findings_fixture import of_family
from hypothesis import given
from hypothesis import strategies as st

from mecharule_ops.facts.rules import rule_words, when_told, where_words
from mecharule_ops.rules import families, in_words
from mecharule_ops.tasks.arithmetic import Arithmetic
from mecharule_ops.types import ChanceTest, FlipCount, FlipsWhere

WHERE = FlipsWhere(holds=FlipCount(flips=84, n=98), elsewhere=FlipCount(flips=8, n=24))
BARE = of_family("carry_at(a, b, 0)", 0.5, 122, 92, where=WHERE)
SHOWN = in_words.with_words(BARE, Arithmetic())
CARRIES = "adding b to a carries into the tens"
COUNTS = "84 of 98, against 8 of 24 elsewhere, of 122 held-out answers"
OPEN = "whether another sample gives it again is open"
CHANCE = ChanceTest(p=0.01, adjusted=0.08, rules=24, level=0.05)


@given(st.lists(st.tuples(st.booleans(), st.booleans())))
def test_counts_are_those_of_a_loop(rows: list[tuple[bool, bool]]) -> None:
    """Each record counts on one side, as a flip or not."""
    fires, flips = (np.array([row[side] for row in rows], bool) for side in (0, 1))
    found = FlipsWhere.of(fires, flips)
    assert found.holds == FlipCount(flips=rows.count((True, True)), n=sum(row[0] for row in rows))
    assert found.elsewhere == FlipCount(flips=rows.count((False, True)), n=sum(not row[0] for row in rows))


def when(rule: families.UnitRule | None) -> str:
    """What is told of a unit without account whose anchored rule is this one."""
    return when_told(None, rule, "m1.7", "b00d")


def test_a_rule_is_said_with_its_counts() -> None:
    """Words first, then how often where it holds and elsewhere, and the score; without words its syntax."""
    assert where_words(WHERE) == "84 of 98, against 8 of 24"
    assert when(SHOWN) == f"Mostly when {CARRIES}: {COUNTS}; {OPEN}"
    score = f"input rule, MCC {SHOWN.interval}; {OPEN}"
    assert rule_words(SHOWN, "b00d") == f"{CARRIES} (carry_at(a, b, 0)) – {score}"
    assert when(BARE) == rule_words(BARE, "b00d") == f"carry_at(a, b, 0) – {score}"
    assert when(None).startswith("Not asked in this run: `mecharule explain b00d m1.7")


def test_a_rule_that_is_not_shown_says_why_with_its_counts() -> None:
    """The interval that holds 0, the p after correction, or too few for an interval; what asks is said instead."""
    weak = replace(SHOWN, held_out=replace(SHOWN.held_out, mcc=0.05))
    chance = replace(SHOWN, chance=CHANCE)
    few = replace(chance, held_out=replace(SHOWN.held_out, positives=118))
    assert few.status is families.RuleStatus.TOO_FEW_HELD_OUT
    for rule, why in (
        (weak, f"is shown: the best one learned reaches MCC {weak.interval}"),
        (
            chance,
            f"is shown: the best one learned reaches MCC {SHOWN.interval}, p = .08 (corrected for 24 rules)",
        ),
        (few, f"can be scored: {few.status.value}"),
    ):
        assert rule_words(rule, "b00d") == f"no input rule {why}; {OPEN}"
        assert when(rule).startswith("No learned rule is shown; where it works most was not asked")


@pytest.mark.parametrize(
    ("held", "other", "begins"),
    [
        ((84, 98), (8, 24), "Mostly when"),
        ((30, 98), (2, 24), "More often when"),
        ((9, 10), (40, 90), "More often when"),
        ((1, 50), (20, 50), "Less often when"),
        ((3, 3), (0, 0), "Mostly when"),
    ],
)
def test_mostly_is_said_of_most(held: tuple[int, int], other: tuple[int, int], begins: str) -> None:
    """Of more than half where it holds and of more than half of the flips; nothing is stronger than its counts."""
    where = FlipsWhere(
        holds=FlipCount(flips=held[0], n=held[1]), elsewhere=FlipCount(flips=other[0], n=other[1])
    )
    assert when(replace(SHOWN, where=where)).startswith(begins)

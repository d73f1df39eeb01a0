"""A rule with its words and its counts: made from stored flips, kept, read back, said; absent in older runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mecharule_ops.codec import decode, encode
from mecharule_ops.facts.flips_where import counted_when, not_shown_words, when_words, where_words
from mecharule_ops.facts.rules import family_words
from mecharule_ops.findings.accounts import Account
from mecharule_ops.findings.worded import account_worded, anchored_worded
from mecharule_ops.rules.algebra import Rule
from mecharule_ops.rules.families import AnchoredRule, Family, FamilyRule, FamilyStatus
from mecharule_ops.rules.interval import MccInterval
from mecharule_ops.tasks.arithmetic import Arithmetic
from mecharule_ops.types import ChanceTest, FlipCount, FlipsWhere, Neuron, Regime, RuleScore

UNIT = Neuron.parse("m1.14")
WHERE = FlipsWhere(holds=FlipCount(flips=84, n=98), elsewhere=FlipCount(flips=8, n=24))
SHOWN = FamilyRule(
    family=Family.INPUT,
    status=FamilyStatus.SHOWN,
    columns=3,
    learned=Rule.parse("carry_at(a, b, 0)"),
    held_out=MccInterval(mcc=0.5, low=0.3, high=0.7, n=122, positives=92),
    where=WHERE,
    prompt_only=True,
)


def account(rule: FamilyRule) -> Account:
    """An account with one family."""
    return Account(
        neuron=UNIT, regime=Regime.BASELINE_POSITIVE, flips=92, records=122, held_out=122, families=(rule,)
    )


@given(st.lists(st.tuples(st.booleans(), st.booleans())))
def test_counts_are_those_of_a_loop(rows: list[tuple[bool, bool]]) -> None:
    """Each record counts on one side, as a flip or not."""
    fires, flips = (np.array([row[side] for row in rows], bool) for side in (0, 1))
    found = FlipsWhere.of(fires, flips)
    assert found.holds == FlipCount(flips=rows.count((True, True)), n=sum(row[0] for row in rows))
    assert found.elsewhere == FlipCount(flips=rows.count((False, True)), n=sum(not row[0] for row in rows))


def test_a_rule_is_said_with_its_counts() -> None:
    """Words first, then how often where it holds and elsewhere, and the score; without counts the score alone."""
    rule = account_worded(account(SHOWN), Arithmetic()).families[0]
    assert where_words(WHERE) == "84 of 98, against 8 of 24"
    assert when_words(rule) == "Mostly when adding b to a carries into the tens: 84 of 98, against 8 of 24"
    assert counted_when(rule) == f"{when_words(rule)} elsewhere, of 122 held-out answers (MCC .50)"
    assert counted_when(replace(rule, where=None)) == "Adding b to a carries into the tens (held-out MCC .50)"
    said = "adding b to a carries into the tens (carry_at(a, b, 0)) – input rule, MCC .50 [.30, .70]"
    assert family_words(rule) == said


def test_a_rule_that_is_not_shown_says_why_with_its_counts() -> None:
    """The interval that holds 0, the p after correction, or too few for an interval; nothing where one is shown."""
    rule = account_worded(account(SHOWN), Arithmetic()).families[0]
    assert not_shown_words(rule) == ""
    low = MccInterval(mcc=0.2, low=-0.03, high=0.42, n=122, positives=92)
    weak = replace(rule, status=FamilyStatus.NO_BETTER, held_out=low)
    counts = "84 of 98, against 8 of 24 elsewhere, of 122 held-out answers"
    begins = f"No short rule is shown. The best one learned, adding b to a carries into the tens: {counts}"
    assert not_shown_words(weak) == f"{begins}; its MCC, .20 [-.03, .42], may be 0"
    tested = ChanceTest(p=0.01, adjusted=0.08, rules=24, level=0.05)
    chance = replace(rule, status=FamilyStatus.NOT_APART, chance=tested)
    assert not_shown_words(chance) == f"{begins}; MCC .50 [.30, .70], p = .08, corrected for 24 rules"
    for missing in (replace(weak, where=None), replace(weak, words=""), replace(weak, words="x" * 200)):
        assert not_shown_words(missing) == ""
    few = replace(rule, status=FamilyStatus.TOO_FEW_HELD_OUT, held_out=None, chance=tested)
    begins = begins.replace("No short rule is shown", "Too few held-out answers to score a rule")
    assert not_shown_words(few) == begins
    assert not_shown_words(None) == ""


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
    rule = account_worded(account(replace(SHOWN, where=where)), Arithmetic()).families[0]
    assert when_words(rule).startswith(begins)


def test_what_a_run_did_not_keep_is_not_said() -> None:
    """Without counts, without words, and of a rule that is not shown."""
    stored = encode(account(SHOWN))
    del stored["families"][0]["where"], stored["families"][0]["words"]
    older = decode(Account, stored).families[0]
    assert (older.where, older.words) == (None, "")
    hidden = replace(SHOWN, status=FamilyStatus.NOT_APART, words="b is 0")
    for rule in (older, hidden, account_worded(account(older), Arithmetic()).families[0], None):
        assert when_words(rule) == ""
        assert "against" not in counted_when(rule)
    assert counted_when(older) == counted_when(hidden) == counted_when(None) == ""
    assert family_words(older).startswith("carry_at(a, b, 0) – input rule")


def test_an_anchored_rule_has_its_words_and_counts() -> None:
    """The paper's rule likewise; what it stored is read back equal."""
    score = RuleScore(mcc=0.6, coverage=0.8, n=122, positives=92)
    anchored = AnchoredRule(
        neuron=UNIT,
        regime=Regime.BASELINE_POSITIVE,
        rule=Rule.parse("b >= 50"),
        train=score,
        held_out=score,
        full_rule=None,
        full=None,
        prompt_only=True,
        flips=92,
        eligible=122,
        where=WHERE,
    )
    worded = anchored_worded(anchored, Arithmetic())
    assert decode(AnchoredRule, encode(worded)) == worded
    assert when_words(worded) == "Mostly when b is 50 or more: 84 of 98, against 8 of 24"

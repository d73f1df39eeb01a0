"""The rule of a unit over the prompt: free-form trees, statuses, held-out records that choose nothing."""

from dataclasses import replace

import numpy as np
import pytest

from mecharule_ops.predicates.cuts import evaluated
from mecharule_ops.rules import families, short_rules, unit_rules
from mecharule_ops.rules.unit_rules import Target, input_rule
from mecharule_ops.types import Neuron

RECORDS = 900
UNIT = Neuron.parse("m1.14")
TRAIN, TEST = np.arange(600), np.arange(600, RECORDS)
RNG = np.random.default_rng(0)
DIGIT = RNG.integers(0, 10, RECORDS)
FLIPS = RNG.gamma(2, 1, RECORDS) + 3 * (DIGIT == 7) > RNG.gamma(2, 2, RECORDS)
TABLE = evaluated([*(f"a == {digit}" for digit in range(10)), "a >= 5"], {"a": DIGIT})
TARGET = Target(flips=FLIPS, train=TRAIN, test=TEST)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("DEPTHS", (3,)), ("ROUNDS", (20, 40)), ("FOLDS", 3)):
        monkeypatch.setattr(unit_rules, name, value)
    monkeypatch.setattr(short_rules, "FOLDS", 3)


def test_the_rule_says_what_its_columns_can() -> None:
    """It names the digit, as halves of train do, the trees know no more; of permuted flips next to nothing is left."""
    rule = input_rule(UNIT, TARGET, TABLE, 0)
    assert (str(rule.rule), rule.status, rule.prompt_only) == ("a == 7", families.RuleStatus.SHOWN, True)
    assert rule.agreement == pytest.approx(1.0)
    assert abs(rule.free_form.mcc - rule.held_out.mcc) < 0.1
    assert abs(rule.permuted) < 0.15
    assert rule.told
    assert not replace(rule, agreement=0.4).told


def test_held_out_flips_choose_no_rule() -> None:
    """Inverting or shuffling them changes scores, and may hide a rule, but no text or train score."""
    turned, changed = FLIPS.copy(), FLIPS.copy()
    turned[TEST] = np.random.default_rng(1).permutation(~turned[TEST])
    before, after = (input_rule(UNIT, replace(TARGET, flips=flips), TABLE, 0) for flips in (FLIPS, turned))
    assert (before.rule, before.train, before.validated) == (after.rule, after.train, after.validated)
    assert after.status is families.RuleStatus.NO_BETTER
    changed[TRAIN] = np.random.default_rng(1).permutation(changed[TRAIN])
    assert input_rule(UNIT, replace(TARGET, flips=changed), TABLE, 0).rule != before.rule


def test_too_few_held_out_records_have_a_status_of_their_own() -> None:
    """What train does not allow is `readiness`' to say."""
    few = input_rule(UNIT, Target(flips=FLIPS, train=TRAIN, test=TEST[:12]), TABLE, 0)
    assert few.status is families.RuleStatus.TOO_FEW_HELD_OUT
    none = input_rule(UNIT, Target(flips=np.ones(RECORDS, bool), train=TRAIN, test=TEST), TABLE, 0)
    assert none.status is families.RuleStatus.CONSTANT

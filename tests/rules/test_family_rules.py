"""Family rules of a unit: cumulative columns, free-form trees, statuses, held-out records that choose nothing."""

from dataclasses import replace

import numpy as np
import pytest

from mecharule_ops.predicates.cuts import evaluated
from mecharule_ops.rules import short_rules, unit_rules
from mecharule_ops.rules.families import OF_AN_ACCOUNT, Family, RuleStatus
from mecharule_ops.rules.unit_rules import FamilyColumns, Target, account_rules
from mecharule_ops.types import Neuron

RECORDS = 900
UNIT = Neuron.parse("m1.14")
TRAIN, TEST = np.arange(600), np.arange(600, RECORDS)
RNG = np.random.default_rng(0)
DIGIT = RNG.integers(0, 10, RECORDS)
LEAD = RNG.gamma(2, 2, RECORDS)
DROP = RNG.gamma(2, 1, RECORDS) + 3 * (DIGIT == 7)
FLIPS = DROP > LEAD
COLUMNS = {"a": DIGIT, "answer": RNG.integers(0, 9, RECORDS)}
INPUT = FamilyColumns(predicates=evaluated([*(f"a == {digit}" for digit in range(10)), "a >= 5"], COLUMNS))
FAMILIES = {
    Family.INPUT: INPUT,
    Family.CLEAN_RUN: FamilyColumns(
        predicates=evaluated(["answer >= 4", "answer < 2"], COLUMNS),
        values={"least_lead": LEAD, "runner_up_1": RNG.choice(np.array(["1", "7"]), RECORDS)},
    ),
    Family.MECHANISM: FamilyColumns(values={"drop_1": DROP, "drop_minus_lead": DROP - LEAD}),
}
TARGET = Target(flips=FLIPS, train=TRAIN, test=TEST)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("DEPTHS", (3,)), ("ROUNDS", (20, 40)), ("FOLDS", 3)):
        monkeypatch.setattr(unit_rules, name, value)
    monkeypatch.setattr(short_rules, "FOLDS", 3)


def test_each_family_says_what_its_columns_can() -> None:
    """The input rule names the digit, the mechanism rule the excess; trees rise, and rules stay below them."""
    rules = account_rules(UNIT, TARGET, FAMILIES, 0)
    assert [rule.family for rule in rules] == list(OF_AN_ACCOUNT)
    assert [rule.status for rule in rules] == [RuleStatus.SHOWN] * 3
    by_input, clean, mechanism = rules
    assert str(by_input.rule) == "a == 7"
    assert by_input.prompt_only
    assert not clean.prompt_only
    assert str(mechanism.rule) == "drop_minus_lead >= 0"
    trees = [rule.free_form for rule in rules]
    assert all(score is not None for score in trees)
    assert trees[0].mcc < trees[1].mcc < trees[2].mcc  # type: ignore[union-attr]
    assert mechanism.held_out.mcc / trees[2].mcc == pytest.approx(1.0, abs=0.1)  # type: ignore[union-attr]


def test_held_out_flips_choose_no_rule() -> None:
    """Inverting or shuffling them changes scores, and may hide a rule, but no text or train score."""
    turned = FLIPS.copy()
    turned[TEST] = np.random.default_rng(1).permutation(~turned[TEST])
    before = account_rules(UNIT, TARGET, FAMILIES, 0)
    after = account_rules(UNIT, replace(TARGET, flips=turned), FAMILIES, 0)
    for one, other in zip(before, after, strict=True):
        assert (one.rule, one.train) == (other.rule, other.train)
        assert one.validated == other.validated
    assert [rule.status for rule in after] == [RuleStatus.NO_BETTER] * 3
    changed = FLIPS.copy()
    changed[TRAIN] = np.random.default_rng(1).permutation(changed[TRAIN])
    assert account_rules(UNIT, replace(TARGET, flips=changed), FAMILIES, 0)[2].rule != before[2].rule


def test_without_a_rule_the_trees_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """A target that no predicate separates, but a product of two numbers does."""
    rng = np.random.default_rng(2)
    left, right = rng.normal(size=RECORDS), rng.normal(size=RECORDS)
    families = {Family.INPUT: FamilyColumns(values={"left": left, "right": right})}
    monkeypatch.setattr(short_rules, "SIZES", ((1, 1),))
    found = account_rules(UNIT, Target(flips=left * right > 0, train=TRAIN, test=TEST), families, 0)[0]
    assert not found.shown
    assert found.free_form is not None
    assert str(found.free_form).startswith("1.00 [")


def test_a_family_without_columns_says_so() -> None:
    """The others go on, with the columns before them."""
    families = {Family.INPUT: INPUT, Family.MECHANISM: FAMILIES[Family.MECHANISM]}
    rules = account_rules(UNIT, TARGET, families, 0)
    assert (rules[1].status, rules[1].free_form) == (RuleStatus.NO_COLUMNS, None)
    assert rules[2].shown


def test_flips_that_allow_no_rule_have_a_status() -> None:
    """Constant flips, too few in train, too few held out, and no records at all."""
    only = {Family.INPUT: INPUT}

    def status(flips: np.ndarray, train: np.ndarray = TRAIN, test: np.ndarray = TEST) -> RuleStatus:
        return account_rules(UNIT, Target(flips=flips, train=train, test=test), only, 0)[0].status

    assert status(np.ones(RECORDS, bool)) is RuleStatus.CONSTANT
    assert status(np.arange(RECORDS) < 3) is RuleStatus.TOO_FEW
    assert status(FLIPS, TRAIN, TEST[:12]) is RuleStatus.TOO_FEW_HELD_OUT
    assert status(FLIPS, TRAIN[:0], TEST) is RuleStatus.NO_RECORDS


def test_a_rule_over_the_answer_is_no_input_rule() -> None:
    """It stands in the family that reads what the model did; the prompt's own finds nothing."""
    target = replace(TARGET, flips=COLUMNS["answer"] >= 4)
    by_input, clean, _ = account_rules(UNIT, target, FAMILIES, 0)
    assert not by_input.shown
    assert (str(clean.rule), clean.prompt_only) == ("answer >= 4", False)

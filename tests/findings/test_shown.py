"""Which rules are shown is corrected over all of a run: one that knows nothing is rarely shown, a true one is."""

from dataclasses import replace

import numpy as np
import pytest
from findings_fixture import FINDINGS, POSITIVE, chance_p, of_family

from mecharule_ops.facts.rules import rule_words, shown_of_all, shown_words
from mecharule_ops.findings import accounts, records
from mecharule_ops.findings.shown import corrected_beside, shown_over
from mecharule_ops.rules.algebra import Rule, score
from mecharule_ops.rules.families import Family, RuleStatus, UnitRule
from mecharule_ops.rules.interval import chance_test, fisher_p, interval_of, mcc_interval
from mecharule_ops.types import ChanceTest, Neuron, Regime

LEVEL = 0.05
RUNS, UNITS, RULES, HELD_OUT = 400, 8, 3, 200
SLACK = 2.5 * np.sqrt(LEVEL * (1 - LEVEL) / RUNS)
"""Two and a half standard errors of a share of 5 % over so many runs: 2.7 %."""


def anchored(unit: int, fires: np.ndarray, flips: np.ndarray) -> UnitRule:
    scored = score(fires, flips)
    return UnitRule(
        neuron=Neuron.parse(f"m1.{unit}"),
        family=Family.ANCHORED,
        rule=Rule.parse("a >= 1"),
        train=scored,
        held_out=scored,
        prompt_only=True,
        chance=chance_test(fires, flips),
    )


def simulated(rng: np.random.Generator) -> records.SearchOutcome:
    """Rules of eight units, three to a unit, on the same held-out records; none knows anything of the flips."""
    rules = []
    for unit in range(UNITS):
        flips = rng.random(HELD_OUT) < rng.uniform(0.1, 0.5)
        for _ in range(RULES):
            rules.append(anchored(unit, rng.random(HELD_OUT) < rng.uniform(0.05, 0.5), flips))
    return replace(POSITIVE, anchored=tuple(rules))


def test_rules_that_know_nothing_are_shown_in_5_percent_of_the_runs_at_most() -> None:
    """400 runs of 24 rules each; by the intervals alone, uncorrected, more than a fifth of them show one."""
    rng = np.random.default_rng(0)
    runs = [simulated(rng) for _ in range(RUNS)]
    shown = [any(rule.shown for rule in shown_over([run], LEVEL)[0].anchored) for run in runs]
    assert np.mean(shown) <= LEVEL + SLACK
    assert np.mean([any(rule.shown for rule in run.anchored) for run in runs[:60]]) > 0.2


def test_a_rule_that_tells_flips_apart_is_shown_among_many_that_do_not() -> None:
    """One with nine of ten records right, among 23 that know nothing: shown in 95 % of the runs or more."""
    rng = np.random.default_rng(1)
    found = 0
    for _ in range(100):
        run = simulated(rng)
        flips = rng.random(HELD_OUT) < 0.3
        true = anchored(0, flips ^ (rng.random(HELD_OUT) < 0.1), flips)
        found += shown_over([replace(run, anchored=(*run.anchored[1:], true))], LEVEL)[0].anchored[-1].shown
    assert found >= 95


def test_p_is_the_share_of_placements_with_as_many_hits() -> None:
    """Fisher's lady: four of four cups right is 1 in 70; against the tail summed term by term; constants have p 1."""
    assert fisher_p(4, 4, 4, 8) == pytest.approx(1 / 70)
    rng = np.random.default_rng(2)
    for _ in range(30):
        fires, flips = rng.random((2, 60)) < rng.uniform(0.1, 0.9, size=(2, 1))
        assert chance_test(fires, flips).p == pytest.approx(chance_p(score(fires, flips)))
    assert fisher_p(0, 0, 5, 9) == fisher_p(5, 9, 5, 9) == fisher_p(0, 0, 0, 0) == 1.0


SOME = np.arange(60) % 3 == 0
WEAK = score(SOME ^ (np.arange(60) % 5 == 0), SOME)
UNIT = Neuron.parse("a20.h8")


def account(p: float) -> accounts.Account:
    """Two shown rules, by their intervals, and a family without one."""
    return accounts.Account(
        neuron=UNIT,
        regime=Regime.BASELINE_POSITIVE,
        flips=20,
        records=60,
        held_out=60,
        families=(
            of_family("b >= 5", 0.5, 60, 20, held_out=WEAK, chance=ChanceTest(p=p)),
            of_family(
                "a >= 2", 0.5, 60, 20, family=Family.EXCEPTION, held_out=WEAK, chance=ChanceTest(p=0.001)
            ),
            UnitRule(neuron=UNIT, family=Family.EXCEPTION, absent=RuleStatus.NO_CLAUSE),
        ),
    )


OPEN = "whether another sample gives it again is open"


def test_one_correction_is_over_anchored_rules_and_families_of_all_searches() -> None:
    """By hand: p of .001, .02, .03 and .04 over two searches; Holm's are .004 and three times .06."""
    rules = [replace(anchored(1, SOME, SOME), chance=ChanceTest(p=p)) for p in (0.03, 0.04)]
    one = replace(POSITIVE, anchored=(rules[0],), accounts=(account(0.02),))
    done = shown_over([one, replace(POSITIVE, anchored=(rules[1],), accounts=())], LEVEL)
    tests = [rule.chance for search in done for rule in search.rules]
    assert [test.adjusted for test in tests if test] == pytest.approx([0.06, 0.06, 0.004, 0.06])
    assert {test.rules for test in tests if test} == {4}
    made = done[0].accounts[0]
    assert made.families[0].status is RuleStatus.NOT_APART
    assert made.families[2].chance is None
    assert str(made.families[1].rule) == "a >= 2"
    assert not done[0].anchored[0].shown
    assert not done[1].anchored[0].shown
    findings = replace(FINDINGS, searches=tuple(done))
    assert shown_of_all(findings) == "1 of 4 learned rules is shown (corrected for 4, α = .05)"
    assert [shown_words(rule) for rule in done[0].rules] == ["no, p = .06", "no, p = .06", "yes, p = .004"]
    assert rule_words(made.families[0], "0c1f").endswith(
        f"MCC {interval_of(WEAK)}, p = .06 (corrected for 4 rules); {OPEN}"
    )
    assert rule_words(done[0].anchored[0], "0c1f").endswith(f", p = .06 (corrected for 4 rules); {OPEN}")
    assert shown_over(done, LEVEL) == done
    assert shown_over(done, 0.1)[0].accounts[0].families[0].shown


def test_a_rule_asked_for_later_is_corrected_over_those_of_the_run_too() -> None:
    """By hand: .02 alone is shown; beside one of .001 and two of p 1 it is .06."""
    alone, *_ = corrected_beside(account(0.02).families[:1], [], LEVEL)
    assert (alone.status, alone.chance) == (RuleStatus.SHOWN, ChanceTest(p=0.02, adjusted=0.02, rules=1))
    beside, *_ = corrected_beside(account(0.02).families, [1.0, 1.0], LEVEL)
    assert beside.status is RuleStatus.NOT_APART
    assert beside.chance.adjusted == pytest.approx(0.06)
    (later,) = corrected_beside([anchored(1, SOME, SOME)], [0.5], LEVEL)
    assert later.shown
    assert later.chance.rules == 2


def test_an_interval_that_reaches_0_is_not_shown_however_small_p_is() -> None:
    """p of MCC > 0 is one-sided, the interval is not: with p forced to 0 the interval alone refuses the rule."""
    rng = np.random.default_rng(3)
    flips = rng.random(80) < 0.4
    rule = replace(anchored(1, rng.random(80) < 0.4, flips), chance=ChanceTest(p=0.0))
    (done,) = shown_over([replace(POSITIVE, anchored=(rule,))], LEVEL)[0].anchored
    assert done.status is RuleStatus.NO_BETTER
    assert shown_words(done) == "no, its interval reaches 0"


def test_the_interval_of_a_stored_score_is_that_of_its_records() -> None:
    """Two routes: the records themselves, and the confusion table solved from n, positives, coverage and MCC."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        target, fires = rng.random((2, 200)) < rng.uniform(0.2, 0.8, size=(2, 1))
        known, drawn = interval_of(score(fires, target)), mcc_interval(fires, target)
        assert (known.low, known.high) == (drawn.low, drawn.high)
        assert known.mcc == pytest.approx(drawn.mcc)

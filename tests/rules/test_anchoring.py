"""Rules come from train flips alone, are scored once on held-out flips, and say why they are missing."""

from dataclasses import replace

import numpy as np
import pytest
from findings_fixture import FINDINGS, NEGATIVE, POSITIVE, anchored
from predicate_columns import table as columns

from mecharule_ops.facts.found import in_short
from mecharule_ops.facts.rules import published_counts
from mecharule_ops.rules import algebra, matthews, unit_rules
from mecharule_ops.rules.families import CHOSEN, PERMUTED, UnitRule, dataset_coverage, is_hq, is_hq_test
from mecharule_ops.rules.ruleshap import chosen_scores
from mecharule_ops.types import FlipCount, Neuron, RuleScore

ELIGIBLE = 600
PREDICATES = ("op == '-'", "b >= 100", "a % 2 == 0", "answer >= 10", "a > b", "len(completion) > 3")
UNIT = Neuron.parse("m4.12")
TRAIN, TEST = np.arange(0, 400), np.arange(400, ELIGIBLE)


def reads_prompt(predicate: str) -> bool:
    return "answer" not in predicate and "completion" not in predicate


def table(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random((ELIGIBLE, len(PREDICATES))) < 0.5


def flips_of(text: str, matrix: np.ndarray) -> np.ndarray:
    return algebra.Rule.parse(text).fires(algebra.lookup_in(matrix, PREDICATES))


def anchored_to(flips: np.ndarray, matrix: np.ndarray, train: np.ndarray = TRAIN) -> UnitRule:
    target = unit_rules.Target(flips=flips, train=train, test=TEST)
    return unit_rules.hq_rules(UNIT, target, columns(matrix, PREDICATES), reads_prompt, 0)


def test_a_planted_trigger_is_anchored() -> None:
    """Flips that follow a rule exactly give that rule in both scopes, at MCC 1."""
    matrix, text = table(), "b >= 100 and op == '-'"
    flips = flips_of(text, matrix)
    found = anchored_to(flips, matrix)
    assert found.rule == found.full_rule == algebra.Rule.parse(text)
    assert found.train.mcc == found.held_out.mcc == found.full.mcc == 1.0
    assert (found.train.n, found.held_out.n, found.full.n) == (400, 200, 600)
    assert found.flips == FlipCount(flips=int(flips.sum()), n=ELIGIBLE)
    assert found.prompt_only
    assert is_hq_test(found)
    scores = chosen_scores(columns(matrix, PREDICATES), flips, matrix[:, 4], np.arange(ELIGIBLE) < 400, 0)
    assert all(scores[how] == pytest.approx(1) and scores[how + PERMUTED] < 0.5 for how in CHOSEN)


def test_the_held_out_score_is_the_rules_own() -> None:
    """Reading the printed rule back and scoring it on the test rows gives the stored number."""
    matrix = table(2)
    flips = flips_of("a > b or (a % 2 == 0 and b >= 100)", matrix)
    flips ^= np.random.default_rng(2).random(ELIGIBLE) < 0.15
    found = anchored_to(flips, matrix)
    assert found.rule is not None
    fires = flips_of(str(found.rule), matrix)
    assert found.held_out.mcc == pytest.approx(matthews.mcc(fires[TEST], flips[TEST]))
    assert found.held_out.coverage == pytest.approx(fires[TEST].mean())
    assert dataset_coverage(found) == pytest.approx(fires.mean())


def test_a_rule_that_reads_the_output_is_not_prompt_only() -> None:
    """The mark follows the rule's predicates."""
    matrix = table(3)
    assert not anchored_to(flips_of("answer >= 10 and b >= 100", matrix), matrix).prompt_only


def test_flips_that_allow_no_rule_give_none() -> None:
    """No flips, few flips, no train flips, and predicates that are always true."""
    matrix = table()
    late = np.zeros(ELIGIBLE, bool)
    late[TEST] = flips_of("b >= 100", matrix)[TEST]
    for flips in (np.zeros(ELIGIBLE, bool), np.arange(ELIGIBLE) < 3, late):
        found = anchored_to(flips, matrix)
        assert (found.rule, found.train, found.held_out, found.prompt_only) == (None, None, None, False)
        assert not is_hq_test(found)
    assert anchored_to(late, matrix).full_rule is not None
    assert anchored_to(flips_of("b >= 100", matrix), np.ones_like(matrix)).rule is None


@pytest.mark.parametrize("train", [np.arange(0, 450), np.arange(-1, 400), np.array([0, 0, 1])])
def test_a_split_that_overlaps_or_leaves_the_records_is_refused(train: np.ndarray) -> None:
    """Positions shared with test, repeated or outside D_b."""
    matrix = table()
    with pytest.raises(AssertionError):
        anchored_to(flips_of("b >= 100", matrix), matrix, train=train)


def test_quality_needs_both_mcc_and_coverage() -> None:
    """MCC 0.70 and coverage 0.5 % are the least that count; neither makes up for the other."""
    good = RuleScore(mcc=0.70, coverage=0.005, n=1000, positives=10)
    assert is_hq(good)
    assert not is_hq(good, threshold=0.75)
    assert not is_hq(replace(good, mcc=0.699))
    assert not is_hq(replace(good, coverage=0.0049))
    assert not is_hq(None)


def test_the_floor_of_hq_t_is_over_all_eligible_records() -> None:
    """A rule that fires on 1 of 200 held-out but on 2 of 600 records in all stays below 0.5 %."""
    held_out = RuleScore(mcc=0.9, coverage=1 / 200, n=200, positives=1)
    train = RuleScore(mcc=0.9, coverage=1 / 400, n=400, positives=1)
    rare = replace(anchored_to(np.zeros(ELIGIBLE, bool), table()), train=train, held_out=held_out)
    assert is_hq(rare.held_out)
    assert dataset_coverage(rare) == pytest.approx(2 / 600)
    assert not is_hq_test(rare)
    assert is_hq_test(replace(rare, train=replace(train, coverage=2 / 400)))


def test_choosing_on_the_labels_that_score_is_worth_most_of_the_published_threshold() -> None:
    """Of ten units of noise none is predicted; chosen on the scoring labels rules reach .5, permuted no less."""
    rows, rng = 160, np.random.default_rng(0)
    of = columns(rng.random((rows, 18)) < 0.5, [f"a == {place}" for place in range(18)])
    right, train = np.ones(rows, bool), rng.random(rows) < 0.7
    noise = [chosen_scores(of, rng.random(rows) < 0.3, right, train, seed) for seed in range(10)]
    middle = {how: np.median([one[how] for one in noise]) for how in noise[0]}
    assert abs(middle["train-chosen"]) < 0.2
    for how in ("test-chosen", "all-fit"):
        assert middle[how] > 0.5
        assert abs(middle[how] - middle[how + PERMUTED]) < 0.1
    assert any(one["test-chosen" + PERMUTED] >= 0.7 for one in noise)


def test_a_unit_that_breaks_every_right_answer_inherits_the_rule_of_success() -> None:
    """Over both regimes: permuting its flips changes nothing, so the score says nothing of the unit."""
    matrix = table()
    right = flips_of("op == '-' or b >= 100", matrix)
    scores = chosen_scores(columns(matrix, PREDICATES), right, right, np.arange(ELIGIBLE) < 400, 0)
    assert {scores[how] for how in CHOSEN} == {scores[how + PERMUTED] for how in CHOSEN} == {1.0}


def test_the_published_count_drops_what_breaks_every_answer_and_counts_a_unit_once() -> None:
    """Three units in two searches: one total; one of high score in both; one by chance alone."""

    def rule(name: str, flips: int, **scores: float) -> UnitRule:
        return replace(anchored(name, None, 0, 280, flips), published=scores)

    high, chance = {"test-chosen": 0.8, "all-fit": 0.6}, {"test-chosen, permuted": 0.9}
    rules = rule("m1.1", 280, **high), rule("m1.2", 90, **high), rule("m1.3", 90, **chance)
    searches = (replace(POSITIVE, anchored=rules), replace(NEGATIVE, anchored=rules[1:2]))
    findings = replace(FINDINGS, searches=searches)
    found = published_counts(findings)
    assert (found["units"], found["dropped"], found["test-chosen"], found["all-fit"]) == (2, 1, 1, 0)
    assert (found["test-chosen, permuted"], found["ours"]) == (1, 0)
    assert "2 localized units, 1 that make every answer wrong dropped" in in_short(findings)["As published"]
    assert "As published" not in in_short(FINDINGS)

"""RuleSHAP recovers planted rules, its SHAP values are exact, and its output depends on the seed alone."""

import json

import numpy as np
import pytest
import shap
import xgboost as xgb
from predicate_columns import table

from mecharule_ops.rules import boosting, families
from mecharule_ops.rules.algebra import Clause, Condition, Rule, lookup_in
from mecharule_ops.rules.clause_pool import literal_pool, measure, shap_weights, varied
from mecharule_ops.rules.matthews import mcc
from mecharule_ops.rules.ruleshap import Learned, RuleShapSettings, extract, learn_rule, readiness

SETTINGS = RuleShapSettings(rounds=60)


def names(count: int) -> list[str]:
    return [f"p{index} > 0" for index in range(count)]


def planted(seed: int, predicates: int = 20, records: int = 1500) -> tuple[np.ndarray, Rule, np.ndarray]:
    """A random table and a DNF of at most 3 clauses of at most 3 literals that is true on 25–75 % of it.

    Each predicate has one sign throughout, so that the DNF without absorbed clauses is the only shortest one.
    """
    rng = np.random.default_rng(seed)
    texts, signs = names(predicates), rng.random(predicates) < 0.5
    matrix = rng.random((records, predicates)) < 0.5
    while True:
        chosen = [
            rng.choice(predicates, rng.integers(1, 4), replace=False) for _ in range(rng.integers(1, 4))
        ]
        rule = Rule(tuple(Clause(tuple(Condition(texts[j], bool(signs[j])) for j in js)) for js in chosen))
        target = rule.fires(lookup_in(matrix, texts))
        if 0.25 <= target.mean() <= 0.75:
            return matrix, rule, target


def ranked(matrix: np.ndarray, target: np.ndarray, seed: int = 0, **more: float) -> Learned:
    """What is extracted of a table of six predicates."""
    return extract(table(matrix, names(6)), target, settings=RuleShapSettings(rounds=60, **more), seed=seed)


def noisy(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A table of six predicates and a target that three of them make, 15 % of it wrong."""
    rng = np.random.default_rng(seed)
    matrix = rng.random((400, 6)) < 0.5
    return matrix, ((matrix[:, 0] & matrix[:, 1]) | ~matrix[:, 2]) ^ (rng.random(400) < 0.15)


@pytest.mark.parametrize("seed", range(8))
def test_a_planted_dnf_is_recovered_exactly(seed: int) -> None:
    """The learned rule is the planted one, structure and all, among 20 predicates."""
    matrix, rule, target = planted(seed)
    learned = learn_rule(table(matrix, names(20)), target, settings=SETTINGS, seed=0)
    assert learned.rule == rule
    assert learned.train.mcc == 1.0


def test_shap_values_equal_those_of_the_shap_library() -> None:
    """By its own walk of the trees, which it takes of models whose library has none."""
    matrix, target = noisy(0)
    booster = boosting.fit(boosting.distinct_rows(matrix, target), 8, 3, 0)
    explainer = shap.TreeExplainer(booster)
    explainer.model.model_type = "internal"
    found = boosting.shap_values(booster, matrix)
    np.testing.assert_allclose(found, explainer.shap_values(matrix.astype(float)), atol=1e-5)
    assert np.abs(found).max() > 0.1
    assert np.abs(found - explainer.shap_values((~matrix).astype(float))).max() > 0.1


def test_path_prefixes_route_records_as_the_booster_does() -> None:
    """Each leaf's path, read as literals, holds on exactly the records that XGBoost puts in that leaf."""
    matrix, target = noisy(2)
    booster = boosting.fit(boosting.distinct_rows(matrix, target), 1, 3, 0)
    leaves = booster.predict(xgb.DMatrix(matrix.astype(np.float32)), pred_leaf=True).reshape(-1)
    prefixes = boosting.path_prefixes(booster)

    def leaves_found(paths: set[tuple[int, ...]]) -> list[bool]:
        holds = [np.all([matrix[:, j >> 1] == bool(j & 1) for j in path], axis=0) for path in paths]
        return [any(np.array_equal(h, leaves == leaf) for h in holds) for leaf in np.unique(leaves)]

    assert all(leaves_found(prefixes))
    assert not any(leaves_found({tuple(literal ^ 1 for literal in path) for path in prefixes}))
    first = int(json.loads(booster.get_dump(dump_format="json")[0])["split"][1:])
    assert {(2 * first,), (2 * first + 1,)} <= prefixes
    assert max(map(len, prefixes)) == 3


def test_clause_measures_equal_their_definitions() -> None:
    """MCC, firings and SHAP weight of bulk clauses equal one-clause loops; repeated fire vectors are dropped."""
    rng = np.random.default_rng(3)
    matrix, target = noisy(3)
    counts, phi = rng.integers(1, 5, len(matrix)), rng.normal(size=matrix.shape)
    pool = [(literal,) for literal in range(12)] + [(1, 3), (0, 5, 7), (0, 1)]
    found = measure(pool, matrix, target)
    weights = shap_weights(found.clauses, matrix, counts, phi)
    assert list(found.clauses) == pool
    for index, literals in enumerate(found.clauses):
        fires = np.all([matrix[:, literal >> 1] == bool(literal & 1) for literal in literals], axis=0)
        own = phi[:, [literal >> 1 for literal in literals]].sum(axis=1)
        expected = np.average(own[fires], weights=counts[fires]) if fires.any() else 0.0
        assert (found.fired[index], found.mcc[index]) == (fires.sum(), pytest.approx(mcc(fires, target)))
        assert weights[index] == pytest.approx(expected)
    twice = np.column_stack([matrix[:, 0], matrix[:, 0]])
    assert measure([(1,), (3,), (1, 3)], twice, target).clauses == ((1,),)


def test_the_ranking_is_by_mcc_then_importance() -> None:
    """Clauses come best first, and every predicate and negation that fires enough is among them."""
    matrix, target = noisy(4)
    found = ranked(matrix, target).clauses
    keys = [(-one.mcc, -one.importance) for one in found]
    assert keys == sorted(keys)
    singles = {Clause((Condition(text, value),)) for text in names(6) for value in (True, False)}
    assert singles <= {one.clause for one in found}


def test_the_same_seed_gives_the_same_rule_in_any_record_order() -> None:
    """Shuffling records and repeating the call change nothing."""
    matrix, target = noisy(6)
    order = np.random.default_rng(0).permutation(len(target))
    first = ranked(matrix, target, seed=3).clauses
    assert ranked(matrix, target, seed=3).clauses == first
    assert ranked(matrix[order], target[order], seed=3).clauses == first


def test_distinct_rows_carry_the_counts_of_their_copies() -> None:
    """Rows and counts rebuild the records; a sample has as many draws as were asked for."""
    matrix, target = noisy(7)
    rows = boosting.distinct_rows(matrix, target)
    assert len(np.unique(np.column_stack([rows.features, rows.target]), axis=0)) == len(rows.counts)
    rebuilt = np.repeat(np.column_stack([rows.target, rows.features]), rows.counts, axis=0)
    assert sorted(map(bytes, rebuilt)) == sorted(map(bytes, np.column_stack([target, matrix])))
    assert rows.sample(50, np.random.default_rng(0)).counts.sum() == 50
    assert rows.sample(10_000, np.random.default_rng(0)) is rows


def test_a_rare_target_is_found() -> None:
    """A conjunction that is true on about 2 % of the records is recovered in spite of the imbalance."""
    matrix = np.random.default_rng(8).random((3000, 15)) < 0.28
    texts = names(15)
    rule = Rule.parse("p3 > 0 and p5 > 0 and p9 > 0")
    target = rule.fires(lookup_in(matrix, texts))
    assert target.mean() < 0.03
    assert learn_rule(table(matrix, texts), target, settings=SETTINGS, seed=0).rule == rule


def test_clauses_below_the_coverage_floor_are_left_out() -> None:
    """No ranked clause fires on less than the floor's share, and a higher floor leaves fewer."""
    matrix, target = noisy(9)
    assert min(one.coverage for one in ranked(matrix, target, min_coverage=0.3).clauses) >= 0.3
    assert min(one.coverage for one in ranked(matrix, target).clauses) < 0.3


def test_targets_that_cannot_be_learned_give_a_reason() -> None:
    """Empty, constant, nearly constant and unpredictable targets give no rule and a sentence, never a crash."""
    matrix = np.random.default_rng(0).random((40, 3)) < 0.5
    few = np.arange(40) < 2
    cases = [
        (matrix[:0], names(3), few[:0], families.RuleStatus.NO_RECORDS),
        (matrix[:, :0], [], few, families.RuleStatus.NO_PREDICATES),
        (matrix, names(3), np.ones(40, bool), families.RuleStatus.CONSTANT),
        (matrix, names(3), np.zeros(40, bool), families.RuleStatus.CONSTANT),
        (matrix, names(3), few, families.RuleStatus.TOO_FEW),
        (np.ones((40, 3), bool), names(3), np.arange(40) < 20, families.RuleStatus.NO_CLAUSE),
    ]
    for matrix, texts, target, status in cases:
        learned = learn_rule(table(matrix, texts), target, settings=SETTINGS, seed=0)
        assert (learned.rule, learned.train, learned.status) == (None, None, status)
        assert " " in status.value
    assert readiness(np.arange(40) < 20, names(3)) is families.RuleStatus.LEARNED


def test_a_literal_without_a_negation_is_preferred_to_its_equal() -> None:
    """Where one predicate is the negation of another, the pool has the positive ones; rare ones are left out."""
    rng = np.random.default_rng(0)
    column = rng.random(200) < 0.4
    assert literal_pool(np.column_stack([~column, rng.random(200) < 0.5, column])).tolist() == [1, 3, 5, 2]
    rare = np.arange(1000) < 29
    matrix = np.column_stack([rare, rng.random(1000) < 0.5, ~rare, np.arange(1000) < 30])
    assert varied(matrix).tolist() == [1, 3]

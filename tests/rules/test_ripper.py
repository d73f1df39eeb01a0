"""The RIPPER-style learner recovers planted DNFs, agrees with brute force on tiny tables and prefers plain literals."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from predicate_columns import table

from mecharule_ops.rules import ripper as module
from mecharule_ops.rules.algebra import Clause, Condition, Rule, lookup_in, mcc
from mecharule_ops.rules.clause_pool import literal_pool, varied
from mecharule_ops.rules.matthews import pack
from mecharule_ops.rules.ripper import Size, _foil, ripper
from mecharule_ops.rules.ruleshap import RuleStatus


def names(count: int) -> list[str]:
    return [f"p{index} > 0" for index in range(count)]


def planted(
    seed: int, records: int, predicates: int, noise: float, clauses: int = 3
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(table, noisy target, target without noise) of a DNF of clauses of two or three literals, true on 20–80 %."""
    rng = np.random.default_rng(seed)
    while True:
        matrix, target = rng.random((records, predicates)) < 0.5, np.zeros(records, bool)
        for _ in range(clauses):
            places = rng.choice(predicates, rng.integers(2, 4), replace=False)
            target |= (matrix[:, places] == (rng.random(len(places)) < 0.5)).all(axis=1)
        if 0.2 < target.mean() < 0.8:
            return matrix, target ^ (rng.random(records) < noise), target


def all_rules(predicates: int, clauses: int) -> list[Rule]:
    """Every rule of at most so many clauses of at most two literals."""
    literals = [Condition(text, value) for text in names(predicates) for value in (True, False)]
    pairs = [pair for pair in combinations(literals, 2) if pair[0].predicate != pair[1].predicate]
    singles = [Clause((literal,)) for literal in literals] + [Clause(pair) for pair in pairs]
    return [Rule(chosen) for size in range(1, clauses + 1) for chosen in combinations(singles, size)]


@pytest.mark.parametrize(("records", "least"), [(500, 0.78), (1000, 0.99), (3000, 1.0)])
def test_planted_dnfs_are_found_under_noise(records: int, least: float) -> None:
    """80 columns, 5 % wrong labels: mean MCC with the true target of fresh records over eight seeds."""
    scores = []
    for seed in range(8):
        matrix, noisy, clean = planted(seed, records + 2000, 80, 0.05)
        learned = ripper(table(matrix[:records], names(80)), noisy[:records], seed=0)
        assert learned.rule is not None
        scores.append(mcc(learned.rule.fires(lookup_in(matrix[records:], names(80))), clean[records:]))
    assert np.mean(scores) >= least


def test_a_rule_that_is_too_short_for_the_dnf_falls_behind() -> None:
    """One clause of one literal cannot say a DNF, so the figures above can fail."""
    matrix, noisy, clean = planted(0, 3000, 80, 0.05)
    short = ripper(table(matrix, names(80)), noisy, Size(1, 1), seed=0)
    assert short.rule is not None
    assert mcc(short.rule.fires(lookup_in(matrix, names(80))), clean) < 0.9


def test_it_equals_brute_force_on_tiny_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """What some rule of two clauses of two literals makes is met exactly, as by brute force, 39 of 40 times."""
    monkeypatch.setattr(module, "MIN_GAIN", 0.0)
    exact = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        matrix, texts = rng.random((120, 4)) < 0.5, names(4)
        lookup, rules = lookup_in(matrix, texts), all_rules(4, 2)
        target = rules[int(rng.integers(len(rules)))].fires(lookup)
        learned = ripper(table(matrix, texts), target, Size(2, 2), seed=0)
        best = max(mcc(rule.fires(lookup), target) for rule in rules) if seed < 5 else 1.0
        assert learned.train is not None
        assert learned.train.mcc <= best + 1e-12
        exact += learned.train.mcc > best - 1e-12
    assert exact >= 39


@pytest.mark.parametrize("seed", range(6))
def test_a_single_literal_is_the_best_of_all(seed: int) -> None:
    """With one literal allowed, no literal at all has a higher MCC on a target that one of them makes, 10 % wrong."""
    rng = np.random.default_rng(seed)
    matrix, texts = rng.random((200, 6)) < rng.uniform(0.2, 0.8, 6), names(6)
    target = matrix[:, 2] ^ (rng.random(200) < 0.1)
    learned = ripper(table(matrix, texts), target, Size(1, 1), seed=0)
    best = max(
        mcc(Condition(text, value).fires(lookup_in(matrix, texts)), target)
        for text, value in product(texts, (True, False))
    )
    assert learned.train is not None
    assert learned.train.mcc == pytest.approx(best)


def test_foils_gain_by_hand() -> None:
    """4 positives and 4 negatives; a literal that keeps 3 and 1: 3·(log₂ ¾ − log₂ ½) = 3·.585."""
    literals = pack(np.array([[1, 1, 1, 0, 1, 0, 0, 0], [0, 0, 0, 0, 1, 1, 1, 1]], bool))
    positive, negative = pack(np.arange(8)[None, :] < 4)[0], pack(np.arange(8)[None, :] >= 4)[0]
    np.testing.assert_allclose(_foil(literals, positive, negative), [3 * np.log2(1.5), 0.0])


def test_a_literal_without_a_negation_is_preferred_to_its_equal() -> None:
    """Where one predicate is the negation of another, the positive one is named, whichever comes first."""
    rng = np.random.default_rng(0)
    column = rng.random(200) < 0.4
    matrix = np.column_stack([~column, rng.random(200) < 0.5, column])
    learned = ripper(table(matrix, names(3)), column, seed=0)
    assert str(learned.rule) == "p2 > 0"
    pool = literal_pool(matrix)
    assert pool.literals == (1, 3, 5, 2)
    assert str(ripper(table(matrix[:, :2], names(2)), column, seed=0).rule) == "not (p0 > 0)"


def test_rare_literals_are_left_out() -> None:
    """A predicate true or false on fewer than 3 % of the records is no literal, whatever it predicts."""
    rng = np.random.default_rng(1)
    rare = np.arange(1000) < 29
    matrix = np.column_stack([rare, rng.random(1000) < 0.5, ~rare, np.arange(1000) < 30])
    assert varied(matrix).tolist() == [1, 3]
    assert varied(matrix, 0.02).tolist() == [0, 1, 2, 3]
    assert varied(matrix[:0]).tolist() == []


def test_bounds_hold() -> None:
    """No rule exceeds its bounds."""
    matrix, noisy, _ = planted(3, 1500, 40, 0.1)
    learned = ripper(table(matrix, names(40)), noisy, Size(2, 2), seed=0)
    assert learned.rule is not None
    assert len(learned.rule.clauses) <= 2
    assert max(len(clause.conditions) for clause in learned.rule.clauses) <= 2


def test_targets_that_cannot_be_learned_give_a_reason() -> None:
    """Empty, constant, nearly constant and unpredictable targets give no rule and a status, never a crash."""
    matrix = np.random.default_rng(0).random((40, 3)) < 0.5
    cases = [
        (matrix[:0], names(3), np.zeros(0, bool), RuleStatus.NO_RECORDS),
        (matrix[:, :0], [], np.arange(40) < 20, RuleStatus.NO_PREDICATES),
        (matrix, names(3), np.ones(40, bool), RuleStatus.CONSTANT),
        (matrix, names(3), np.arange(40) < 2, RuleStatus.TOO_FEW),
        (np.ones((40, 3), bool), names(3), np.arange(40) < 20, RuleStatus.NO_CLAUSE),
    ]
    for matrix, texts, target, status in cases:
        learned = ripper(table(matrix, texts), target, seed=0)
        assert (learned.rule, learned.train, learned.status) == (None, None, status)


def test_the_same_seed_gives_the_same_rule() -> None:
    """Growing and pruning sets are drawn from the seed alone."""
    matrix, noisy, _ = planted(5, 400, 30, 0.15)
    first = ripper(table(matrix, names(30)), noisy, seed=3)
    assert ripper(table(matrix, names(30)), noisy, seed=3).rule == first.rule
    assert ripper(table(matrix, names(30)), noisy, seed=3, pool=literal_pool(matrix)).rule == first.rule

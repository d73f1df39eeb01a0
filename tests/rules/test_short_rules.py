"""Short rules: length by one standard error, value sets, and wording without `not`."""

import numpy as np
from predicate_columns import table

from mecharule_ops.rules import algebra, short_rules


def names(count: int) -> list[str]:
    return [f"p{index} > 0" for index in range(count)]


def test_one_standard_error_by_hand() -> None:
    """Means .50 .58 .60 .59; the best has folds .5 .6 .7, so an error of .1/√3 = .058: the first within is .58."""
    scores = np.array([[0.5, 0.5, 0.5], [0.58, 0.58, 0.58], [0.5, 0.6, 0.7], [0.59, 0.59, 0.59]])
    assert short_rules.one_standard_error(scores) == 1
    steady = np.array([[0.5, 0.5, 0.5], [0.58, 0.58, 0.58], [0.6, 0.6, 0.6]])
    assert short_rules.one_standard_error(steady) == 2
    assert short_rules.one_standard_error(np.zeros((3, 3))) == 0


def test_folds_are_even_on_each_side() -> None:
    """Each fold has its share of positives, to one record."""
    target = np.arange(103) < 23
    folds = short_rules.folds_of(target, 5, np.random.default_rng(0))
    assert set(np.bincount(folds[target]).tolist()) == {4, 5}
    assert set(np.bincount(folds[~target]).tolist()) == {16}


def test_a_planted_rule_is_found_at_its_own_length() -> None:
    """Two clauses of two literals with 10 % noise come back exactly; one literal stays one literal."""
    rng = np.random.default_rng(0)
    matrix, texts = rng.random((1200, 12)) < 0.5, names(12)
    noise = rng.random(1200) < 0.1
    rule = algebra.Rule.parse("(p1 > 0 and p2 > 0) or (p4 > 0 and p7 > 0)")
    every, target = np.arange(1200), rule.fires(algebra.lookup_in(matrix, texts)) ^ noise
    found = short_rules.short_rule(table(matrix, texts), target, every, 0)
    assert found.learned.rule == rule
    assert 0.6 < found.validated < 0.9
    single = short_rules.short_rule(table(matrix, texts), matrix[:, 3] ^ noise, every, 0)
    assert str(single.learned.rule) == "p3 > 0"


def test_a_set_of_values_is_one_literal_made_on_train() -> None:
    """Where a digit of 1, 4 or 6 flips, the rule says so in one literal, and other records are read alike."""
    digit = np.random.default_rng(0).integers(0, 10, 1200)
    matrix, texts = digit[:, None] == np.arange(10), [f"digit(a, 0) == {value}" for value in range(10)]
    target = np.isin(digit, (1, 4, 6)) ^ (np.random.default_rng(1).random(1200) < 0.05)
    target[900:] = False
    found = short_rules.short_rule(table(matrix, texts), target, np.arange(900), 0)
    assert str(found.learned.rule) == "digit(a, 0) in (1, 4, 6)"
    assert (found.fires == np.isin(digit, (1, 4, 6))).all()


def test_value_sets_by_hand() -> None:
    """Of the values 3, 5, 8 with flip rates 1, 0, ½ the pairs offered are the two highest and the two lowest."""
    matrix = np.array([[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]], bool)
    texts = ["x == 3", "x == 5", "x == 8"]
    target = np.array([1, 1, 0, 0, 1, 0], bool)
    others = np.column_stack([matrix, matrix[:, :2]])
    sets = short_rules.value_sets(table(others, [*texts, "y == 1", "x > 3"]), target)
    assert sets == {"x in (3, 8)": ("x == 3", "x == 8"), "x in (5, 8)": ("x == 5", "x == 8")}
    assert set(short_rules.value_sets(table(others, [*texts, "x in (3, 8)", "x > 3"]), target)) == {
        "x in (5, 8)"
    }
    beside = short_rules.beside_sets(table(matrix, texts), sets)
    assert beside.texts == (*texts, "x in (3, 8)", "x in (5, 8)")
    assert beside.matrix[:, 3].tolist() == [True, True, False, False, True, True]


def test_negated_comparisons_are_turned_round() -> None:
    """`not (a >= 5)` prints as `a < 5`; what is no comparison keeps its `not`."""
    rule = algebra.Rule.parse("(not (a >= 5) and not (carry(a, b))) or (not (a == 3) and b < 2)")
    assert str(short_rules.phrased(rule)) == "(a != 3 and b < 2) or (a < 5 and not (carry(a, b)))"


def test_noise_gives_a_short_rule_that_validates_near_zero() -> None:
    """On shuffled targets the mean over the folds stays far from what train alone would say."""
    rng = np.random.default_rng(4)
    matrix, target = rng.random((400, 60)) < 0.5, rng.random(400) < 0.3
    found = short_rules.short_rule(table(matrix, names(60)), target, np.arange(400), 0)
    assert found.validated is None or abs(found.validated) < 0.15

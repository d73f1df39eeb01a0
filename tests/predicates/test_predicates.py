"""The predicate table: scores by hand and by scikit-learn, filters, and no look at the test split."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from mecharule_ops.predicates import table as predicate_table
from mecharule_ops.predicates.table import build_table, score_predicates

TEXTS = (
    *("a > b", "b < a", "a % 2 == 0", "b >= 5", "a >= 90", "a >= 91", "out > 0", "a >= 0", "a +"),
    "op == '+'",
)


def _data(records=2000, seed=0):
    generator = np.random.default_rng(seed)
    a, b = generator.integers(0, 100, (2, records))
    target = (a > b) ^ (generator.random(records) < 0.2)
    op = generator.choice(["+", "-"], records)
    return {"a": a, "b": b, "op": op, "out": target.astype(np.int64)}, target, generator.random(records) < 0.7


def test_scores_equal_scikit_learn_on_random_predicates():
    """AUC and average precision equal scikit-learn's; swapping the predicate's sense does not."""
    generator = np.random.default_rng(4)
    target = generator.random(300) < 0.3
    matrix = generator.random((300, 30)) < generator.random(30) * 0.8 + 0.1
    for fires, score in zip(matrix.T, score_predicates(matrix, target), strict=True):
        assert score.auc == pytest.approx(roc_auc_score(target, fires))
        assert score.ap_lift == pytest.approx(average_precision_score(target, fires) - target.mean())
        assert score.separation == pytest.approx((fires[target].mean() - fires[~target].mean()) / fires.std())
    assert score.auc != pytest.approx(roc_auc_score(target, ~fires))


def test_every_text_ends_in_the_table_or_in_the_refusals_with_its_reason():
    """One fate a text: duplicates, constants, no predicates, weak, near-duplicates, a restated label."""
    columns, target, train = _data()
    table, refusals = build_table(TEXTS, columns, target, train, prompt_columns=frozenset({"a", "b", "op"}))
    reasons = {refusal.text: refusal.reason.split(":")[0] for refusal in refusals}
    kept = [predicate.text for predicate in table.predicates]
    assert sorted([*kept, *reasons]) == sorted(TEXTS)
    assert {text: reasons[text] for text in ("b < a", "a >= 0", "a +", "out > 0")} == {
        **{"b < a": "duplicate", "a >= 0": "constant"},
        **{"a +": "predicate refused", "out > 0": "restates the label"},
    }
    assert {"a > b", "b >= 5"} <= set(kept)
    assert (table.matrix[:, kept.index("a > b")] == (columns["a"] > columns["b"])).all()
    assert all("\n" not in refusal.reason for refusal in refusals)
    assert table.matrix.shape == (2000, len(kept)) == (2000, len(table.scores))


def test_a_perfect_predicate_of_the_prompt_stays():
    """Only an output column can restate the label: the true rule over the prompt is what one looks for."""
    columns, _, train = _data()
    table, _ = build_table(["a > b", "a >= 50"], columns, (columns["a"] > columns["b"]), train)
    assert {str(one): score.auc for one, score in zip(table.predicates, table.scores, strict=True)}[
        "a > b"
    ] == 1.0


def test_of_near_duplicates_the_better_scored_stays(monkeypatch):
    """`a >= 50` and `a >= 51` correlate above 0.9; the one that scores higher stays, in either order."""
    columns, _, train = _data()
    target = columns["a"] >= 51
    monkeypatch.setattr(predicate_table, "CORRELATION", 0.95)
    for texts in (["a >= 50", "a >= 51"], ["a >= 51", "a >= 50"]):
        table, refusals = build_table(texts, columns, target, train)
        assert [predicate.text for predicate in table.predicates] == ["a >= 51"]
        assert refusals[0].reason.startswith("near-duplicate: |φ| 0.9")


def test_mad_outliers_are_the_rare_ones(monkeypatch):
    """Among balanced predicates one that fires on two of 3,000 records is an outlier; a 10 % one is not."""
    columns, target, train = _data(3000)
    columns = columns | {"rare": (np.arange(3000) < 2).astype(np.int64)}
    train = np.ones(3000, dtype=bool)
    texts = [*(f"a >= {cut}" for cut in range(10, 100, 10)), "rare == 1"]
    monkeypatch.setattr(predicate_table, "WEAK_AUC", 0.0)
    _, refusals = build_table(texts, columns, target, train)
    assert [(one.text, one.reason.split(":")[0]) for one in refusals] == [("rare == 1", "outlier")]


def test_the_test_split_changes_neither_selection_nor_scores():
    """Rewriting every test row and label leaves predicates, scores and refusals as they were."""
    columns, target, train = _data()
    other_columns, other_target, _ = _data(seed=99)
    mixed = {name: np.where(train, columns[name], other_columns[name]) for name in columns}
    mixed_target = np.where(train, target, ~other_target)
    first, first_refusals = build_table(TEXTS, columns, target, train)
    second, second_refusals = build_table(TEXTS, mixed, mixed_target, train)
    assert (first.predicates, first.scores, first_refusals) == (
        second.predicates,
        second.scores,
        second_refusals,
    )
    assert (first.matrix[~train] != second.matrix[~train]).any()
    changed, _ = build_table(TEXTS, columns, np.where(train, ~target, target), train)
    assert first.scores != changed.scores, "train rows do change them"


def test_a_one_sided_target_scores_nothing_and_no_texts_are_an_empty_table():
    """Where every train record has one outcome a predicate is kept at chance; a table of nothing is no error."""
    columns, target, train = _data()
    for one_sided in (target & ~train, target | train):
        table, refusals = build_table(["a > b"], columns, one_sided, train)
        assert ([each.text for each in table.predicates], refusals) == (["a > b"], ())
        assert [score.auc for score in table.scores] == [0.5]
    table, refusals = build_table([], columns, target, train)
    assert (table.matrix.shape, table.predicates, refusals) == ((2000, 0), (), ())

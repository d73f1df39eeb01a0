"""Cuts are round numbers near quantiles, and every predicate made of a column is of the closed language."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mecharule_ops.predicates.atoms import complement
from mecharule_ops.predicates.cuts import (
    NEAR,
    PredicateColumns,
    column_predicates,
    evaluated,
    round_cuts,
    roundest,
)

EVERY = np.arange(1000)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (1.37, 1.62, 1.5),
        (1.9, 2.2, 2.0),
        (0.031, 0.044, 0.04),
        (-3.3, -2.8, -3.0),
        (97.0, 112.0, 100.0),
        (-0.2, 0.4, 0.0),
        (1.234, 1.234, 1.234),
    ],
)
def test_the_roundest_number_of_a_span(low: float, high: float, expected: float) -> None:
    """Worked by hand."""
    assert roundest(low, high) == expected


@given(st.floats(-1e4, 1e4), st.floats(1e-3, 1e3))
def test_the_roundest_number_lies_in_its_span(low: float, width: float) -> None:
    """To the rounding of its last digit."""
    assert low - 1e-9 <= roundest(low, low + width) <= low + width + 1e-9


def test_cuts_lie_near_their_quantiles() -> None:
    """Each within four hundredths of a level; zero is a cut where both signs occur; a constant has none."""
    values = np.random.default_rng(0).gamma(2, 2, 1000)
    cuts = round_cuts(values, (0.25, 0.5, 0.75))
    assert len(cuts) == 3
    for cut, level in zip(cuts, (0.25, 0.5, 0.75), strict=True):
        assert abs((values < cut).mean() - level) <= NEAR + 0.01
        assert len(f"{cut:g}") <= 4
    assert 0.0 in round_cuts(values - 1.0)
    assert round_cuts(np.full(9, 3.0)) == ()
    assert round_cuts(np.full(9, np.nan)) == ()


def test_columns_give_predicates_by_their_type() -> None:
    """Numbers both directions, texts by value where 3 % have it, conditions by name; only train decides."""
    columns = {
        "lead_1": np.random.default_rng(1).gamma(2, 1, 1000),
        "runner_up_1": np.where(EVERY < 20, "9", np.where(EVERY < 400, "7", "+")),
        "first": EVERY % 2 == 0,
    }
    texts = column_predicates(columns, EVERY)
    assert {"runner_up_1 == '7'", "runner_up_1 == '+'", "first"} <= set(texts)
    assert "runner_up_1 == '9'" not in texts
    assert "runner_up_1 == '9'" in column_predicates(columns, np.arange(100))
    table = evaluated(texts, columns)
    assert table.texts == texts
    cuts = [text.split(" < ")[1] for text in texts if " < " in text]
    assert cuts
    for cut in cuts:
        below, above = table.texts.index(f"lead_1 < {cut}"), table.texts.index(f"lead_1 >= {cut}")
        assert (table.matrix[:, below] == ~table.matrix[:, above]).all()
        assert (table.matrix[:, below] == (columns["lead_1"] < float(cut))).all()


def test_a_record_without_a_value_is_on_neither_side() -> None:
    """NaN is neither below nor above a cut."""
    column = np.linspace(-1, 1, 100)
    column[:10] = np.nan
    table = evaluated(column_predicates({"drop_3": column}, np.arange(100)), {"drop_3": column})
    assert not table.matrix[:10].any()


def test_tables_are_laid_side_by_side() -> None:
    """A text of both is kept once; repeated texts are refused."""
    left = PredicateColumns(texts=("a", "b"), matrix=np.array([[True, False]]))
    both = left.beside(PredicateColumns(texts=("b", "c"), matrix=np.array([[True, True]])))
    assert both.texts == ("a", "b", "c")
    assert both.matrix.tolist() == [[True, False, True]]
    with pytest.raises(AssertionError):
        PredicateColumns(texts=("a", "a"), matrix=np.zeros((1, 2), bool))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a % 3 == 0", "a % 3 != 0"),
        ("a % b == 0", None),
        ("a / 0 > 1", None),
        ("1 <= a < 5", None),
        ("carry(a, b)", None),
    ],
)
def test_complements(text: str, expected: str | None) -> None:
    """One comparison is turned round; one that may have no value, a chain and a call are not."""
    assert complement(text) == expected


def test_complements_are_true_where_the_predicate_is_false() -> None:
    """On integers, for each comparison."""
    columns = {"a": np.arange(-20, 20), "b": np.arange(40) % 7}
    for text in ["a < b", "a <= 3", "a > b", "a >= b", "a == b", "a != 4", "a in (1, 2)", "digit(a, 0) == 3"]:
        turned = complement(text)
        assert turned is not None
        one, other = evaluated([text], columns).matrix, evaluated([turned], columns).matrix
        assert (one == ~other).all(), text

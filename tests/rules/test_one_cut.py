"""One threshold on one number, against every threshold tried."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mecharule_ops.rules.matthews import best_cut, mcc

NUMBERS = st.one_of(st.integers(-3, 3).map(float), st.just(np.nan))


@given(st.lists(st.tuples(NUMBERS, st.booleans()), min_size=1, max_size=30))
def test_no_cut_is_better(rows: list[tuple[float, bool]]) -> None:
    """Every half and whole number tried as the threshold, with ties and missing numbers; never below chance."""
    values = np.array([number for number, _ in rows])
    target = np.array([flips for _, flips in rows])
    tried = [mcc(values > cut, target) for cut in [-np.inf, *np.arange(-4, 5, 0.5), np.inf]]
    assert mcc(values > best_cut(values, target), target) == pytest.approx(max(tried))


def test_of_equal_cuts_the_one_that_fires_least() -> None:
    """The cut lies half way between two values; without one better than chance nothing fires."""
    values = np.array([1.0, 2.0, 3.0, 4.0])
    assert best_cut(values, np.array([False, False, True, True])) == 2.5
    assert best_cut(values, np.array([True, True, False, False])) == np.inf
    assert best_cut(np.full(4, np.nan), np.array([True, False, True, False])) == np.inf
    assert best_cut(np.array([2.0, np.nan]), np.array([True, False])) == -np.inf

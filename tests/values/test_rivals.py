"""Rival predictions: rates and thresholds by hand, what a record tells, comparisons that base rates leave alone."""

from __future__ import annotations

import numpy as np
import pytest

from mecharule_ops.rules.rivals import best_fit, bits, difference, duel


def test_the_best_predicate_speaks_for_its_family_either_way_round() -> None:
    """The one of largest |MCC|, negated where the unit flips less; a threshold of half the difference."""
    flips = np.repeat([True, False], 20)
    opposite, useless = ~flips, np.tile([True, False], 20)
    fit = best_fit(("a", "b"), np.array([useless, opposite]), flips)
    assert fit is not None
    assert fit.condition == "not (b)"
    assert (fit.where.holds.flips, fit.where.holds.n, fit.where.elsewhere.flips) == (20, 20, 0)
    assert fit.rates == (20.5 / 21, 0.5 / 21)
    assert fit.threshold == 0.48
    assert best_fit(("a",), np.array([np.arange(40) < 5]), flips) is None


def test_records_on_which_rivals_agree_tell_nothing() -> None:
    """And one bit where two are certain of opposite outcomes; one rival alone has nothing to be told from."""
    told = bits(np.array([[1.0, 0.3, 0.9], [0.0, 0.3, 0.1]]))
    assert told.tolist() == pytest.approx([1.0, 0.0, 0.531], abs=1e-3)
    assert bits(np.array([[0.2, 0.7]])).tolist() == [0.0, 0.0]


def test_threshold_and_corrected_p_support_and_the_interval_refutes() -> None:
    """By hand: 30 of 40 against 10 of 60."""
    holds = np.arange(100) < 40
    flips = np.concatenate([np.arange(40) < 30, np.arange(60) < 10])
    told = difference(holds, flips, 0.05)
    assert told.value == pytest.approx(30 / 40 - 10 / 60)
    assert told.low < told.value < told.high
    assert told.state(0.3, 0.01, 0.05) == "supported"
    assert told.state(0.3, 0.2, 0.05) == "undecided"
    assert told.state(0.9, 0.01, 0.05) == "refuted"


def test_a_rare_rival_does_not_win_by_the_base_rate() -> None:
    """A narrow condition and a broad one of one flip rate are not told apart, though most records do not flip."""
    generator = np.random.default_rng(0)
    narrow, broad = generator.random(2000) < 0.05, generator.random(2000) < 0.6
    assert duel(narrow, broad, generator.random(2000) < 0.2).state(0.01) == "undecided"
    assert duel(narrow, broad, narrow).state(0.01) == "supported"
    assert duel(narrow, broad, broad).state(0.01) == "refuted"
    assert duel(narrow, narrow, narrow).value is None

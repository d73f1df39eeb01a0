"""The trees reach a planted rule, say nothing on shuffled targets, and never look at held-out targets."""

from __future__ import annotations

import numpy as np
import pytest

from mecharule_ops.errors import UsageError
from mecharule_ops.rules.algebra import mcc
from mecharule_ops.rules.free_form_trees import TreeSettings, free_form_trees
from mecharule_ops.rules.matthews import best_threshold

SMALL = TreeSettings(depths=(2, 4), rounds=(20, 40), folds=3)
TRAIN, TEST = np.arange(700), np.arange(700, 1000)


def planted(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Twenty 0/1 columns and a target of two clauses over four of them."""
    matrix = np.random.default_rng(seed).random((1000, 20)) < 0.5
    return matrix.astype(np.float32), (matrix[:, 0] & matrix[:, 1]) | (matrix[:, 2] & matrix[:, 3])


def test_it_reaches_a_planted_rule() -> None:
    """Held-out MCC above .95 on a target that the columns make."""
    features, target = planted(0)
    found = free_form_trees(features, target, TRAIN, TEST, np.random.default_rng(0), SMALL)
    assert found.held_out is not None
    assert found.held_out.mcc > 0.95
    assert found.held_out.n == 300
    assert (found.trees.depth in SMALL.depths, found.trees.rounds in SMALL.rounds) == (True, True)


@pytest.mark.parametrize("seed", range(3))
def test_on_shuffled_targets_its_interval_holds_zero(seed: int) -> None:
    """With the link between columns and target broken there is nothing to find."""
    features, target = planted(seed)
    shuffled = np.random.default_rng(seed).permutation(target)
    found = free_form_trees(features, shuffled, TRAIN, TEST, np.random.default_rng(0), SMALL)
    assert found.held_out is not None
    assert found.held_out.low <= 0 <= found.held_out.high


def test_it_reads_numbers_and_missing_values() -> None:
    """A threshold on a real column, and whether a value is there at all."""
    rng = np.random.default_rng(1)
    column = rng.normal(size=(1000, 3)).astype(np.float32)
    gone = rng.random(1000) < 0.2
    column[gone, 0] = np.nan
    found = free_form_trees(column, (column[:, 0] > 0.4) | gone, TRAIN, TEST, np.random.default_rng(0), SMALL)
    assert found.held_out is not None
    assert found.held_out.mcc > 0.9


def test_held_out_targets_choose_nothing() -> None:
    """Depth, rounds and threshold stay when held-out targets are inverted; the score does not."""
    features, target = planted(2)
    turned = target.copy()
    turned[TEST] = ~turned[TEST]
    one, other = (
        free_form_trees(features, each, TRAIN, TEST, np.random.default_rng(0), SMALL)
        for each in (target, turned)
    )
    assert one.trees == other.trees
    assert one.held_out is not None
    assert other.held_out is not None
    assert other.held_out.mcc == pytest.approx(-one.held_out.mcc)


def test_too_few_held_out_records_give_no_interval() -> None:
    """Then there is no score to show."""
    features, target = planted(0)
    assert (
        free_form_trees(features, target, TRAIN, TEST[:15], np.random.default_rng(0), SMALL).held_out is None
    )


@pytest.mark.parametrize("seed", range(5))
def test_the_threshold_is_the_best_of_all(seed: int) -> None:
    """No observed value gives a higher MCC, ties in the guesses included."""
    rng = np.random.default_rng(seed)
    guessed = np.round(rng.random(60), 1)
    target = rng.random(60) < guessed
    threshold, value = best_threshold(guessed, target)
    assert value == pytest.approx(max(mcc(guessed >= cut, target) for cut in guessed))
    assert value == pytest.approx(mcc(guessed >= threshold, target))


def test_senseless_settings_are_refused() -> None:
    """Descending rounds, no depth, one fold."""
    for wrong in ({"rounds": (40, 20)}, {"depths": ()}, {"folds": 1}):
        with pytest.raises(UsageError, match="expected depths"):
            TreeSettings(**wrong)

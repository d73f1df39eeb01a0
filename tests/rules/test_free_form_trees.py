"""The trees reach a planted rule, say nothing on shuffled targets, and never look at held-out targets."""

import numpy as np
import pytest

from mecharule_ops.rules import algebra, interval, matthews
from mecharule_ops.rules import unit_rules as module
from mecharule_ops.rules.unit_rules import Target, free_form_trees

TRAIN, TEST = np.arange(700), np.arange(700, 1000)


@pytest.fixture(autouse=True)
def small_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("DEPTHS", (2, 4)), ("ROUNDS", (20, 40)), ("FOLDS", 3)):
        monkeypatch.setattr(module, name, value)


def planted(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Twenty 0/1 columns and a target of two clauses over four of them."""
    matrix = np.random.default_rng(seed).random((1000, 20)) < 0.5
    return matrix.astype(np.float32), (matrix[:, 0] & matrix[:, 1]) | (matrix[:, 2] & matrix[:, 3])


def scored(features: np.ndarray, flips: np.ndarray) -> interval.MccInterval | None:
    return free_form_trees(features, Target(flips=flips, train=TRAIN, test=TEST), np.random.default_rng(0), 0)


def test_it_reaches_a_planted_rule() -> None:
    """Held-out MCC above .95 on a target that the columns make."""
    features, target = planted(0)
    held_out = scored(features, target)
    assert held_out.mcc > 0.95
    assert held_out.n == 300


@pytest.mark.parametrize("seed", range(3))
def test_on_shuffled_targets_its_interval_holds_zero(seed: int) -> None:
    """With the link between columns and target broken there is nothing to find."""
    features, target = planted(seed)
    held_out = scored(features, np.random.default_rng(seed).permutation(target))
    assert held_out.low <= 0 <= held_out.high


def test_it_reads_numbers_and_missing_values() -> None:
    """A threshold on a real column, and whether a value is there at all."""
    rng = np.random.default_rng(1)
    column = rng.normal(size=(1000, 3)).astype(np.float32)
    gone = rng.random(1000) < 0.2
    column[gone, 0] = np.nan
    assert scored(column, (column[:, 0] > 0.4) | gone).mcc > 0.9


def test_held_out_targets_choose_nothing() -> None:
    """Depth, rounds and threshold stay when held-out targets are inverted; the score does not."""
    features, target = planted(2)
    turned = target.copy()
    turned[TEST] = ~turned[TEST]
    one, other = (scored(features, each) for each in (target, turned))
    assert other.mcc == pytest.approx(-one.mcc)


@pytest.mark.parametrize("seed", range(5))
def test_the_threshold_is_the_best_of_all(seed: int) -> None:
    """No observed value gives a higher MCC, ties in the guesses included."""
    rng = np.random.default_rng(seed)
    guessed = np.round(rng.random(60), 1)
    target = rng.random(60) < guessed
    threshold, value = matthews.best_threshold(guessed, target)
    assert value == pytest.approx(max(algebra.mcc(guessed >= cut, target) for cut in guessed))
    assert value == pytest.approx(algebra.mcc(guessed >= threshold, target))

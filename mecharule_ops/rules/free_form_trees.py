"""How well the columns of a family can predict at all: boosted trees of any form, chosen inside train, scored once.

Depth, rounds and the threshold on the probability come from cross-validation on the train records: the threshold
maximises the MCC of the pooled out-of-fold predictions (nested choice; Cawley and Talbot 2010). A yardstick, no upper
bound: another learner may do better, and a short rule of the same columns sometimes does.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import xgboost as xgb
from jaxtyping import Bool, Float32, Int

from mecharule_ops.rules.boosting import parameters
from mecharule_ops.rules.interval import MccInterval, mcc_interval
from mecharule_ops.rules.matthews import MARGIN, best_threshold
from mecharule_ops.rules.short_rules import folds_of

DEPTHS, ROUNDS = (2, 5), (30, 60, 100)
"""What cross-validation may choose from, rounds ascending."""
FOLDS = 4


def free_form_trees(
    features: Float32[np.ndarray, "record column"],
    target: Bool[np.ndarray, " record"],
    train: Int[np.ndarray, " train"],
    test: Int[np.ndarray, " test"],
    generator: np.random.Generator,
    seed: int,
) -> MccInterval | None:
    """Return the held-out MCC of trees fitted on train; NaN is a missing value. Needs both sides in train.

    None where there are too few held-out records for an interval. Cost: no model calls.
    """
    known, wanted = features[train], target[train]
    folds = folds_of(wanted, FOLDS, generator)
    candidates = []
    for (depth, rounds), guessed in _out_of_fold(known, wanted, folds, seed):
        threshold, value = best_threshold(guessed, wanted)
        candidates.append((value, depth, rounds, threshold))
    best = max(value for value, *_ in candidates)
    _, depth, rounds, threshold = next(each for each in candidates if each[0] > best - MARGIN)
    booster = xgb.train(_parameters(depth, seed), _data(known, wanted), rounds)
    return mcc_interval(booster.predict(_data(features[test])) >= threshold, target[test])


def _out_of_fold(
    features: Float32[np.ndarray, "record column"],
    target: Bool[np.ndarray, " record"],
    folds: Int[np.ndarray, " record"],
    seed: int,
) -> Iterator[tuple[tuple[int, int], Float32[np.ndarray, " record"]]]:
    """((depth, rounds), guesses): each record's by trees that have not seen it; fewer rounds are a prefix of more."""
    guesses = {choice: np.zeros(len(target), np.float32) for choice in product(DEPTHS, ROUNDS)}
    for fold in range(FOLDS):
        out = folds == fold
        data, rest = _data(features[~out], target[~out]), _data(features[out])
        for depth in DEPTHS:
            booster = xgb.train(_parameters(depth, seed), data, ROUNDS[-1])
            for rounds in ROUNDS:
                guesses[depth, rounds][out] = booster.predict(rest, iteration_range=(0, rounds))
    yield from guesses.items()


def _data(
    features: Float32[np.ndarray, "record column"], target: Bool[np.ndarray, " record"] | None = None
) -> xgb.DMatrix:
    label = None if target is None else target.astype(np.float32)
    return xgb.DMatrix(features, label=label, nthread=1)


def _parameters(depth: int, seed: int) -> dict[str, object]:
    """Each tree is grown on a drawn four fifths of the records."""
    return {**parameters(depth, seed), "subsample": 0.8}

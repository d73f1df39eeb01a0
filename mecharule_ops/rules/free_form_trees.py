"""How well the columns of a family can predict at all: boosted trees of any form, chosen inside train, scored once.

Depth, rounds and the threshold on the probability come from cross-validation on the train records: the threshold
maximises the MCC of the pooled out-of-fold predictions (nested choice; Cawley and Talbot 2010). A yardstick, no upper
bound: another learner may do better, and a short rule of the same columns sometimes does.
"""

from __future__ import annotations

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

    def fitted(records: Int[np.ndarray, " some"], depth: int, rounds: int) -> xgb.Booster:
        """Each tree is grown on a drawn four fifths of the records."""
        data = xgb.DMatrix(features[records], label=target[records].astype(np.float32), nthread=1)
        return xgb.train({**parameters(depth, seed), "subsample": 0.8}, data, rounds)

    wanted = target[train]
    folds = folds_of(wanted, FOLDS, generator)
    guessed = {choice: np.zeros(len(train), np.float32) for choice in product(DEPTHS, ROUNDS)}
    for fold, depth in product(range(FOLDS), DEPTHS):
        out = folds == fold
        booster, unseen = fitted(train[~out], depth, ROUNDS[-1]), xgb.DMatrix(features[train[out]], nthread=1)
        for rounds in ROUNDS:  # Fewer are a prefix of more.
            guessed[depth, rounds][out] = booster.predict(unseen, iteration_range=(0, rounds))
    found = {choice: best_threshold(guess, wanted) for choice, guess in guessed.items()}
    best = max(value for _, value in found.values())
    (depth, rounds), (threshold, _) = next(one for one in found.items() if one[1][1] > best - MARGIN)
    said = fitted(train, depth, rounds).predict(xgb.DMatrix(features[test], nthread=1))
    return mcc_interval(said >= threshold, target[test])

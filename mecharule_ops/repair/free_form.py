"""A gate of any form: trees that say, unit by unit, whether its ablation fixes, breaks or leaves a record.

What it reaches beside short rules over the same columns is the price of reading them. The unit with the largest
P(fix) − h · P(break) is ablated where that exceeds a threshold, which other records choose; or every unit above it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xgboost as xgb
from jaxtyping import Bool, Float, Float32, Int

from mecharule_ops.repair.choosing import gained
from mecharule_ops.repair.gates import NOTHING, Acts, Policy, after
from mecharule_ops.types import Neuron

_PARAMETERS = {
    "objective": "multi:softprob",
    "num_class": 3,
    "max_depth": 6,
    "eta": 0.1,
    "subsample": 0.8,
    "colsample_bynode": 0.3,
    "tree_method": "hist",
    "verbosity": 0,
}
_ROUNDS = 80
THRESHOLDS = (0.0, 0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.1, 0.15, 0.2, 0.3)
"""Expected gains above which a unit may act."""


@dataclass(frozen=True, slots=True, eq=False)
class UnitTrees:
    """The trees of one unit."""

    booster: xgb.Booster
    threads: int

    def expected(
        self, features: Float32[np.ndarray, "record column"], harm: float
    ) -> Float[np.ndarray, " record"]:
        """P(fix) − harm · P(break)."""
        likely = self.booster.predict(xgb.DMatrix(features, nthread=self.threads))
        return (likely[:, 2] - harm * likely[:, 0]).astype(float)


def unit_trees(
    features: Float32[np.ndarray, "record column"],
    value: Int[np.ndarray, " record"],
    seed: int,
    threads: int = 1,
) -> UnitTrees:
    """Trees of the value (+1 fixed, −1 broken, 0) of one unit."""
    data = xgb.DMatrix(features, label=value + 1, nthread=threads)
    return UnitTrees(xgb.train({**_PARAMETERS, "seed": seed, "nthread": threads}, data, _ROUNDS), threads)


def acting_above(expected: Float[np.ndarray, "unit record"], threshold: float) -> Int[np.ndarray, " record"]:
    """The unit with the largest expected gain where it exceeds the threshold, else nothing."""
    return np.where(expected.max(0) > threshold, expected.argmax(0), NOTHING)


def units_above(
    units: Sequence[Neuron], expected: Float[np.ndarray, "unit record"], threshold: float, policy: Policy
) -> Acts:
    """On each record the units whose expected gain exceeds the threshold, the largest first, or only that one."""
    most = 1 if policy is Policy.ONE else len(units)
    order = np.argsort(-expected, axis=0, kind="stable")[:most]
    return tuple(
        tuple(units[one] for one in ranked if gains[one] > threshold)
        for ranked, gains in zip(order.T.tolist(), expected.T, strict=True)
    )


def best_threshold(
    expected: Float[np.ndarray, "unit record"],
    alone: Bool[np.ndarray, "unit record"],
    before: Bool[np.ndarray, " record"],
    harm: float,
) -> float:
    """The threshold with the largest fixed − harm · broken of one unit a record; the highest on a tie."""

    def value(threshold: float) -> tuple[float, float]:
        return gained(after(acting_above(expected, threshold), alone, before), before, harm), threshold

    return max(THRESHOLDS, key=value)

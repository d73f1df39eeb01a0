"""A gate of any form: trees that say, unit by unit, whether its ablation fixes, breaks or leaves a record.

Made and thresholded on the records that make gates; what it reaches beside short rules over the same columns is the
price of reading them. The unit with the largest
P(fix) − h · P(break) is ablated where that exceeds a threshold, which other records choose; or every unit above it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xgboost as xgb
from jaxtyping import Bool, Float, Int

from mecharule_ops.findings.repair_outcome import ControlKind, Policy, RepairControl
from mecharule_ops.repair.gates import NOTHING, Acts, after, gained, most_gained
from mecharule_ops.repair.material import Material
from mecharule_ops.repair.readings import Readings, predicates_of
from mecharule_ops.repair.testing import Tested, labels_under
from mecharule_ops.rules.boosting import parameters
from mecharule_ops.types import Neuron

_OF_THREE = {"objective": "multi:softprob", "num_class": 3, "subsample": 0.8, "colsample_bynode": 0.3}
"""What its trees have beyond all trees here: fixed, broken or neither, of drawn records and fewer columns."""
_DEPTH, _ROUNDS = 6, 80
THRESHOLDS = (0.0, 0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.1, 0.15, 0.2, 0.3)
"""Expected gains above which a unit may act."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UnitTrees:
    """The trees of one unit."""

    unit: Neuron
    texts: tuple[str, ...]
    """Predicates that they read, beside the numbers; cut on the find records."""
    booster: xgb.Booster

    @classmethod
    def of(
        cls,
        unit: Neuron,
        texts: tuple[str, ...],
        readings: Readings,
        value: Int[np.ndarray, " find"],
        seed: int,
    ) -> UnitTrees:
        """Trees of the value (+1 fixed, −1 broken, 0) of the first records that were read."""
        features = readings.features(unit, texts)[: len(value)]
        data = xgb.DMatrix(features, label=value + 1, nthread=1)
        booster = xgb.train({**parameters(_DEPTH, seed), **_OF_THREE}, data, _ROUNDS)
        return cls(unit=unit, texts=texts, booster=booster)

    def expected(self, readings: Readings, harm: float) -> Float[np.ndarray, " record"]:
        """P(fix) − harm · P(break)."""
        likely = self.booster.predict(xgb.DMatrix(readings.features(self.unit, self.texts), nthread=1))
        return (likely[:, 2] - harm * likely[:, 0]).astype(float)


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


def gain_threshold(
    expected: Float[np.ndarray, "unit record"],
    alone: Bool[np.ndarray, "unit record"],
    before: Bool[np.ndarray, " record"],
    harm: float,
) -> float:
    """The threshold with the largest fixed − harm · broken of one unit a record; the highest on a tie."""

    def labels(threshold: float) -> Bool[np.ndarray, " record"]:
        return after(np.where(expected.max(0) > threshold, expected.argmax(0), NOTHING), alone, before)

    return most_gained(THRESHOLDS, labels, before, harm)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FreeForm:
    """Trees of every unit with a threshold, before the test records are opened."""

    trees: tuple[UnitTrees, ...]
    threshold: float
    policy: Policy

    def control(self, tested: Tested) -> RepairControl:
        """What they do on the test records. Cost: readings, and a forward where a unit acts."""
        found = tested.found
        readings, harm = found.readings(found.test), found.request.learning.harm
        expected = np.stack([trees.expected(readings, harm) for trees in self.trees])
        acts = units_above(found.units, expected, self.threshold, self.policy)
        return tested.ablating(ControlKind.MODEL, "trees over the same columns", acts, {})


def free_form(found: Material) -> FreeForm:
    """Trees from the find records; their threshold and policy from the choose records.

    Cost: no model call but a forward for each choose record on which several units exceed the threshold.
    """
    readings, split = found.readings(found.learn), len(found.find)
    prompt = found.predicates(readings, found.learn)
    good, harm = found.good[found.learn], found.request.learning.harm
    trees = []
    for unit, alone in found.known.items():
        texts = predicates_of(readings, unit, prompt, np.arange(split)).texts
        value = alone[:split].astype(np.int64) - good[:split]
        trees.append(UnitTrees.of(unit, texts, readings, value, found.run.config.seed))
    gains = np.stack([each.expected(readings, harm)[split:] for each in trees])
    threshold = gain_threshold(gains, found.alone[:, split:], good[split:], harm)
    known = {unit: alone[split:] for unit, alone in found.known.items()}

    def gain(policy: Policy) -> float:
        acts = units_above(found.units, gains, threshold, policy)
        return gained(labels_under(found, found.choose, acts, known), good[split:], harm)

    return FreeForm(trees=tuple(trees), threshold=threshold, policy=max(Policy, key=gain))

"""A free-form gate beside the rules: trees over the same columns, made and thresholded on the same records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mecharule_ops.findings.repair import Control, ControlKind
from mecharule_ops.pipeline.repair_material import Material, RepairRequest, prompt_predicates
from mecharule_ops.pipeline.repair_testing import Tested, acted, beside, labels_under
from mecharule_ops.predicates.cuts import evaluated
from mecharule_ops.repair.choosing import gained
from mecharule_ops.repair.free_form import UnitTrees, best_threshold, unit_trees, units_above
from mecharule_ops.repair.gates import Policy
from mecharule_ops.repair.readings import Readings, predicates_of
from mecharule_ops.types import Neuron


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FreeForm:
    """Trees of every unit with a threshold, before the test records are opened."""

    trees: tuple[UnitTrees, ...]
    texts: tuple[tuple[str, ...], ...]
    """Of each unit the predicates that its trees read; cut on the find records."""
    threshold: float
    policy: Policy

    def control(self, found: Material, request: RepairRequest, tested: Tested) -> Control:
        """What they do on the test records. Cost: readings, and a forward where a unit acts."""
        readings = found.readings(request, found.test)
        expected = np.stack(
            [
                trees.expected(features_of(readings, unit, texts), request.learning.harm)
                for unit, trees, texts in zip(found.units, self.trees, self.texts, strict=True)
            ]
        )
        acts = units_above(found.units, expected, self.threshold, self.policy)
        labels = labels_under(found, request, found.test, acts, {})
        return beside(found, tested, ControlKind.MODEL, "trees over the same columns", labels, acted(acts))


def free_form(found: Material, request: RepairRequest) -> FreeForm:
    """Trees from the find records; their threshold and policy from the choose records.

    Cost: no model call but a forward for each choose record on which several units exceed the threshold.
    """
    readings, split = found.readings(request, found.learn), len(found.find)
    prompt = prompt_predicates(found, readings, found.learn)
    good, harm = found.good[found.learn], request.learning.harm
    trees, texts, expected = list[UnitTrees](), list[tuple[str, ...]](), list[np.ndarray]()
    for unit, alone in zip(found.units, found.alone, strict=True):
        texts.append(predicates_of(readings, unit, prompt, np.arange(split)).texts)
        features = features_of(readings, unit, texts[-1])
        value = alone[:split].astype(np.int64) - good[:split]
        trees.append(unit_trees(features[:split], value, found.run.config.seed))
        expected.append(trees[-1].expected(features[split:], harm))
    gains, known = np.stack(expected), dict(zip(found.units, found.alone[:, split:], strict=True))
    threshold = best_threshold(gains, found.alone[:, split:], good[split:], harm)

    def gain(policy: Policy) -> float:
        acts = units_above(found.units, gains, threshold, policy)
        return gained(labels_under(found, request, found.choose, acts, known), good[split:], harm)

    policy = max(Policy, key=gain)
    return FreeForm(trees=tuple(trees), texts=tuple(texts), threshold=threshold, policy=policy)


def features_of(readings: Readings, unit: Neuron, texts: Sequence[str]) -> np.ndarray:
    """The predicates, and the numbers as they are."""
    columns = readings.of(unit)
    numbers = [column for column in columns.values() if column.dtype.kind in "if"]
    return np.column_stack([evaluated(texts, columns).matrix, *numbers]).astype(np.float32)

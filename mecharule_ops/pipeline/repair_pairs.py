"""Units whose gates fire on the same records: what ablating both does, measured rather than assumed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from jaxtyping import Bool

from mecharule_ops.findings.repair import PairEffect
from mecharule_ops.pipeline.repair_material import Material, RepairRequest
from mecharule_ops.repair.gates import Gate, units_of
from mecharule_ops.repair.readings import firing
from mecharule_ops.types import Neuron

PAIRS = 6
"""Measured, those that fire together most often."""
LEAST = 10
"""Choose records on which both fire, below which a pair is not measured."""


def pair_effects(found: Material, request: RepairRequest, gates: Sequence[Gate]) -> tuple[PairEffect, ...]:
    """Pairs that fire together most often on the choose records; they choose nothing. Cost: a forward a record."""
    split = len(found.find)
    fires = firing(gates, found.readings(request, found.learn))[:, split:]
    by_unit = _by_unit(gates, fires)
    both = {pair: by_unit[pair[0]] & by_unit[pair[1]] for pair in combinations(by_unit, 2)}
    often = sorted(both, key=lambda pair: -int(both[pair].sum()))[:PAIRS]
    gain = {unit: max(gate.gain for gate in gates if gate.unit == unit) for unit in by_unit}
    made = []
    for pair in often:
        places = np.flatnonzero(both[pair])
        if len(places) < LEAST:
            continue
        first, second = sorted(pair, key=lambda unit: -gain[unit])
        alone = found.alone[found.units.index(first), split + places]
        here = found.choose[places]
        labels = found.engine.evaluate([(first, second)], here.tolist()).labels[0]
        together = request.wanted(labels)
        made.append(
            PairEffect(
                first=first,
                second=second,
                alone=found.paired(here, alone),
                both=found.paired(here, together),
                added=found.paired(here, together, before=alone),
            )
        )
    return tuple(made)


def _by_unit(
    gates: Sequence[Gate], fires: Bool[np.ndarray, "gate record"]
) -> dict[Neuron, Bool[np.ndarray, " record"]]:
    """Where any gate of each unit fires."""
    owners = np.array([str(gate.unit) for gate in gates])
    return {unit: fires[owners == str(unit)].any(0) for unit in units_of(gates)}

"""The test records of a repair: what gates, and what stands beside them, do there, with whole completions.

A completion is made only where something acts; elsewhere the record's own stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int

from mecharule_ops.findings.repair import Control, ControlKind
from mecharule_ops.pipeline.repair_material import Material, RepairRequest
from mecharule_ops.repair.gates import NOTHING, Gate, acting, after, units_of
from mecharule_ops.repair.readings import firing
from mecharule_ops.repair.statistics import Paired
from mecharule_ops.rules.families import Family
from mecharule_ops.types import Neuron


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tested:
    """What the gates did on the test records."""

    acts: Int[np.ndarray, " test"]
    before: Bool[np.ndarray, " test"]
    after: Bool[np.ndarray, " test"]
    completions: dict[int, tuple[int, ...]]
    """By position among the test records, what was written where a gate acted."""
    margins: dict[int, float]
    """Smallest lead of a token of each in reach."""

    @property
    def result(self) -> Paired:
        """Fixed, broken and acted on."""
        return Paired.of(self.before, self.after, self.acts != NOTHING)


def applied(found: Material, request: RepairRequest, units: Sequence[Neuron], acts: np.ndarray) -> Tested:
    """Completions of the test records, each under the unit that acts on it."""
    before = found.good[found.test]
    labels, completions, margins = before.copy(), dict[int, tuple[int, ...]](), dict[int, float]()
    for index, unit in enumerate(units):
        places = np.flatnonzero(acts == index)
        if not len(places):
            continue
        done = found.engine.completions([(unit,)], found.test[places].tolist())
        labels[places] = request.wanted(done.labels[0])
        completions.update(zip(places.tolist(), done.tokens[0], strict=True))
        margins.update(zip(places.tolist(), done.margins[0].tolist(), strict=True))
    return Tested(acts=acts, before=before, after=labels, completions=completions, margins=margins)


def opened_test(found: Material, request: RepairRequest, gates: Sequence[Gate]) -> Tested:
    """The gates on the test records. Cost: readings, and a completion where a gate acts."""
    acts = acting([gate.gain for gate in gates], firing(gates, found.readings(request, found.test)))
    return applied(found, request, [gate.unit for gate in gates], acts)


def always_ablated(found: Material, request: RepairRequest, units: Sequence[Neuron]) -> np.ndarray:
    """The wanted outcome of every test record under each unit."""
    labels = found.engine.evaluate([(unit,) for unit in units], found.test.tolist()).labels
    return request.wanted(labels)


def always_controls(tested: Tested, units: Sequence[Neuron], by_unit: np.ndarray) -> list[Control]:
    """One line a unit."""
    everywhere = np.ones(len(tested.before), bool)
    return [
        Control(kind=ControlKind.ALWAYS, name=str(unit), result=Paired.of(tested.before, labels, everywhere))
        for unit, labels in zip(units, by_unit, strict=True)
    ]


def random_units(found: Material, request: RepairRequest, gates: Sequence[Gate], tested: Tested) -> Control:
    """In the place of each gate's unit a random one of its layer that was not tried."""
    generator = np.random.default_rng([found.run.config.seed, 3])
    taken, drawn = set(found.units), dict[Neuron, Neuron]()
    width = found.run.subject.width(request.basis)
    for unit in units_of(gates):
        layer = (Neuron(request.basis, unit.layer, channel) for channel in range(width))
        free = [other for other in layer if other not in taken]
        drawn[unit] = free[generator.integers(len(free))] if free else unit
        taken.add(drawn[unit])
    result = applied(found, request, [drawn[gate.unit] for gate in gates], tested.acts).result
    return Control(kind=ControlKind.RANDOM_UNITS, name=", ".join(map(str, drawn.values())), result=result)


def shuffled(found: Material, tested: Tested, always: np.ndarray) -> Control:
    """Each gate acts as often as it does, on records drawn at random."""
    acts = np.random.default_rng([found.run.config.seed, 4]).permutation(tested.acts)
    labels = after(acts, always, tested.before)
    return Control(
        kind=ControlKind.SHUFFLED, name="", result=Paired.of(tested.before, labels, acts != NOTHING)
    )


def lead_only(found: Material, request: RepairRequest, gates: Sequence[Gate]) -> Control:
    """Gates that read the leads alone, learned and chosen like the others."""
    nothing = np.full(len(found.test), NOTHING)
    before = found.good[found.test]
    result = Paired.of(before, before, nothing != NOTHING)
    if gates:
        readings = found.readings(request, found.test, Family.CLEAN_RUN).leads_alone
        acts = acting([gate.gain for gate in gates], firing(gates, readings))
        result = applied(found, request, [gate.unit for gate in gates], acts).result
    return Control(kind=ControlKind.LEAD_ONLY, name=f"{len(gates)} clauses", result=result)

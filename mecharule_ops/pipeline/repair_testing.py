"""The test records of a repair: what gates, and what stands beside them, do there, with whole completions.

A completion is made only where something acts; elsewhere the record's own stands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int

from mecharule_ops.findings.repair import Control, ControlKind
from mecharule_ops.pipeline.repair_material import Material, RepairRequest
from mecharule_ops.repair.gates import Acts, Gate, Policy, acting_units, places_of
from mecharule_ops.repair.readings import Readings, firing
from mecharule_ops.repair.statistics import Paired
from mecharule_ops.types import Neuron


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    """What the gates did on the test records."""

    acts: Acts
    after: Bool[np.ndarray, " test"]
    completions: dict[int, tuple[int, ...]]
    """By position among the test records, what was written where a gate acted."""
    margins: dict[int, float]
    """Smallest lead of a token of each in reach."""
    result: Paired
    """Fixed, broken and acted on."""


def acted(acts: Acts) -> Bool[np.ndarray, " record"]:
    """Where anything is ablated."""
    return np.array([bool(units) for units in acts], bool)


def labels_under(
    found: Material,
    request: RepairRequest,
    positions: Int[np.ndarray, " record"],
    acts: Acts,
    alone: Mapping[Neuron, Bool[np.ndarray, " record"]],
) -> Bool[np.ndarray, " record"]:
    """The wanted outcome of the records at some positions, each under its units.

    `alone` says what is known already of records under one unit. Cost: a forward for each other record acted on.
    """
    after = found.good[positions]
    for units, places in places_of(acts).items():
        if len(units) == 1 and units[0] in alone:
            after[places] = alone[units[0]][places]
        else:
            labels = found.engine.evaluate([units], positions[places].tolist()).labels[0]
            after[places] = request.wanted(labels)
    return after


def applied(found: Material, request: RepairRequest, acts: Acts) -> Tested:
    """Completions of the test records, each under the units that are ablated on it."""
    labels, completions, margins = found.good[found.test], dict[int, tuple[int, ...]](), dict[int, float]()
    for units, places in places_of(acts).items():
        done = found.engine.completions([units], found.test[places].tolist())
        labels[places] = request.wanted(done.labels[0])
        completions.update(zip(places, done.tokens[0], strict=True))
        margins.update(zip(places, done.margins[0].tolist(), strict=True))
    result = found.paired(found.test, labels, acted(acts))
    return Tested(acts=acts, after=labels, completions=completions, margins=margins, result=result)


def opened_test(found: Material, request: RepairRequest, gates: Sequence[Gate], policy: Policy) -> Tested:
    """The gates on the test records. Cost: readings, and a completion where a gate acts."""
    fires = firing(gates, found.readings(request, found.test))
    return applied(found, request, acting_units(gates, fires, policy))


def always_ablated(
    found: Material, request: RepairRequest, units: Sequence[Neuron]
) -> dict[Neuron, Bool[np.ndarray, " test"]]:
    """The wanted outcome of every test record under each unit."""
    labels = found.engine.evaluate([(unit,) for unit in units], found.test.tolist()).labels
    return dict(zip(units, request.wanted(labels), strict=True))


def beside(
    found: Material,
    tested: Tested,
    kind: ControlKind,
    name: str,
    after: Bool[np.ndarray, " test"],
    where: Bool[np.ndarray, " test"] | None = None,
) -> Control:
    """A control, from the test records' outcomes under it; it acts everywhere unless it is said where."""
    ahead = found.paired(found.test, tested.after, before=after)
    return Control(kind=kind, name=name, result=found.paired(found.test, after, where), ahead=ahead)


def always_controls(
    found: Material, tested: Tested, alone: Mapping[Neuron, Bool[np.ndarray, " test"]]
) -> list[Control]:
    """One line a unit."""
    return [beside(found, tested, ControlKind.ALWAYS, str(unit), labels) for unit, labels in alone.items()]


def shuffled(
    found: Material,
    request: RepairRequest,
    tested: Tested,
    alone: Mapping[Neuron, Bool[np.ndarray, " test"]],
) -> Control:
    """The same units as often as they are ablated, on records drawn at random."""
    order = np.random.default_rng([found.run.config.seed, 4]).permutation(len(tested.acts))
    acts = [tested.acts[place] for place in order]
    labels = labels_under(found, request, found.test, acts, alone)
    return beside(found, tested, ControlKind.SHUFFLED, "", labels, acted(acts))


def other_policy(
    found: Material,
    request: RepairRequest,
    tested: Tested,
    gates: Sequence[Gate],
    policy: Policy,
    alone: Mapping[Neuron, Bool[np.ndarray, " test"]],
) -> Control:
    """The same gates under the policy that was not chosen."""
    acts = acting_units(gates, firing(gates, found.readings(request, found.test)), policy.other)
    labels = labels_under(found, request, found.test, acts, alone)
    kind = ControlKind.TOGETHER if policy is Policy.ONE else ControlKind.LARGEST
    return beside(found, tested, kind, "", labels, acted(acts))


def other_gates(
    found: Material,
    request: RepairRequest,
    tested: Tested,
    kind: ControlKind,
    gates: Sequence[Gate],
    policy: Policy,
    readings: Callable[[], Readings],
) -> Control:
    """Gates that were learned and chosen otherwise; `readings`, asked where there are any, are of the test records."""
    acts: Acts = [()] * len(found.test)
    if gates:
        acts = acting_units(gates, firing(gates, readings()), policy)
    labels = labels_under(found, request, found.test, acts, {})
    return beside(found, tested, kind, f"{len(gates)} clause{'s' * (len(gates) != 1)}", labels, acted(acts))

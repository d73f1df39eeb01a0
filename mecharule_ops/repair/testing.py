"""The test records of a repair: what gates, and what stands beside them, do there, with whole completions.

A completion is made only where something acts; elsewhere the record's own stands. What ablating two units at once
does is measured on the choose records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from jaxtyping import Bool, Int

from mecharule_ops.findings.repair_outcome import ControlKind, Gate, PairEffect, Policy, RepairControl
from mecharule_ops.mcnemar import Paired
from mecharule_ops.numbers import plural
from mecharule_ops.repair.gates import Acts, acting_units, places_of, units_of
from mecharule_ops.repair.material import Material
from mecharule_ops.repair.readings import Readings, firing
from mecharule_ops.types import Neuron

Alone = Mapping[Neuron, Bool[np.ndarray, " record"]]
"""The wanted outcome of some records under one unit, as far as it is known."""
PAIRS = 6
"""Measured, those that fire together most often."""
LEAST = 10
"""Choose records on which both fire, below which a pair is not measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    """What the gates did on the test records, and what is set beside them there."""

    found: Material
    gates: tuple[Gate, ...]
    policy: Policy
    acts: Acts
    after: Bool[np.ndarray, " test"]
    completions: dict[int, tuple[int, ...]]
    """By position among the test records, what was written where a gate acted."""
    margins: dict[int, float]
    """Smallest lead of a token of each in reach."""
    result: Paired
    """Fixed, broken and acted on."""

    def beside(
        self,
        kind: ControlKind,
        name: str,
        after: Bool[np.ndarray, " test"],
        where: Bool[np.ndarray, " test"] | None = None,
    ) -> RepairControl:
        """A control, from the test records' outcomes under it; it acts everywhere unless it is said where."""
        found = self.found
        ahead = found.paired(found.test, self.after, before=after)
        return RepairControl(kind=kind, name=name, result=found.paired(found.test, after, where), ahead=ahead)

    def ablating(self, kind: ControlKind, name: str, acts: Acts, alone: Alone) -> RepairControl:
        """A control that ablates other units; `alone` is of the test records. Cost: that of `labels_under`."""
        labels = labels_under(self.found, self.found.test, acts, alone)
        return self.beside(kind, name, labels, acted(acts))

    def shuffled(self, alone: Alone) -> RepairControl:
        """The same units as often as they are ablated, on records drawn at random."""
        order = np.random.default_rng([self.found.run.config.seed, 4]).permutation(len(self.acts))
        return self.ablating(ControlKind.SHUFFLED, "", [self.acts[place] for place in order], alone)

    def other_policy(self, alone: Alone) -> RepairControl:
        """The same gates under the policy that was not chosen."""
        fires = firing(self.gates, self.found.readings(self.found.test))
        kind = ControlKind.TOGETHER if self.policy is Policy.ONE else ControlKind.LARGEST
        return self.ablating(kind, "", acting_units(self.gates, fires, self.policy.other), alone)

    def other_gates(
        self, kind: ControlKind, gates: Sequence[Gate], policy: Policy, readings: Callable[[], Readings]
    ) -> RepairControl:
        """Gates learned and chosen otherwise; `readings`, asked where there are any, are of the test records."""
        acts: Acts = [()] * len(self.found.test)
        if gates:
            acts = acting_units(gates, firing(gates, readings()), policy)
        return self.ablating(kind, plural(len(gates), "clause"), acts, {})


def opened_test(found: Material, gates: Sequence[Gate], policy: Policy) -> Tested:
    """The gates on the test records. Cost: readings, and a completion where a gate acts."""
    acts = acting_units(gates, firing(gates, found.readings(found.test)), policy)
    labels, completions, margins = found.good[found.test], dict[int, tuple[int, ...]](), dict[int, float]()
    for units, places in places_of(acts).items():
        done = found.engine.completions([units], found.test[places].tolist())
        labels[places] = found.request.regime.flipped(done.labels[0])
        completions.update(zip(places, done.tokens[0], strict=True))
        margins.update(zip(places, done.margins[0].tolist(), strict=True))
    return Tested(
        found=found,
        gates=tuple(gates),
        policy=policy,
        acts=acts,
        after=labels,
        completions=completions,
        margins=margins,
        result=found.paired(found.test, labels, acted(acts)),
    )


def acted(acts: Acts) -> Bool[np.ndarray, " record"]:
    """Where anything is ablated."""
    return np.array([bool(units) for units in acts], bool)


def labels_under(
    found: Material, positions: Int[np.ndarray, " record"], acts: Acts, alone: Alone
) -> Bool[np.ndarray, " record"]:
    """The wanted outcome of the records at some positions, each under its units.

    `alone` says what is known already of these records. Cost: a forward for each other record acted on.
    """
    after = found.good[positions]
    for units, places in places_of(acts).items():
        if len(units) == 1 and units[0] in alone:
            after[places] = alone[units[0]][places]
        else:
            after[places] = found.outcomes([units], positions[places])[0]
    return after


def always_ablated(found: Material, units: Sequence[Neuron]) -> Alone:
    """The wanted outcome of every test record under each unit."""
    return dict(zip(units, found.outcomes([(unit,) for unit in units], found.test), strict=True))


def pair_effects(found: Material, gates: Sequence[Gate]) -> tuple[PairEffect, ...]:
    """Pairs that fire together most often on the choose records; they choose nothing. Cost: a forward a record."""
    split = len(found.find)
    fires = firing(gates, found.readings(found.learn))[:, split:]
    by_unit = {unit: fires[[gate.unit == unit for gate in gates]].any(0) for unit in units_of(gates)}
    both = {pair: by_unit[pair[0]] & by_unit[pair[1]] for pair in combinations(by_unit, 2)}
    often = sorted(both, key=lambda pair: -int(both[pair].sum()))[:PAIRS]
    gain = {unit: max(gate.gain for gate in gates if gate.unit == unit) for unit in by_unit}
    made = []
    for pair in often:
        places = np.flatnonzero(both[pair])
        if len(places) < LEAST:
            continue
        first, second = sorted(pair, key=lambda unit: -gain[unit])
        alone, here = found.known[first][split + places], found.choose[places]
        together = found.outcomes([(first, second)], here)[0]
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

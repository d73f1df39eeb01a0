"""Gates: ablate a unit only where a clause holds. Where several hold, a policy says which units are ablated.

A unit's rule is the OR of its gates' clauses; each clause has a gain of its own, so that a sure one goes before a
doubtful one. The expected gain is (fixed − h · broken) / fired on the records that chose it, h what one broken answer
weighs. Where one unit at most is ablated on a record, what a set of gates does follows from what each unit does
alone; what several do together is measured, never assumed.

Gates are chosen on records that none was learned from: added one by one, each time the one with which the set fixes
most for what it breaks, while that grows. A greedy choice, checked in tests against every subset of small tables.
Axes: gate, record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence

import numpy as np
from jaxtyping import Bool, Int

from mecharule_ops.findings.repair_outcome import Gate, Policy
from mecharule_ops.types import Neuron

NOTHING = -1
"""In place of a gate where none acts."""

Acts = Sequence[tuple[Neuron, ...]]
"""The units ablated on each record, that of the largest gain first; none where nothing acts."""


def units_of(gates: Sequence[Gate]) -> tuple[Neuron, ...]:
    """Distinct units in the order of the gates."""
    return tuple(dict.fromkeys(gate.unit for gate in gates))


def acting(gains: Sequence[float], fires: Bool[np.ndarray, "gate record"]) -> Int[np.ndarray, " record"]:
    """The gate that acts on each record: of those that fire the one with the largest gain, the first on a tie."""
    acts = np.full(fires.shape[1], NOTHING)
    for gate in sorted(range(len(gains)), key=lambda gate: (gains[gate], -gate)):
        acts[fires[gate]] = gate
    return acts


def acting_units(gates: Sequence[Gate], fires: Bool[np.ndarray, "gate record"], policy: Policy) -> Acts:
    """The units that the policy ablates on each record."""
    if not gates:
        return ((),) * fires.shape[1]
    order = sorted(range(len(gates)), key=lambda gate: (-gates[gate].gain, gate))
    patterns, of_record = np.unique(fires, axis=1, return_inverse=True)
    sets = [tuple(dict.fromkeys(gates[gate].unit for gate in order if one[gate])) for one in patterns.T]
    if policy is Policy.ONE:
        sets = [one[:1] for one in sets]
    return tuple(sets[place] for place in of_record.tolist())


def places_of(acts: Acts) -> dict[tuple[Neuron, ...], list[int]]:
    """The records on which each set of units is ablated, in order of appearance; none for the empty set."""
    found: dict[tuple[Neuron, ...], list[int]] = {}
    for place, units in enumerate(acts):
        if units:
            found.setdefault(units, []).append(place)
    return found


def after(
    acts: Int[np.ndarray, " record"],
    alone: Bool[np.ndarray, "gate record"],
    before: Bool[np.ndarray, " record"],
) -> Bool[np.ndarray, " record"]:
    """Labels once the gates have acted; `alone` are those under each gate's unit on every record."""
    labels = before.copy()
    some = np.flatnonzero(acts != NOTHING)
    labels[some] = alone[acts[some], some]
    return labels


def expected_gain(
    fires: Bool[np.ndarray, " record"],
    alone: Bool[np.ndarray, " record"],
    before: Bool[np.ndarray, " record"],
    harm: float = 1.0,
) -> float:
    """(fixed − harm · broken) / fired of one gate alone; 0 where it never fires."""
    fixed, broken = np.sum(fires & alone & ~before), np.sum(fires & before & ~alone)
    return float((fixed - harm * broken) / fires.sum()) if fires.any() else 0.0


def gained(
    labels: Bool[np.ndarray, " record"], before: Bool[np.ndarray, " record"], harm: float = 1.0
) -> float:
    """Fixed − harm · broken."""
    return float(np.sum(labels & ~before) - harm * np.sum(before & ~labels))


def most_gained(
    levels: Sequence[float],
    labels: Callable[[float], Bool[np.ndarray, " record"]],
    before: Bool[np.ndarray, " record"],
    harm: float,
) -> float:
    """Of some levels from which on something acts the one whose labels gain most; the highest on a tie."""
    return max(levels, key=lambda level: (gained(labels(level), before, harm), level))


def gain_together(
    gains: Sequence[float],
    fires: Bool[np.ndarray, "gate record"],
    alone: Bool[np.ndarray, "gate record"],
    before: Bool[np.ndarray, " record"],
    harm: float = 1.0,
) -> float:
    """What a set of gates gains together."""
    return gained(after(acting(gains, fires), alone, before), before, harm)


def chosen_gates(
    units: Sequence[Hashable],
    fires: Bool[np.ndarray, "gate record"],
    alone: Bool[np.ndarray, "gate record"],
    before: Bool[np.ndarray, " record"],
    *,
    most: int,
    each: int = 3,
    harm: float = 1.0,
) -> list[int]:
    """Places of the chosen gates, in the order chosen; empty when none helps.

    `units` names each gate's unit, `alone` holds the labels under it. At most `most` units are used, each with at
    most `each` gates. Cost: gates × chosen passes over the records.
    """
    gains = [expected_gain(*one, before, harm) for one in zip(fires, alone, strict=True)]
    chosen: list[int] = []
    value = 0.0
    while True:
        taken = Counter(units[place] for place in chosen)
        offered = [
            place
            for place, unit in enumerate(units)
            if gains[place] > 0
            and place not in chosen
            and (0 < taken[unit] < each or (not taken[unit] and len(taken) < most))
        ]
        added = {}
        for place in offered:
            both = [*chosen, place]
            added[place] = gain_together([gains[one] for one in both], fires[both], alone[both], before, harm)
        best = max(offered, key=lambda place: (added[place], -place), default=None)
        if best is None or added[best] <= value:
            return chosen
        chosen.append(best)
        value = added[best]

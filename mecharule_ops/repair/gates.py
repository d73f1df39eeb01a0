"""Gates: ablate a unit only where a clause holds. Where several hold, a policy says which units are ablated.

A unit's rule is the OR of its gates' clauses; each clause has a gain of its own, so that a sure one goes before a
doubtful one. The expected gain is (fixed − h · broken) / fired on the records that chose it, h what one broken answer
weighs. Where one unit at most is ablated on a record, what a set of gates does follows from what each unit does
alone; what several do together is measured, never assumed. Axes: gate, record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

import numpy as np
from jaxtyping import Bool, Int

from mecharule_ops.rules.algebra import Rule
from mecharule_ops.rules.families import Family
from mecharule_ops.types import Neuron

NOTHING = -1
"""In place of a gate where none acts."""

Acts = Sequence[tuple[Neuron, ...]]
"""The units ablated on each record, that of the largest gain first; none where nothing acts."""


class Policy(StrEnum):
    """What happens on a record on which several gates fire; the value is what a person reads."""

    ONE = "the unit of the gate with the largest expected gain is ablated"
    ALL = "every unit with a gate that fires is ablated"

    @property
    def other(self) -> Policy:
        """The one that was not chosen."""
        return Policy.ALL if self is Policy.ONE else Policy.ONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """One unit and a clause that says when to ablate it."""

    unit: Neuron
    family: Family
    rule: str
    """As it prints."""
    gain: float
    """Expected gain of a record on which it fires, at most 1."""
    fixed: int
    """On those records, alone."""
    broken: int
    fired: int

    @property
    def parsed(self) -> Rule:
        """The rule as a value."""
        return _parsed(self.rule)


_parsed = lru_cache(4096)(Rule.parse)


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

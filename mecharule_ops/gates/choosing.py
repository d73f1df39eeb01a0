"""Which gates are taken: one by one, each time the one with which the set fixes most for what it breaks.

One unit at most is ablated on a record, that of the gate with the largest expected gain, (fixed − h · broken) / fired
on the records that chose it, h what one broken answer weighs. So what a set of gates does follows from what each unit
does alone. A greedy choice, checked in tests against every subset of small tables. Axes: gate, record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

import numpy as np
from jaxtyping import Bool, Int

NOTHING = -1
"""In place of a gate where none acts."""
EACH = 3
"""Clauses a unit, at most."""


def acting(gains: Sequence[float], fires: Bool[np.ndarray, "gate record"]) -> Int[np.ndarray, " record"]:
    """The gate that acts on each record: of those that fire the one with the largest gain, the first on a tie."""
    acts = np.full(fires.shape[1], NOTHING)
    for gate in sorted(range(len(gains)), key=lambda gate: (gains[gate], -gate)):
        acts[fires[gate]] = gate
    return acts


def after(
    acts: Int[np.ndarray, " record"],
    alone: Bool[np.ndarray, "gate record"],
    before: Bool[np.ndarray, " record"],
) -> Bool[np.ndarray, " record"]:
    """Labels once the gates have acted; `alone` are those under each gate's unit on every record."""
    some = np.flatnonzero(acts != NOTHING)
    labels = before.copy()
    labels[some] = alone[acts[some], some]
    return labels


def gained(labels: Bool[np.ndarray, " record"], before: Bool[np.ndarray, " record"], harm: float) -> float:
    """Fixed − harm · broken."""
    return float(np.sum(labels & ~before) - harm * np.sum(before & ~labels))


def expected_gain(
    fires: Bool[np.ndarray, " record"],
    alone: Bool[np.ndarray, " record"],
    before: Bool[np.ndarray, " record"],
    harm: float,
) -> float:
    """`gained` a record on which one gate fires; 0 where it never does."""
    return gained(alone[fires], before[fires], harm) / fires.sum() if fires.any() else 0.0


def chosen_gates(
    units: Sequence[Hashable],
    fires: Bool[np.ndarray, "gate record"],
    alone: Bool[np.ndarray, "gate record"],
    before: Bool[np.ndarray, " record"],
    *,
    most: int,
    harm: float,
) -> list[int]:
    """Places of the chosen gates, in the order chosen, of at most `most` units; empty when none helps."""
    gains = [expected_gain(*one, before, harm) for one in zip(fires, alone, strict=True)]

    def worth(places: list[int]) -> float:
        acts = acting([gains[place] for place in places], fires[places])
        return gained(after(acts, alone[places], before), before, harm)

    chosen: list[int] = []
    value = 0.0
    while True:
        taken = Counter(units[place] for place in chosen)
        offered = [
            place
            for place, unit in enumerate(units)
            if gains[place] > 0
            and place not in chosen
            and taken[unit] < EACH
            and (taken[unit] or len(taken) < most)
        ]
        added = {place: worth([*chosen, place]) for place in offered}
        best = max(offered, key=lambda place: (added[place], -place), default=None)
        if best is None or added[best] <= value:
            return chosen
        chosen.append(best)
        value = added[best]

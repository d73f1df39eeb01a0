"""Which gates are used, and with which gain: chosen on records that no gate was learned from.

Gates are added one by one, each time the one with which the set fixes most for what it breaks, while that grows. A
greedy choice, checked in tests against every subset of small tables. Axes: gate, record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

import numpy as np
from jaxtyping import Bool

from mecharule_ops.repair.gates import acting, after

Fires = Bool[np.ndarray, "gate record"]


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


def worth(
    gains: Sequence[float],
    fires: Fires,
    alone: Bool[np.ndarray, "gate record"],
    before: Bool[np.ndarray, " record"],
    harm: float = 1.0,
) -> float:
    """What a set of gates gains together."""
    return gained(after(acting(gains, fires), alone, before), before, harm)


def chosen_gates(
    units: Sequence[Hashable],
    fires: Fires,
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
            added[place] = worth([gains[one] for one in both], fires[both], alone[both], before, harm)
        best = max(offered, key=lambda place: (added[place], -place), default=None)
        if best is None or added[best] <= value:
            return chosen
        chosen.append(best)
        value = added[best]

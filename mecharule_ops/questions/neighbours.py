"""Which records resemble a typed prompt, and how often they flip: what to expect of a prompt never seen.

Records match when every category is equal: a field that is no number and whose values repeat, so no free text.
Among those the closest are taken, in Manhattan distance over the numbers, each scaled by its range in the records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from mecharule_ops.confidence import lower_bound, upper_bound
from mecharule_ops.types import FlipCount, Value

_CATEGORIES = 12
"""A field with at most this many values is a category, however few records there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighbourFlips:
    """How often the most similar records flip."""

    count: FlipCount
    lower: float
    """Two-sided Clopper–Pearson interval at 1 − α of the flip rate, as if the records were drawn at random."""
    upper: float


def nearest(
    fields: Mapping[str, Value], records: Sequence[Mapping[str, Value]], count: int
) -> Int[np.ndarray, " near"]:
    """Positions of up to `count` matching records, closest first; ties by position."""
    categories = _categories(fields, records)
    matching = [
        place
        for place, other in enumerate(records)
        if fields.keys() == other.keys() and all(other[name] == fields[name] for name in categories)
    ]
    if not matching or count < 1:
        return np.zeros(0, np.int64)
    names = [name for name, value in fields.items() if _is_number(value)]
    values = np.array([[float(records[place][name]) for name in names] for place in matching])
    spread = np.ptp(values, axis=0) if names else np.zeros(0)
    here = np.array([float(fields[name]) for name in names])
    distance = (np.abs(values - here) / np.where(spread > 0, spread, 1.0)).sum(axis=1)
    closest = np.argsort(distance, kind="stable")[:count]
    return np.array(matching, np.int64)[closest]


def flips_with_interval(flips: int, n: int, alpha: float) -> NeighbourFlips:
    """The flips of n neighbours with their interval; [0, 1] without neighbours."""
    count = FlipCount(flips=flips, n=n)
    if n == 0:
        return NeighbourFlips(count=count, lower=0.0, upper=1.0)
    lower, upper = lower_bound(flips, n, alpha / 2), upper_bound(flips, n, alpha / 2)
    return NeighbourFlips(count=count, lower=lower, upper=upper)


def _categories(fields: Mapping[str, Value], records: Sequence[Mapping[str, Value]]) -> list[str]:
    """Fields that are no numbers and not free text, of which no two records need share a value."""
    names = [name for name, value in fields.items() if not _is_number(value)]
    distinct = {name: len({str(record.get(name)) for record in records}) for name in names}
    return [name for name in names if distinct[name] <= max(_CATEGORIES, len(records) // 2)]


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)

"""Literals for several values of one expression: `digit(expected, 0) in (1, 2, 6)`.

Predicates `x == 1`, `x == 2`, … of one expression make a group. Ordered by the share of the target among the records
of each value, the best split of the values into two sets is a prefix of that order (Fisher 1958; Breiman et al.
1984, §4.2), so only the prefixes and suffixes of that order are offered, and only short ones, for a person to read.
The order is taken from the records given, which must be train records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool

from mecharule_ops.predicates.atoms import canonical, equality
from mecharule_ops.rules.algebra import Lookup

LONGEST = 5
"""Values of the longest set."""
_Value = int | float | str


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueGroup:
    """The predicates that compare one expression with constants."""

    expression: str
    values: tuple[_Value, ...]
    places: tuple[int, ...]
    """Where the predicate of each value stands in the table."""


def value_groups(predicates: Sequence[str]) -> tuple[ValueGroup, ...]:
    """The expressions that are compared with three constants or more, in the order of the table."""
    found: dict[str, list[tuple[_Value, int]]] = {}
    for place, text in enumerate(predicates):
        if (parts := equality(text)) is not None:
            found.setdefault(parts[0], []).append((parts[1], place))
    return tuple(
        ValueGroup(
            expression=expression,
            values=tuple(value for value, _ in pairs),
            places=tuple(place for _, place in pairs),
        )
        for expression, pairs in found.items()
        if len(pairs) > 2
    )


def value_sets(
    groups: Sequence[ValueGroup],
    matrix: Bool[np.ndarray, "record predicate"],
    target: Bool[np.ndarray, " record"],
    longest: int = LONGEST,
) -> Mapping[str, tuple[int, ...]]:
    """Text of each set → the places of its values' predicates: those that the target favours most, or least."""
    sets: dict[str, tuple[int, ...]] = {}
    for group in groups:
        columns = matrix[:, group.places]
        counts, hits = columns.sum(axis=0), columns[target].sum(axis=0)
        rates = (hits + target.mean()) / (counts + 1)
        order = np.argsort(-rates, kind="stable")
        for size in range(2, min(longest, len(order) - 1) + 1):
            for chosen in (order[:size], order[-size:]):
                members = sorted((group.values[place], group.places[place]) for place in chosen.tolist())
                sets.setdefault(
                    canonical(f"{group.expression} in {tuple(value for value, _ in members)!r}"),
                    tuple(place for _, place in members),
                )
    return sets


def with_sets(lookup: Lookup, sets: Mapping[str, tuple[str, ...]]) -> Lookup:
    """A lookup that knows the sets too, each by the predicates of its values."""

    def found(predicate: str) -> Bool[np.ndarray, " record"]:
        if predicate in sets:
            return np.logical_or.reduce([lookup(member) for member in sets[predicate]])
        return lookup(predicate)

    return found

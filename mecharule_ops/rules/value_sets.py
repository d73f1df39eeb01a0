"""Literals for several values of one expression: `digit(expected, 0) in (1, 2, 6)`.

Predicates `x == 1`, `x == 2`, … of one expression make a group. Ordered by the share of the target among the records
of each value, the best split of the values into two sets is a prefix of that order (Fisher 1958; Breiman et al.
1984, §4.2), so only the prefixes and suffixes of that order are offered, and only short ones, for a person to read.
The order is taken from the records given, which must be train records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Bool

from mecharule_ops.predicates.atoms import canonical, equality
from mecharule_ops.rules.algebra import Lookup

LONGEST = 5
"""Values of the longest set."""


def value_sets(
    predicates: Sequence[str],
    matrix: Bool[np.ndarray, "record predicate"],
    target: Bool[np.ndarray, " record"],
) -> Mapping[str, tuple[str, ...]]:
    """Text of each set → its values' predicates: those that the target favours most, or least.

    Of the expressions that are compared with three constants or more, in the order of the table; a set that is
    itself a predicate of the table is left out.
    """
    compared: dict[str, list[tuple[int | float | str, int]]] = {}
    for place, text in enumerate(predicates):
        if (parts := equality(text)) is not None:
            compared.setdefault(parts[0], []).append((parts[1], place))
    sets: dict[str, tuple[str, ...]] = {}
    for expression, values in compared.items():
        if len(values) < 3:
            continue
        columns = matrix[:, [place for _, place in values]]
        counts, hits = columns.sum(axis=0), columns[target].sum(axis=0)
        rates = (hits + target.mean()) / (counts + 1)
        order = np.argsort(-rates, kind="stable")
        for size in range(2, min(LONGEST, len(order) - 1) + 1):
            for chosen in (order[:size], order[-size:]):
                members = sorted(values[index] for index in chosen.tolist())
                text = canonical(f"{expression} in {tuple(value for value, _ in members)!r}")
                sets.setdefault(text, tuple(predicates[place] for _, place in members))
    known = set(predicates)
    return {text: members for text, members in sets.items() if text not in known}


def with_sets(lookup: Lookup, sets: Mapping[str, tuple[str, ...]]) -> Lookup:
    """A lookup that knows the sets too, each by the predicates of its values."""

    def found(predicate: str) -> Bool[np.ndarray, " record"]:
        if predicate in sets:
            return np.logical_or.reduce([lookup(member) for member in sets[predicate]])
        return lookup(predicate)

    return found

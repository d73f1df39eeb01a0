"""Literals for several values of one expression: `digit(expected, 0) in (1, 2, 6)`.

Predicates `x == 1`, `x == 2`, … of one expression make a group. Ordered by the share of the target among the records
of each value, the best split of the values into two sets is a prefix of that order (Fisher 1958; Breiman et al.
1984, §4.2), so only the prefixes and suffixes of that order are offered, and only short ones, for a person to read.
The order is taken from the records given, which must be train records.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Bool

from mecharule_ops.predicates.atoms import canonical, equality
from mecharule_ops.predicates.cuts import PredicateColumns
from mecharule_ops.rules.algebra import Lookup, lookup_in

LONGEST = 5
"""Values of the longest set."""


def value_sets(table: PredicateColumns, target: Bool[np.ndarray, " record"]) -> Mapping[str, tuple[str, ...]]:
    """Text of each set → its values' predicates: those that the target favours most, or least.

    Of the expressions that are compared with three constants or more, in the order of the table; a set that is
    itself a predicate of the table is left out.
    """
    compared: dict[str, list[tuple[int | float | str, int]]] = {}
    for place, text in enumerate(table.texts):
        if (parts := equality(text)) is not None:
            compared.setdefault(parts[0], []).append((parts[1], place))
    sets: dict[str, tuple[str, ...]] = {}
    for expression, values in compared.items():
        if len(values) < 3:
            continue
        columns = table.matrix[:, [place for _, place in values]]
        counts, hits = columns.sum(axis=0), columns[target].sum(axis=0)
        rates = (hits + target.mean()) / (counts + 1)
        order = np.argsort(-rates, kind="stable")
        for size in range(2, min(LONGEST, len(order) - 1) + 1):
            for chosen in (order[:size], order[-size:]):
                members = sorted(values[index] for index in chosen.tolist())
                text = canonical(f"{expression} in {tuple(value for value, _ in members)!r}")
                sets.setdefault(text, tuple(table.texts[place] for _, place in members))
    known = set(table.texts)
    return {text: members for text, members in sets.items() if text not in known}


def beside_sets(table: PredicateColumns, sets: Mapping[str, tuple[str, ...]]) -> PredicateColumns:
    """The table with a column for each set."""
    lookup = with_sets(lookup_in(table.matrix, table.texts), sets)
    matrix = np.column_stack([table.matrix, *map(lookup, sets)])
    return PredicateColumns(texts=(*table.texts, *sets), matrix=matrix)


def with_sets(lookup: Lookup, sets: Mapping[str, tuple[str, ...]]) -> Lookup:
    """A lookup that knows the sets too, each by the predicates of its values."""

    def found(predicate: str) -> Bool[np.ndarray, " record"]:
        if predicate in sets:
            return np.logical_or.reduce([lookup(member) for member in sets[predicate]])
        return lookup(predicate)

    return found

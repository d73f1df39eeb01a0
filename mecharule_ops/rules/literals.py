"""The literals that a short rule may use, packed, plain ones first.

A literal is an integer as in `clause_pool`: 2·j + 1 for "predicate j is true", 2·j for "predicate j is false".
Positive literals come first and of literals that hold on the same records only the first stays, so a learner that
breaks ties by order prefers what reads without a negation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int, UInt64

from mecharule_ops.rules.matthews import pack

LEAST_SHARE = 0.03
"""A literal of a short rule is true, and false, on at least this share of the records."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LiteralPool:
    """Distinct literals with the records on which each holds."""

    literals: tuple[int, ...]
    """2·j + 1 or 2·j, positive ones first."""
    bits: UInt64[np.ndarray, "literal word"]
    """Aligned with `literals`."""
    records: int

    def fires(self, clause: Sequence[int]) -> UInt64[np.ndarray, " word"]:
        """Where every literal of the clause holds; the clause names places in this pool and is not empty."""
        return np.bitwise_and.reduce(self.bits[list(clause)], axis=0)

    def union(self, clauses: Sequence[Sequence[int]]) -> UInt64[np.ndarray, " word"]:
        """Where any of the clauses holds."""
        nowhere = np.zeros(self.bits.shape[1], np.uint64)
        return np.bitwise_or.reduce([nowhere, *map(self.fires, clauses)])


def varied(
    matrix: Bool[np.ndarray, "record predicate"], least_share: float = LEAST_SHARE
) -> Int[np.ndarray, " kept"]:
    """Places of the predicates that are true and false on at least that share, without repeated columns."""
    shares = matrix.mean(axis=0) if len(matrix) else np.zeros(matrix.shape[1])
    inside = np.flatnonzero(
        (shares >= least_share) & (shares <= 1 - least_share) & (shares > 0) & (shares < 1)
    )
    _, first = np.unique(np.packbits(matrix[:, inside], axis=0), axis=1, return_index=True)
    return inside[np.sort(first)]


def literal_pool(
    matrix: Bool[np.ndarray, "record predicate"], least_share: float = LEAST_SHARE
) -> LiteralPool:
    """The distinct literals over the predicates that vary enough."""
    places = varied(matrix, least_share)
    columns = matrix[:, places].T
    both = np.concatenate([columns, ~columns])
    literals = np.concatenate([2 * places + 1, 2 * places])
    bits = pack(both)
    _, first = np.unique(bits, axis=0, return_index=True)
    kept = np.sort(first)
    return LiteralPool(literals=tuple(literals[kept].tolist()), bits=bits[kept], records=len(matrix))

"""Candidate clauses and literals in bulk: firing counts, MCC and SHAP weights of thousands of them (paper, §4.2).

A clause is a sorted tuple of literals, 2·j for "predicate j is false" and 2·j + 1 for "predicate j is true".
In a pool of literals positive ones come first, and of those that hold on the same records only the first stays, so a
learner that breaks ties by order prefers what reads without a negation.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from mecharule_ops.rules.algebra import Clause, Condition
from mecharule_ops.rules.matthews import mcc_of_counts, pack, packed_counts

Literals = tuple[int, ...]
"""A clause in the tables of this package."""

CHUNK = 256
"""Clauses evaluated together; bounds memory at CHUNK · depth · records bits or SHAP rows."""
LEAST_SHARE = 0.03
"""A literal of a short rule is true, and false, on at least this share of the records."""


def as_clause(literals: Literals, predicates: Sequence[str]) -> Clause:
    """The clause as a value."""
    return Clause(tuple(Condition(predicates[literal >> 1], bool(literal & 1)) for literal in literals))


def plainness(clause: Literals) -> tuple[int, int, Literals]:
    """What sorts clauses plain ones first: length, then negations, then place."""
    return len(clause), sum(1 - (literal & 1) for literal in clause), clause


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MeasuredClauses:
    """Clauses with their counts on the records."""

    clauses: tuple[Literals, ...]
    fired: Int[np.ndarray, " clause"]
    """Records on which each fires."""
    mcc: Float[np.ndarray, " clause"]


def measure(
    clauses: Sequence[Literals],
    matrix: Bool[np.ndarray, "record predicate"],
    target: Bool[np.ndarray, " record"],
    least: int = 0,
) -> MeasuredClauses:
    """Counts and MCC of clauses that fire on at least so many records; of those that fire alike the first stays."""
    columns = pack(_literal_rows(matrix))
    bits = [np.bitwise_and.reduce(columns[_padded(chunk)], axis=1) for chunk in _chunks(clauses)]
    every = np.concatenate([columns[:0], *bits])
    _, first = np.unique(every, axis=0, return_index=True)
    hits, fired = packed_counts(every, pack(target[None, :])[0])
    kept = np.sort(first[fired[first] >= least])
    hits, fired = hits[kept], fired[kept]
    mcc = mcc_of_counts(hits, fired, int(np.count_nonzero(target)), len(target))
    return MeasuredClauses(clauses=tuple(clauses[place] for place in kept.tolist()), fired=fired, mcc=mcc)


def shap_weights(
    clauses: Sequence[Literals],
    features: Bool[np.ndarray, "row predicate"],
    counts: Int[np.ndarray, " row"],
    phi: Float[np.ndarray, "row predicate"],
) -> Float[np.ndarray, " clause"]:
    """Mean of Σ_{j in clause} φ_j over the rows on which each clause fires, rows weighted by their counts.

    0.0 for a clause that fires on none of the rows.
    """
    literals = _literal_rows(features)
    weights = [np.zeros(0)]
    for chunk in _chunks(clauses):
        mass = np.logical_and.reduce(literals[_padded(chunk)], axis=1) * counts.astype(np.float64)
        own = np.array(
            [row[[literal >> 1 for literal in c]].sum() for row, c in zip(mass @ phi, chunk, strict=True)]
        )
        records = mass.sum(axis=1)
        weights.append(np.divide(own, records, out=np.zeros_like(own), where=records > 0))
    return np.concatenate(weights)


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
) -> Int[np.ndarray, " literal"]:
    """The distinct literals over the predicates that vary enough, 2·j + 1 or 2·j, positive ones first."""
    places = varied(matrix, least_share)
    columns = matrix[:, places].T
    literals = np.concatenate([2 * places + 1, 2 * places])
    _, first = np.unique(pack(np.concatenate([columns, ~columns])), axis=0, return_index=True)
    return literals[np.sort(first)]


def _literal_rows(matrix: Bool[np.ndarray, "record predicate"]) -> Bool[np.ndarray, "literal record"]:
    """Row 2·j is where predicate j is false, row 2·j + 1 where it is true."""
    columns = matrix.T
    return np.stack([~columns, columns], axis=1).reshape(-1, len(matrix))


def _padded(chunk: Sequence[Literals]) -> Int[np.ndarray, "clause depth"]:
    """The literals as a rectangle; a shorter clause repeats its first, which changes no AND."""
    depth = max(map(len, chunk))
    return np.array([clause + clause[:1] * (depth - len(clause)) for clause in chunk])


def _chunks(clauses: Sequence[Literals]) -> Iterator[Sequence[Literals]]:
    for begin in range(0, len(clauses), CHUNK):
        yield clauses[begin : begin + CHUNK]

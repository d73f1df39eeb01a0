"""Short clauses that say where a unit's ablation helps more than it harms.

The value of a record is +1 where the ablation fixes its answer, −1 where it breaks it, else 0. A clause that holds
on f fixed and b broken records is worth

    (f − h·b) − z √(f + h²·b),

its net gain less z standard errors of it (each changed record an independent Poisson count), with a harm h that
says how many fixed answers one broken answer weighs. Clauses grow literal by literal with a beam; the best is kept,
what it covers is left out, and the next is sought: sequential covering (Cohen 1995), for another aim.
Only records whose value is not 0 matter, so a search is a few products of small matrices.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float32, Int

from mecharule_ops.predicates.cuts import PredicateColumns
from mecharule_ops.rules.algebra import Clause
from mecharule_ops.rules.clause_pool import as_clause, literal_pool
from mecharule_ops.rules.ruleshap import check_target
from mecharule_ops.thresholds import HARM

_Literals = tuple[int, ...]
"""A clause as places in the pool, ascending."""


MAX_CLAUSES, MAX_LITERALS, BEAM = 6, 3, 20
"""Clauses offered of a unit, among which other records choose; most literals of one; the beam of the search."""
LEAST_SHARE = 0.01
"""A literal holds and fails on at least this share of the records."""
LITERAL_GAIN = 0.5
"""A longer clause is preferred only if it is worth this much more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateSettings:
    """How careful the learning is."""

    harm: float = HARM
    """h: fixed answers that one broken answer weighs."""
    caution: float = 2.0
    """z: standard errors taken off a clause's net gain."""
    least_fixed: int = 4
    """A clause holds on at least so many fixed records."""


def gate_clauses(
    table: PredicateColumns,
    value: Int[np.ndarray, " record"],
    settings: GateSettings | None = None,
) -> tuple[Clause, ...]:
    """Clauses in the order found, each on what those before leave; none when no clause is worth it.

    Deterministic. Cost: no model call.
    Raises `UsageError` when shapes disagree.
    """
    check_target(table, value > 0)
    settings = settings or GateSettings()
    literals = literal_pool(table.matrix, LEAST_SHARE)
    changed = np.flatnonzero(value)
    if not len(literals) or not len(changed):
        return ()
    held = (table.matrix[changed][:, literals // 2] == (literals % 2).astype(bool)).astype(np.float32)
    search = _Search(held, value[changed], settings)
    return tuple(
        as_clause(tuple(literals[list(clause)].tolist()), table.texts) for clause in search.clauses()
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Search:
    """Sequential covering over the records that the ablation changes."""

    held: Float32[np.ndarray, "record literal"]
    value: Int[np.ndarray, " record"]
    settings: GateSettings

    def clauses(self) -> list[_Literals]:
        """Clauses worth more than nothing, each on what those before leave."""
        left, found = np.ones(len(self.value), bool), list[_Literals]()
        while len(found) < MAX_CLAUSES:
            clause = self._best(left)
            if clause is None:
                break
            found.append(clause)
            left &= ~self._fires(clause)
        return found

    def _best(self, left: Bool[np.ndarray, " record"]) -> _Literals | None:
        """The clause worth most on the records left, None when none is worth more than nothing."""
        best, clause = 0.0, None
        stems: list[tuple[float, _Literals]] = [(0.0, ())]
        for length in range(MAX_LITERALS):
            longer: set[tuple[float, _Literals]] = set()
            for _, stem in stems:
                gains = self._gains(left & self._fires(stem))
                for place in np.argsort(-gains, kind="stable")[:BEAM].tolist():
                    if np.isfinite(gains[place]) and place not in stem:
                        longer.add((float(gains[place]), tuple(sorted((*stem, place)))))
            stems = sorted(longer, key=lambda stem: (-stem[0], stem[1]))[:BEAM]
            if stems and stems[0][0] > best + (LITERAL_GAIN if length else 0.0):
                best, clause = stems[0]
        return clause

    def _fires(self, clause: _Literals) -> Bool[np.ndarray, " record"]:
        return np.asarray((self.held[:, list(clause)] > 0).all(axis=1))

    def _gains(self, inside: Bool[np.ndarray, " record"]) -> np.ndarray:
        """Of each literal added to what holds on `inside`; −∞ where too few fixed records are left."""
        rows, value, harm = self.held[inside], self.value[inside], self.settings.harm
        fixed, broken = ((value > 0) @ rows).astype(float), ((value < 0) @ rows).astype(float)
        gains = fixed - harm * broken - self.settings.caution * np.sqrt(fixed + harm**2 * broken)
        return np.where(fixed >= self.settings.least_fixed, gains, -np.inf)

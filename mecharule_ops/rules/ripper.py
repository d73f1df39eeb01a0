"""A RIPPER-style learner: grow a clause, prune it on records it was not grown on, then optimise clause by clause.

Source: Cohen (1995), "Fast effective rule induction". A clause is grown on two thirds of the records by FOIL's
information gain

    p · (log₂ p/(p + q) − log₂ p₀/(p₀ + q₀)),

p and q the uncovered positives and negatives where it holds with one more literal, p₀ and q₀ before; the other
third prunes it from its end. Each clause is then offered a replacement grown from nothing and a revision grown
from itself, in turn. Where RIPPER minimises a description length, this learner maximises the rule's MCC, which is
what a rule is judged by here; the lengths of clauses and rule are bounded instead. Records are bits in words, so a
step scores all literals at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, UInt64

from mecharule_ops.predicates.cuts import PredicateColumns
from mecharule_ops.rules.algebra import Rule, compactify, lookup_in, score
from mecharule_ops.rules.clause_pool import LiteralPool, as_clause, literal_pool
from mecharule_ops.rules.matthews import MARGIN, mcc_of_one, pack
from mecharule_ops.rules.ruleshap import LearnedRule, RuleStatus, check_target, readiness

_Words = UInt64[np.ndarray, " word"]
_Places = tuple[int, ...]
"""A clause as places in the literal pool, in the order in which they were added."""
TRIES = 2
"""A new clause is grown so often, each time from other records; the one that helps most stays."""
OPTIMISATIONS = 2
"""Rounds in which each clause is offered a replacement and a revision."""


MIN_GAIN = 0.01
"""A clause is added only if the rule's MCC improves by more than this."""


@dataclass(frozen=True, slots=True, order=True)
class Size:
    """The bounds of a rule; smaller sizes come first."""

    clauses: int = 3
    literals: int = 3
    """Most literals of a clause."""


def ripper(
    table: PredicateColumns,
    target: Bool[np.ndarray, " record"],
    size: Size | None = None,
    *,
    seed: int,
    pool: LiteralPool | None = None,
) -> LearnedRule:
    """The rule grown, pruned and optimised on these records alone; the same seed gives the same rule.

    `pool` is what `literal_pool` makes of the matrix, for who asks more than once. Cost: no model calls.

    Raises:
        UsageError: shapes disagree.

    """
    check_target(table, target)
    status = readiness(target, table.texts)
    if status is not RuleStatus.LEARNED:
        return LearnedRule(status=status)
    pool = pool or literal_pool(table.matrix)
    search = _Search(pool, target, size or Size(), np.random.default_rng(seed))
    clauses = search.rule() if pool.literals else []
    if not clauses:
        return LearnedRule(status=RuleStatus.NO_CLAUSE)
    lookup = lookup_in(table.matrix, table.texts)
    named = (as_clause(tuple(pool.literals[place] for place in clause), table.texts) for clause in clauses)
    rule = compactify(Rule(tuple(named)), lookup, target)
    return LearnedRule(status=status, rule=rule, train=score(rule.fires(lookup), target))


class _Search:
    """One run of the learner over a pool of literals."""

    def __init__(
        self,
        pool: LiteralPool,
        target: Bool[np.ndarray, " record"],
        size: Size,
        generator: np.random.Generator,
    ) -> None:
        self.pool, self.size, self.generator = pool, size, generator
        self.sides = [np.flatnonzero(target == side) for side in (False, True)]
        self.everywhere = pack(np.ones((1, len(target)), bool))[0]
        self.positive = pack(target[None, :])[0]

    def rule(self) -> list[_Places]:
        """Clauses added while they help, then each optimised in turn; empty when none agrees with the target."""
        clauses: list[_Places] = []
        while len(clauses) < self.size.clauses:
            clause = self._best(clauses, [()] * TRIES)
            least = self._mcc(self.pool.union(clauses)) + (MIN_GAIN if clauses else MARGIN)
            if clause is None or self._mcc(self.pool.union([*clauses, clause])) <= least:
                break
            clauses.append(clause)
        for _ in range(OPTIMISATIONS):
            for place, clause in enumerate(clauses):
                others = clauses[:place] + clauses[place + 1 :]
                offered = self._best(others, [(), clause])
                now = self._mcc(self.pool.union(clauses))
                if offered is not None and self._mcc(self.pool.union([*others, offered])) > now + MARGIN:
                    clauses[place] = offered
        return clauses

    def _best(self, others: Sequence[_Places], starts: Sequence[_Places]) -> _Places | None:
        """Of the clauses grown from each start and pruned, the one that helps the others most."""
        covered = self.pool.union(others)
        grown = [clause for start in starts if (clause := self._grown(covered, start))]
        value = {clause: self._mcc(self.pool.fires(clause) | covered) for clause in grown}
        return max(grown, key=value.__getitem__, default=None)

    def _grown(self, covered: _Words, start: _Places) -> _Places:
        """A clause grown on two thirds of the records from a start and pruned on the rest; may be empty."""
        grow = self._two_thirds()
        clause = self._grow(start, grow & self.positive & ~covered, grow & ~self.positive & ~covered)
        rest = self.everywhere & ~grow
        kept = [clause[:length] for length in range(1, len(clause) + 1)]
        reached = [self._mcc(self.pool.fires(part) | covered, rest) for part in kept]
        return kept[int(np.argmax(np.asarray(reached) > max(reached) - MARGIN))] if kept else ()

    def _grow(self, start: _Places, positive: _Words, negative: _Words) -> _Places:
        """Literals added by FOIL's gain while any remains and one helps; ties go to the plainer literal."""
        clause, bits = start, self.pool.fires(start) if start else self.everywhere
        while len(clause) < self.size.literals:
            gains = _foil(self.pool.bits, bits & positive, bits & negative)
            place = int(np.argmax(gains))
            if gains[place] <= MARGIN:
                break
            clause, bits = (*clause, place), bits & self.pool.bits[place]
        return clause

    def _two_thirds(self) -> _Words:
        """A random two thirds of the records, of each side of the target."""
        chosen = np.zeros((1, self.pool.records), bool)
        for side in self.sides:
            chosen[0, self.generator.permutation(side)[: (2 * len(side) + 1) // 3]] = True
        return pack(chosen)[0]

    def _mcc(self, fires: _Words, among: _Words | None = None) -> float:
        """MCC of a rule on all records or among some of them."""
        scope = self.everywhere if among is None else among
        counts = [_count(bits & scope) for bits in (fires & self.positive, fires, self.positive, scope)]
        return mcc_of_one(*counts)


def _count(bits: _Words) -> int:
    return int(np.bitwise_count(bits).sum())


def _foil(
    literals: UInt64[np.ndarray, "literal word"], positive: _Words, negative: _Words
) -> Float[np.ndarray, " literal"]:
    """FOIL's gain of adding each literal; 0.0 where no positive is left."""
    before_p, before_q = _count(positive), _count(negative)
    if not before_p or not before_q:
        return np.zeros(len(literals))
    p = np.bitwise_count(literals & positive).sum(axis=1, dtype=np.int64)
    q = np.bitwise_count(literals & negative).sum(axis=1, dtype=np.int64)
    purity = np.divide(p, p + q, out=np.ones(len(p)), where=p > 0)
    return np.where(p > 0, p * (np.log2(purity) - np.log2(before_p / (before_p + before_q))), 0.0)

"""Boolean rules as values (paper, §4.2), Condition → Clause (AND) → Rule (OR): print, parse and evaluate.

A rule is never handed to an evaluator as a string: it asks a lookup for the column of each predicate (an
atom, see `atoms.py`) and combines the bits. Values are canonical by construction, so two rules that differ
only in order, repetition or absorbed clauses are equal.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np
from jaxtyping import Bool

from mecharule_ops import codec, types
from mecharule_ops.errors import UsageError
from mecharule_ops.predicates.atoms import canonical, disjuncts
from mecharule_ops.rules.matthews import MARGIN, greedy_union, mcc, pack

Lookup = Callable[[str], Bool[np.ndarray, " record"]]
"""From a predicate's canonical text to its value on every record."""


@dataclass(frozen=True, slots=True, order=True)
class Condition:
    """A predicate or its negation. Raises `UsageError`.

    >>> print(Condition("b >= 100", False))
    not (b >= 100)
    """

    predicate: str
    """Canonical predicate text."""
    value: bool
    """The value the predicate must have."""

    def __post_init__(self) -> None:
        if self.predicate != (text := canonical(self.predicate)):
            raise UsageError(f"expected canonical predicate text {text!r}, got {self.predicate!r}")

    def __str__(self) -> str:
        return self.predicate if self.value else f"not ({self.predicate})"

    def fires(self, lookup: Lookup) -> Bool[np.ndarray, " record"]:
        """The records on which the condition holds."""
        column = lookup(self.predicate)
        return column if self.value else ~column


@dataclass(frozen=True, slots=True, order=True)
class Clause:
    """An AND of conditions, sorted and without repeats. Raises `UsageError` when empty or contradictory."""

    conditions: tuple[Condition, ...]

    def __post_init__(self) -> None:
        conditions = tuple(sorted(set(self.conditions)))
        if not conditions:
            raise UsageError("expected at least one condition in a clause, got none")
        for left, right in pairwise(conditions):
            if left.predicate == right.predicate:
                raise UsageError(f"a clause cannot hold both {left} and {right}: drop one of them")
        object.__setattr__(self, "conditions", conditions)

    def __str__(self) -> str:
        return " and ".join(map(str, self.conditions))

    @property
    def predicates(self) -> frozenset[str]:
        """The predicates it reads."""
        return frozenset(condition.predicate for condition in self.conditions)

    def subsumes(self, other: "Clause") -> bool:
        """True when this clause fires wherever the other does, because the other only adds conditions."""
        return set(self.conditions) <= set(other.conditions)

    def fires(self, lookup: Lookup) -> Bool[np.ndarray, " record"]:
        """The records on which every condition holds."""
        return np.logical_and.reduce([condition.fires(lookup) for condition in self.conditions])


@dataclass(frozen=True, slots=True, order=True)
class Rule(codec.Printed):
    """An OR of clauses, sorted, none subsumed by another. Raises `UsageError` when there are none.

    >>> print(Rule.parse("b >= 100 or (a > 3 and b >= 100)"))
    b >= 100
    """

    clauses: tuple[Clause, ...]

    def __post_init__(self) -> None:
        if not self.clauses:
            raise UsageError("expected at least one clause in a rule, got none")
        distinct = sorted(set(self.clauses))
        kept = [each for each in distinct if not any(o != each and o.subsumes(each) for o in distinct)]
        object.__setattr__(self, "clauses", tuple(kept))

    def __str__(self) -> str:
        if len(self.clauses) == 1:
            return str(self.clauses[0])
        return " or ".join(f"({c})" if len(c.conditions) > 1 else str(c) for c in self.clauses)

    @property
    def predicates(self) -> frozenset[str]:
        """The predicates it reads."""
        return frozenset().union(*(clause.predicates for clause in self.clauses))

    def fires(self, lookup: Lookup) -> Bool[np.ndarray, " record"]:
        """The records on which any clause fires."""
        return np.logical_or.reduce([clause.fires(lookup) for clause in self.clauses])

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a printed rule. Raises `UsageError` on what is not clauses of atoms joined by `or`."""
        return cls(tuple(Clause(tuple(Condition(*literal) for literal in c)) for c in disjuncts(text)))


def lookup_in(matrix: Bool[np.ndarray, "record predicate"], predicates: Sequence[str]) -> Lookup:
    """A lookup over the columns of a predicate matrix; it raises `UsageError` where there is no column."""
    column = {text: index for index, text in enumerate(predicates)}

    def lookup(predicate: str) -> Bool[np.ndarray, " record"]:
        if predicate not in column:
            raise UsageError(f"expected a predicate of the table, got {predicate!r}: evaluate it first")
        return matrix[:, column[predicate]]

    return lookup


def score(fires: Bool[np.ndarray, " record"], target: Bool[np.ndarray, " record"]) -> types.RuleScore:
    """How well firing predicts the target; coverage is 0.0 over no records."""
    coverage = float(fires.mean()) if len(fires) else 0.0
    positives = int(np.count_nonzero(target))
    return types.RuleScore(mcc=mcc(fires, target), coverage=coverage, n=len(target), positives=positives)


def greedy_or(
    clauses: Sequence[Clause],
    fires: Bool[np.ndarray, "clause record"],
    target: Bool[np.ndarray, " record"],
    max_clauses: int,
    *,
    starts: int = 1,
    min_gain: float = 0.0,
) -> Rule:
    """The OR-combination of ranked clauses (best first) with the highest MCC found (paper, §4.2).

    Seeded with the best clause by MCC (ties: the earlier in the ranking), or with each of the `starts` best
    in turn, it adds a clause only if the rulebase's MCC improves by more than `min_gain`; see `greedy_union`.
    Never below the best single clause.
    """
    packed, wanted = pack(fires), pack(target[None, :])[0]
    chosen = greedy_union(packed, wanted, len(target), max_clauses, starts, min_gain)
    return Rule(tuple(clauses[index] for index in chosen))


def compactify(rule: Rule, lookup: Lookup, target: Bool[np.ndarray, " record"]) -> Rule:
    """The rule less every clause and condition whose removal does not lower its MCC with the target.

    So each clause that stays improves the rulebase's MCC, and each condition its clause (paper, §4.5).
    """
    value = mcc(rule.fires(lookup), target)
    for simpler in _simpler(rule):
        if mcc(simpler.fires(lookup), target) >= value - MARGIN:
            return compactify(simpler, lookup, target)
    return rule


def _simpler(rule: Rule) -> Iterator[Rule]:
    """The rule less one clause, then less one condition, each in printed order."""
    others = {clause: tuple(other for other in rule.clauses if other != clause) for clause in rule.clauses}
    yield from (Rule(rest) for rest in others.values() if rest)
    for clause, rest in others.items():
        if len(clause.conditions) > 1:
            for condition in clause.conditions:
                yield Rule((*rest, Clause(tuple(c for c in clause.conditions if c != condition))))

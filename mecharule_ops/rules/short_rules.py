"""One short rule for a target, its length chosen inside the records given, which must be train records.

RuleSHAP learns a rule of each size, from one literal up to three clauses of three; cross-validation scores them. The
one-standard-error rule (Breiman et al. 1984, §3.4.3) takes the smallest size whose mean MCC lies within one standard
error of the best mean; a rule of that size is fitted on all records. Value sets are made from the training part of each
fold anew, so that a fold is scored on records that shaped nothing.

A value set is a literal for several values of one expression, such as `digit(expected, 0) in (1, 2, 6)`. Ordered by the
share of the target among the records of each value, the best split of the values in two is a prefix of that order
(Fisher 1958; Breiman et al. 1984, §4.2), so only short prefixes and suffixes are offered, for a person to read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Bool, Float, Int

from mecharule_ops.predicates.atoms import canonical, complement, equality
from mecharule_ops.predicates.cuts import PredicateColumns
from mecharule_ops.rules.algebra import Clause, Condition, Lookup, Rule, lookup_in, mcc
from mecharule_ops.rules.clause_pool import varied
from mecharule_ops.rules.ruleshap import (
    Learned,
    RuleShapSettings,
    RuleStatus,
    check_target,
    combined,
    extract,
    readiness,
)
from mecharule_ops.types import RuleScore


@dataclass(frozen=True, slots=True, order=True)
class Size:
    """The bounds of a rule; smaller sizes come first."""

    clauses: int
    literals: int
    """Most literals of a clause."""


LONGEST = 5
"""Values of the longest set."""
FOLDS = 5
SIZES = (Size(1, 1), Size(1, 2), Size(2, 1), Size(1, 3), Size(2, 2), Size(2, 3), Size(3, 2), Size(3, 3))
"""What is tried, the fewest literals in all first; three clauses of one literal stay out."""
SETTINGS = RuleShapSettings(rounds=40, shap_draws=64, pool=400, starts=4, min_gain=0.01)
"""Fewer trees than where a rule is learned once, and more climbs: it is fitted once a fold, and cut by its size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Short:
    """A rule with what chose it, or why there is none."""

    status: RuleStatus
    rule: Rule | None = None
    train: RuleScore | None = None
    """On the records it was learned from."""
    validated: float | None = None
    """Mean MCC of such rules over the folds."""
    sets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Each set that the rule names → the predicates of its values."""

    def fires(self, lookup: Lookup) -> Bool[np.ndarray, " record"]:
        """Where the rule holds, by a lookup that knows the predicates of the table. Needs a rule."""
        assert self.rule is not None, self.status
        return self.rule.fires(with_sets(lookup, self.sets))


def phrased(rule: Rule) -> Rule:
    """The same rule with each negated comparison turned round."""

    def turned(condition: Condition) -> Condition:
        other = None if condition.value else complement(condition.predicate)
        return condition if other is None else Condition(other, True)

    return Rule(tuple(Clause(tuple(map(turned, clause.conditions))) for clause in rule.clauses))


def short_rule(given: PredicateColumns, target: Bool[np.ndarray, " record"], seed: int) -> Short:
    """Learn a rule on these records, within the size that cross-validation chose.

    Deterministic for the seed. Cost: no model calls.

    Raises:
        UsageError: shapes disagree.

    """
    check_target(given, target)
    table = given.at(varied(given.matrix))
    status = readiness(target, table.texts)
    if status is not RuleStatus.LEARNED:
        return Short(status=status)
    scores = _validated(table, target, seed)
    chosen = one_standard_error(scores)
    sets = value_sets(table, target)
    (learned,) = _learned(beside_sets(table, sets), target, SIZES[chosen : chosen + 1], seed)
    if learned.rule is None:
        return Short(status=learned.status)
    return Short(
        status=learned.status,
        rule=learned.rule,
        train=learned.train,
        validated=float(scores[chosen].mean()),
        sets={text: members for text, members in sets.items() if text in learned.rule.predicates},
    )


def folds_of(
    target: Bool[np.ndarray, " record"], count: int, generator: np.random.Generator
) -> Int[np.ndarray, " record"]:
    """A fold for each record, the sides of the target spread evenly."""
    folds = np.empty(len(target), np.int64)
    for side in (False, True):
        places = generator.permutation(np.flatnonzero(target == side))
        folds[places] = np.arange(len(places)) % count
    return folds


def one_standard_error(scores: Float[np.ndarray, "size fold"]) -> int:
    """The first size whose mean lies within one standard error of the best mean, the error that of the best size."""
    means = scores.mean(axis=1)
    best = int(np.argmax(means))
    error = scores[best].std(ddof=1) / np.sqrt(scores.shape[1])
    return int(np.argmax(means >= means[best] - error - 1e-12))


def _validated(
    table: PredicateColumns, target: Bool[np.ndarray, " record"], seed: int
) -> Float[np.ndarray, "size fold"]:
    """MCC of the rule of each size on each fold; 0.0 without a rule."""
    folds = folds_of(target, FOLDS, np.random.default_rng(seed))
    scores = np.zeros((len(SIZES), FOLDS))
    for fold in range(FOLDS):
        inside = folds != fold
        known = table.on(inside)
        sets = value_sets(known, target[inside])
        outside = with_sets(lookup_in(table.matrix[~inside], table.texts), sets)
        for place, learned in enumerate(_learned(beside_sets(known, sets), target[inside], SIZES, seed)):
            if learned.rule is not None:
                scores[place, fold] = mcc(learned.rule.fires(outside), target[~inside])
    return scores


def _learned(
    table: PredicateColumns, target: Bool[np.ndarray, " record"], sizes: tuple[Size, ...], seed: int
) -> Iterator[Learned]:
    """Learn a rule of each size; clauses are ranked once, and each size takes those that are short enough."""
    settings = replace(SETTINGS, depth=max(size.literals for size in sizes))
    ranking = extract(table, target, settings=settings, seed=seed)
    for size in sizes:
        bounded = replace(settings, max_clauses=size.clauses)
        yield combined(ranking.up_to(size.literals), table, target, bounded)


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

"""One short rule for a target, its length chosen inside the records given, which must be train records.

RuleSHAP learns a rule of each size, from one literal up to three clauses of three; cross-validation scores them. The
one-standard-error rule (Breiman et al. 1984, §3.4.3) takes the smallest size whose mean MCC lies within one standard
error of the best mean; a rule of that size is fitted on all records. Value sets are made from the training part of each
fold anew, so that a fold is scored on records that shaped nothing.

Rules learned on two halves of the train records say whether another sample gives the same rule, and one learned from
permuted flips what its score is worth.

A value set is a literal for several values of one expression, such as `digit(expected, 0) in (1, 2, 6)`. Ordered by the
share of the target among the records of each value, the best split of the values in two is a prefix of that order
(Fisher 1958; Breiman et al. 1984, §4.2), so only short prefixes and suffixes are offered, for a person to read.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int

from mecharule_ops.predicates.atoms import canonical, complement, equality
from mecharule_ops.predicates.cuts import PredicateColumns
from mecharule_ops.rules import clause_pool, families
from mecharule_ops.rules.algebra import Clause, Condition, Rule, lookup_in, mcc
from mecharule_ops.rules.ruleshap import Learned, RuleShapSettings, combined, extract, readiness

LONGEST = 5
"""Values of the longest set."""
FOLDS, SPLITS = 5, 5
SIZES = ((1, 1), (1, 2), (2, 1), (1, 3), (2, 2), (2, 3), (3, 2), (3, 3))
"""What is tried, as (clauses, literals of a clause) at most, the fewest literals in all first; three clauses of one
literal stay out."""
SETTINGS = RuleShapSettings(rounds=40, shap_draws=64, pool=400, starts=4, min_gain=0.01)
"""Fewer trees than where a rule is learned once, and more climbs: it is fitted once a fold, and cut by its size."""


Fires = Bool[np.ndarray, " record"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Short:
    """What was learned on train, with what chose it."""

    learned: Learned
    fires: Bool[np.ndarray, " record"] | None = None
    """Where the rule holds, on all records of the table; None without one."""
    validated: float | None = None
    """Mean MCC of such rules over the folds."""
    agreement: float | None = None
    """`agreement` of rules of its size."""
    permuted: float | None = None
    """MCC, off train, of a rule of its size learned and scored on the target permuted over the records."""


def phrased(rule: Rule) -> Rule:
    """The same rule with each negated comparison turned round."""

    def turned(condition: Condition) -> Condition:
        other = None if condition.value else complement(condition.predicate)
        return condition if other is None else Condition(other, True)

    return Rule(tuple(Clause(tuple(map(turned, clause.conditions))) for clause in rule.clauses))


def short_rule(
    given: PredicateColumns, target: Bool[np.ndarray, " record"], train: Int[np.ndarray, " train"], seed: int
) -> Short:
    """Learn a rule on the train records, within the size that cross-validation chose.

    Deterministic for the seed. Cost: no model calls.

    Raises:
        UsageError: shapes disagree.

    """
    assert len(given.matrix) == len(target), (len(given.matrix), len(target))
    table = given.at(clause_pool.varied(given.matrix[train]))
    status = readiness(target[train], table.texts)
    if status is not families.RuleStatus.LEARNED:
        return Short(learned=Learned(status=status))
    folds = folds_of(target[train], FOLDS, np.random.default_rng(seed))
    scores = np.zeros((len(SIZES), FOLDS))
    for fold in range(FOLDS):
        out = train[folds == fold]
        for place, (_, fires) in enumerate(_learned(table, target, train[folds != fold], SIZES, seed)):
            scores[place, fold] = 0.0 if fires is None else mcc(fires[out], target[out])
    chosen = one_standard_error(scores)
    ((learned, fires),) = _learned(table, target, train, size := SIZES[chosen : chosen + 1], seed)
    if fires is None:
        return Short(learned=learned)

    def again(wanted: Bool[np.ndarray, " record"], inside: Int[np.ndarray, " inside"]) -> Fires:
        ((_, held),) = _learned(table, wanted, inside, size, seed)
        return np.zeros(len(wanted), bool) if held is None else held

    off = np.delete(np.arange(len(target)), train)
    mixed = np.random.default_rng([seed, 1]).permutation(target)
    return Short(
        learned=learned,
        fires=fires,
        validated=float(scores[chosen].mean()),
        agreement=agreement(lambda half: again(target, half)[off], target, train, seed) if len(off) else None,
        permuted=mcc(again(mixed, train)[off], mixed[off]) if len(off) else None,
    )


def agreement(
    learn: Callable[[np.ndarray], np.ndarray], target: Fires, train: np.ndarray, seed: int
) -> float:
    """Median correlation, of firings the MCC, over splits of train in halves, of what the two halves learn.

    `learn` says where its rule holds on records off train: 1 where another sample gives the same rule, about 0 where
    it gives any other. One that is the same on all records agrees with nothing.
    """
    found = []
    for split in range(SPLITS):
        half = folds_of(target[train], 2, np.random.default_rng([seed, split]))
        first, second = (learn(train[half == side]).astype(float) for side in (0, 1))
        found.append(np.corrcoef(first, second)[0, 1] if np.ptp(first) * np.ptp(second) > 0 else 0.0)
    return float(np.median(found))


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
    return int(np.argmax(means >= means[best] - scores[best].std(ddof=1) / np.sqrt(scores.shape[1]) - 1e-12))


def _learned(
    table: PredicateColumns,
    target: Bool[np.ndarray, " record"],
    inside: Int[np.ndarray, " inside"],
    sizes: Sequence[tuple[int, int]],
    seed: int,
) -> Iterator[tuple[Learned, Bool[np.ndarray, " record"] | None]]:
    """Learn a rule of each size on the records inside; with where it holds on all of them, None without one.

    Clauses are ranked once, and each size takes those that are short enough.
    """
    whole = beside_sets(table, value_sets(table.on(inside), target[inside]))
    known, wanted, lookup = whole.on(inside), target[inside], lookup_in(whole.matrix, whole.texts)
    settings = replace(SETTINGS, depth=max(literals for _, literals in sizes))
    ranking = extract(known, wanted, settings=settings, seed=seed)
    for clauses, literals in sizes:
        learned = combined(ranking.up_to(literals), known, wanted, replace(settings, max_clauses=clauses))
        yield learned, None if learned.rule is None else learned.rule.fires(lookup)


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
        order = np.argsort(-(hits + target.mean()) / (counts + 1), kind="stable")
        for size in range(2, min(LONGEST, len(order) - 1) + 1):
            for chosen in (order[:size], order[-size:]):
                members = sorted(values[index] for index in chosen.tolist())
                text = canonical(f"{expression} in {tuple(value for value, _ in members)!r}")
                sets.setdefault(text, tuple(table.texts[place] for _, place in members))
    known = set(table.texts)
    return {text: members for text, members in sets.items() if text not in known}


def beside_sets(table: PredicateColumns, sets: Mapping[str, tuple[str, ...]]) -> PredicateColumns:
    """The table with a column for each set, made of the predicates of its values."""
    lookup = lookup_in(table.matrix, table.texts)
    made = [np.logical_or.reduce([lookup(member) for member in members]) for members in sets.values()]
    return PredicateColumns(texts=(*table.texts, *sets), matrix=np.column_stack([table.matrix, *made]))

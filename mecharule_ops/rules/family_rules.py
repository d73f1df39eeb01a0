"""The rules of one unit in the three families, each beside free-form trees on the same held-out records.

Train records choose the cuts, the value sets, the length and the trees; held-out records are predicted
once by the rule and once by the trees. They select nothing that is fitted; they decide which rules are shown: here by
the interval, and once the run has ended after correction over all of its learned rules. Axes: record, predicate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Bool, Int

from mecharule_ops.predicates.cuts import PredicateColumns, column_predicates, evaluated
from mecharule_ops.rules.algebra import score
from mecharule_ops.rules.families import OF_AN_ACCOUNT, Family, RuleStatus, UnitRule
from mecharule_ops.rules.free_form_trees import free_form_trees
from mecharule_ops.rules.interval import chance_test
from mecharule_ops.rules.ruleshap import readiness
from mecharule_ops.rules.short_rules import phrased, short_rule
from mecharule_ops.types import Columns, FlipsWhere, Neuron


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FamilyColumns:
    """What one family adds to those before it, on the records whose flips are known."""

    predicates: PredicateColumns | None = None
    """Conditions with their texts; None for none."""
    values: Columns = field(default_factory=dict)
    """Columns of numbers, texts and conditions by the name that a rule gives them, such as `lead_1` or `push_1`. Cuts
    are made on train; NaN where a record has no value."""

    @property
    def empty(self) -> bool:
        """Whether it adds nothing."""
        return not self.values and not (self.predicates and self.predicates.texts)

    @property
    def numbers(self) -> dict[str, np.ndarray]:
        """The columns that the trees read as they are."""
        return {name: column for name, column in self.values.items() if column.dtype.kind in "if"}

    def table(self, train: Int[np.ndarray, " train"]) -> PredicateColumns:
        """Its conditions and the predicates made of its values."""
        made = evaluated(column_predicates(self.values, train), self.values) if self.values else None
        tables = [table for table in (self.predicates, made) if table is not None]
        return tables[0].beside(tables[-1])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Target:
    """What is to be predicted, and which records may choose."""

    flips: Bool[np.ndarray, " record"]
    train: Int[np.ndarray, " train"]
    test: Int[np.ndarray, " test"]


def account_rules(
    unit: Neuron, target: Target, families: Mapping[Family, FamilyColumns], seed: int
) -> tuple[UnitRule, ...]:
    """The unit's rule in each family of an account, in order; one without columns of its own says so.

    Cost: no model calls.
    """
    table = PredicateColumns(texts=(), matrix=np.zeros((len(target.flips), 0), bool))
    values, rules = dict[str, np.ndarray](), list[UnitRule]()
    for family in OF_AN_ACCOUNT:
        bare, own = UnitRule(neuron=unit, family=family), families.get(family, FamilyColumns())
        if own.empty:
            rules.append(replace(bare, absent=RuleStatus.NO_COLUMNS))
            continue
        table = table.beside(own.table(target.train))
        values |= own.numbers
        rules.append(_learned(bare, target, table, values, seed))
    return tuple(rules)


def _learned(
    bare: UnitRule, target: Target, table: PredicateColumns, values: Mapping[str, np.ndarray], seed: int
) -> UnitRule:
    """One family's rule over all columns that it may read."""
    ready = readiness(target.flips[target.train], table.texts)
    if ready is not RuleStatus.LEARNED:
        return replace(bare, absent=ready)
    features = np.column_stack([table.matrix, *values.values()]).astype(np.float32)
    generator = np.random.default_rng([seed, OF_AN_ACCOUNT.index(bare.family)])
    trees = free_form_trees(features, target.flips, target.train, target.test, generator, seed)
    short = short_rule(table, target.flips, target.train, seed)
    if short.learned.rule is None or short.fires is None:
        return replace(bare, free_form=trees, absent=short.learned.status)
    fires, flips = short.fires[target.test], target.flips[target.test]
    return replace(
        bare,
        rule=phrased(short.learned.rule),
        train=short.learned.train,
        held_out=score(fires, flips),
        chance=chance_test(fires, flips),
        validated=short.validated,
        prompt_only=bare.family is Family.INPUT,
        where=FlipsWhere.of(fires, flips),
        free_form=trees,
    )

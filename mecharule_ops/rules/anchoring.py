"""Neuron-anchored rules: when ablating one unit flips the behaviour (paper, §4.5).

The flip target of unit j on the eligible records D_b is y(x) = 1 where the outcome under do({j}) is not b.
RuleSHAP runs again on that target. HQ-T: clauses and OR-combination come from the train split alone, and the
rule is scored once on the held-out split. HQ-F: the rule is fitted and scored on every eligible record; it
describes, it does not predict. Axes: neuron, eligible (a record of D_b), predicate.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Int

from mecharule_ops.errors import UsageError
from mecharule_ops.predicates.cuts import PredicateColumns
from mecharule_ops.rules.algebra import lookup_in, score
from mecharule_ops.rules.families import Family, UnitRule
from mecharule_ops.rules.interval import chance_test
from mecharule_ops.rules.ruleshap import check_target, learn_rule
from mecharule_ops.types import FlipCount, FlipsWhere, Neuron


def hq_rules(
    neuron: Neuron,
    flips: Bool[np.ndarray, " eligible"],
    table: PredicateColumns,
    train: Int[np.ndarray, " train"],
    test: Int[np.ndarray, " test"],
    prompt_only_of: Callable[[str], bool],
    seed: int,
) -> UnitRule:
    """The unit's HQ-T and HQ-F rules with their scores; a rule is None where none was learned.

    Test flips reach the held-out score and HQ-F (which uses every record by definition), never HQ-T's rule.
    Cost: no model calls; two RuleSHAP fits.

    Raises:
        UsageError: shapes disagree, train and test overlap or leave the eligible records.

    """
    check_target(table, flips)
    check_split(train, test, len(flips))
    learned = learn_rule(table.on(train), flips[train], seed=seed)
    full = learn_rule(table, flips, seed=seed)
    rule = learned.rule
    fires = None if rule is None else rule.fires(lookup_in(table.matrix[test], table.texts))
    return UnitRule(
        neuron=neuron,
        family=Family.ANCHORED,
        rule=rule,
        absent=learned.status if rule is None else None,
        train=learned.train,
        held_out=None if fires is None or not len(test) else score(fires, flips[test]),
        full_rule=full.rule,
        full=full.train,
        prompt_only=rule is not None and all(map(prompt_only_of, rule.predicates)),
        flips=FlipCount(flips=int(np.count_nonzero(flips)), n=len(flips)),
        chance=None if fires is None else chance_test(fires, flips[test]),
        where=None if fires is None else FlipsWhere.of(fires, flips[test]),
    )


def check_split(train: Int[np.ndarray, " train"], test: Int[np.ndarray, " test"], eligible: int) -> None:
    """Raises `UsageError` unless the two share no record and stay within D_b."""
    positions = np.concatenate([train, test])
    inside = positions.size == 0 or (positions.min() >= 0 and positions.max() < eligible)
    if not inside or len(np.unique(positions)) != len(positions):
        raise UsageError(f"expected disjoint train and test positions below {eligible}: split D_b once")

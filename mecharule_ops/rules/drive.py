"""What a unit responds to: a rule for where its drive is in the upper third, without the noise of the lead.

The drive d_j(x) is the first-order drop of the lead when unit j is replaced. Whether a record flips depends on the
lead as well; where the drive is high depends on the unit alone. The cut is a quantile of the train records, and the
rule stays only if it beats rules that are learned in the same way from shuffled train targets.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Int

from mecharule_ops.predicates.cuts import PredicateColumns
from mecharule_ops.rules.algebra import lookup_in, mcc
from mecharule_ops.rules.anchoring import check_split
from mecharule_ops.rules.families import DriveRule, DriveStatus
from mecharule_ops.rules.interval import MccInterval, chance_test, mcc_interval
from mecharule_ops.rules.ruleshap import permuted
from mecharule_ops.rules.short_rules import Learner, ShortRule, short_rule

UPPER = 2 / 3
"""The quantile from which a drive is high."""
ONE = (Learner.RIPPER,)
"""One learner, since the control learns as often as there are shuffles."""
SHUFFLES = 5
"""Rules learned from shuffled train targets that the rule has to beat."""


def drive_rule(
    drive: Float[np.ndarray, " record"],
    table: PredicateColumns,
    train: Int[np.ndarray, " train"],
    test: Int[np.ndarray, " test"],
    seed: int,
) -> DriveRule:
    """The rule over these predicates for where the drive is in its upper third; NaN is no drive.

    Cost: no model calls; 1 + `SHUFFLES` times that of a short rule.

    Raises:
        UsageError: train and test overlap or leave the records.

    """
    check_split(train, test, len(drive))
    known = drive[train][np.isfinite(drive[train])]
    threshold = float(np.quantile(known, UPPER)) if len(known) else np.nan
    high = drive >= threshold
    if not high[train].any() or high[train].all():
        return DriveRule(status=DriveStatus.CONSTANT)
    generator = np.random.default_rng(seed)
    learned = short_rule(table.on(train), high[train], seed, ONE)
    if learned.rule is None:
        return DriveRule(status=DriveStatus.NO_RULE, threshold=threshold)
    fires = _fires(learned, table, test)
    held_out = mcc_interval(fires, high[test])
    shuffled = (
        short_rule(table.on(train), permuted(high[train], generator), seed, ONE) for _ in range(SHUFFLES)
    )
    control = tuple(
        0.0 if fake.rule is None else mcc(_fires(fake, table, test), high[test]) for fake in shuffled
    )
    return DriveRule(
        status=_status(held_out, control),
        threshold=threshold,
        learned=learned.text,
        held_out=held_out,
        chance=chance_test(fires, high[test]),
        control=control,
    )


def _fires(
    rule: ShortRule, table: PredicateColumns, test: Int[np.ndarray, " test"]
) -> Bool[np.ndarray, " test"]:
    return rule.fires(lookup_in(table.matrix[test], table.texts))


def _status(held_out: MccInterval | None, control: tuple[float, ...]) -> DriveStatus:
    if held_out is None:
        return DriveStatus.TOO_FEW_HELD_OUT
    return (
        DriveStatus.SHOWN if held_out.above_chance and held_out.mcc > max(control) else DriveStatus.NO_BETTER
    )

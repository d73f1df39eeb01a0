"""Neuron-anchored rules: when ablating one unit flips the behaviour (paper, §4.5).

The flip target of unit j on the eligible records D_b is y(x) = 1 where the outcome under do({j}) is not b.
RuleSHAP runs again on that target. HQ-T: clauses and OR-combination come from the train split alone, and the
rule is scored once on the held-out split. HQ-F: the rule is fitted and scored on every eligible record; it
describes, it does not predict. Axes: neuron, eligible (a record of D_b), predicate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Int

from mecharule_ops.errors import UsageError
from mecharule_ops.rules.algebra import Rule, lookup_in, score
from mecharule_ops.rules.chance import chance_test
from mecharule_ops.rules.ruleshap import LearnedRule, check_table, learn_rule
from mecharule_ops.rules.settings import RuleShapSettings, RuleStatus, readiness
from mecharule_ops.types import AnchoredRule, Neuron, Regime


@dataclass(frozen=True, slots=True, kw_only=True)
class AnchorSettings:
    """How rules are anchored."""

    ruleshap: RuleShapSettings = field(default_factory=RuleShapSettings)
    prompt_only: bool = False
    """Restrict the vocabulary to predicates that read prompt columns only; the paper uses all of Φ."""
    seed: int = 0


def anchor(
    neuron: Neuron,
    regime: Regime,
    flips: Bool[np.ndarray, " eligible"],
    matrix: Bool[np.ndarray, "eligible predicate"],
    predicates: Sequence[str],
    train: Int[np.ndarray, " train"],
    test: Int[np.ndarray, " test"],
    prompt_only_of: Callable[[str], bool],
    settings: AnchorSettings,
) -> AnchoredRule:
    """The unit's HQ-T and HQ-F rules with their scores; a rule is None where `anchor_status` says why.

    Test flips reach the held-out score and HQ-F (which uses every record by definition), never HQ-T's rule.
    Cost: no model calls; two RuleSHAP fits.

    Raises:
        UsageError: shapes disagree, train and test overlap or leave the eligible records.

    """
    check_table(matrix, predicates, flips)
    check_split(train, test, len(flips))
    kept = _vocabulary(predicates, prompt_only_of, settings)
    texts = [predicates[index] for index in kept]
    table = matrix[:, kept]
    learned = _learn(table[train], texts, flips[train], settings)
    full = _learn(table, texts, flips, settings)
    rule = learned.rule
    fires = None if rule is None else rule.fires(lookup_in(table[test], texts))
    return AnchoredRule(
        neuron=neuron,
        regime=regime,
        rule=_text(rule),
        train=learned.train,
        held_out=None if fires is None or not len(test) else score(fires, flips[test]),
        full_rule=_text(full.rule),
        full=full.train,
        prompt_only=rule is not None and all(map(prompt_only_of, rule.predicates)),
        flips=int(np.count_nonzero(flips)),
        eligible=len(flips),
        chance=None if fires is None else chance_test(fires, flips[test]),
    )


def anchor_status(
    anchored: AnchoredRule,
    train_flips: Bool[np.ndarray, " train"],
    predicates: Sequence[str],
    prompt_only_of: Callable[[str], bool],
    settings: AnchorSettings,
) -> RuleStatus:
    """Why the HQ-T rule is or is not there; its value is the sentence to show."""
    if anchored.rule is not None:
        return RuleStatus.LEARNED
    kept = _vocabulary(predicates, prompt_only_of, settings)
    status = readiness(train_flips, [predicates[index] for index in kept], settings.ruleshap.min_class)
    return RuleStatus.NO_CLAUSE if status is RuleStatus.LEARNED else status


def _learn(
    matrix: Bool[np.ndarray, "record predicate"],
    predicates: Sequence[str],
    flips: Bool[np.ndarray, " record"],
    settings: AnchorSettings,
) -> LearnedRule:
    return learn_rule(matrix, predicates, flips, settings=settings.ruleshap, seed=settings.seed)


def _vocabulary(
    predicates: Sequence[str], prompt_only_of: Callable[[str], bool], settings: AnchorSettings
) -> list[int]:
    """Positions of the predicates that rules may use."""
    return [
        index for index, text in enumerate(predicates) if not settings.prompt_only or prompt_only_of(text)
    ]


def _text(rule: Rule | None) -> str | None:
    return None if rule is None else str(rule)


def check_split(train: Int[np.ndarray, " train"], test: Int[np.ndarray, " test"], eligible: int) -> None:
    """Raises `UsageError` unless the two share no record and stay within D_b."""
    positions = np.concatenate([train, test])
    inside = positions.size == 0 or (positions.min() >= 0 and positions.max() < eligible)
    if not inside or len(np.unique(positions)) != len(positions):
        raise UsageError(f"expected disjoint train and test positions below {eligible}: split D_b once")

"""What is said of one unit by a rule in one of three families, never mixed.

A rule over the prompt says which inputs flip; over leads as well, where the model was unsure; over pushes and drops
as well, where the unit carries the answer. Beside each stands what free-form trees reach with the same columns, which
a rule may exceed. A rule is shown only where the whole interval of its held-out MCC lies above 0 and Fisher's exact
test, corrected over all learned rules of the run (Holm), tells it apart from chance.

The paper's anchored rule (§4.5) is of high quality by MCC and coverage: HQ-T on held-out records, HQ-F on all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from mecharule_ops.rules.algebra import Rule
from mecharule_ops.rules.interval import MccInterval
from mecharule_ops.types import ChanceTest, FlipsWhere, Neuron, Regime, RuleScore

THRESHOLD = 0.70
"""MCC from which a rule is of high quality (paper, §4.5)."""
COVERAGE_FLOOR = 0.005
"""Least share of the eligible records on which a high-quality rule fires (paper, §4.5)."""


class Family(StrEnum):
    """Which quantities a rule may read; each family may read those of the families before it."""

    INPUT = "input"
    """The prompt's fields alone."""
    CLEAN_RUN = "clean run"
    """What the unablated model did: its answer, how close it was to another token, and to which."""
    MECHANISM = "mechanism"
    """How hard the unit pushes, and what its replacement takes away to first order."""

    @property
    def gates(self) -> str:
        """When such a rule can be checked."""
        return {
            Family.INPUT: "before the model answers",
            Family.CLEAN_RUN: "after one clean pass",
            Family.MECHANISM: "after one backward pass",
        }[self]


class FamilyStatus(StrEnum):
    """What became of a family's rule; the value is the sentence a person reads."""

    SHOWN = "the rule predicts held-out flips better than chance"
    NO_BETTER = "no rule predicts: the interval of the held-out MCC is not above 0"
    NOT_APART = "no rule predicts: over all learned rules of the run chance may do as well"
    NO_CLAUSE = "no clause that fires often enough agrees with the flips better than chance"
    CONSTANT = "the unit flips all of the train records or none, so there is nothing to tell apart"
    TOO_FEW = "one side of the flips has too few train records to learn a rule from"
    TOO_FEW_HELD_OUT = (
        "one side of the flips has too few held-out records for an interval, so no rule is shown"
    )
    ARITHMETIC = "nothing in the model lies above the unit, so a rule over its drop would be arithmetic"
    NO_COLUMNS = NO_PREDICATES = "the family has no columns here"
    NO_RECORDS = "there are no records to learn a rule from"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trees:
    """What cross-validation inside train chose for the trees."""

    depth: int
    rounds: int
    threshold: float
    """Least probability that counts as a prediction of the target."""
    validated: float
    """MCC of the pooled out-of-fold predictions at that threshold; it was chosen by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyRule:
    """When one unit flips, in one family."""

    family: Family
    status: FamilyStatus
    columns: int
    """Columns that the trees read: predicates, and numbers as they are."""
    learned: Rule | None = None
    """What train chose, whether or not it may be shown."""
    train: RuleScore | None = None
    """Of that rule on the records it was learned from."""
    held_out: MccInterval | None = None
    """Of that rule, scored once; None where there is none or too few records for an interval."""
    chance: ChanceTest | None = None
    """Of that rule on the same records; None without a rule and in runs that did not keep it."""
    free_form: MccInterval | None = None
    """Trees of any form over the same columns, scored once on the same records."""
    trees: Trees | None = None
    """How those trees are grown; None where none were."""
    validated: float | None = None
    """Mean MCC of such rules over the folds inside train."""
    prompt_only: bool = False
    """Whether the learned rule can be checked before the model answers; an old run's input rule may read it."""
    words: str = ""
    """What train chose in the words of the task; empty without a rule, and in runs that did not keep it."""
    where: FlipsWhere | None = None
    """Held-out flips where it holds and elsewhere; None likewise."""

    def decided(self, chance: ChanceTest | None) -> FamilyRule:
        """The same with its test corrected over the run."""
        status = self.status
        if chance is not None and status in (FamilyStatus.SHOWN, FamilyStatus.NOT_APART):
            status = FamilyStatus.NOT_APART if chance.failed else FamilyStatus.SHOWN
        return replace(self, chance=chance, status=status)

    @property
    def rule(self) -> Rule | None:
        """The rule to show; None unless the status is SHOWN."""
        return self.learned if self.status is FamilyStatus.SHOWN else None

    @property
    def share_of_free_form(self) -> float | None:
        """Held-out MCC over that of the trees; None without a shown rule or where theirs is not above 0."""
        if self.rule is None or self.held_out is None or self.free_form is None or self.free_form.mcc <= 0:
            return None
        return self.held_out.mcc / self.free_form.mcc


@dataclass(frozen=True, slots=True, kw_only=True)
class AnchoredRule:
    """When ablating one agonist flips the behaviour (paper, §4.5)."""

    neuron: Neuron
    regime: Regime
    rule: Rule | None
    """The HQ-T rule, learned on train only; None when no clause was found."""
    train: RuleScore | None
    held_out: RuleScore | None
    """HQ-T: the train rule scored once on the test split."""
    full_rule: Rule | None
    """The HQ-F rule, fitted on all eligible records: descriptive, not held out."""
    full: RuleScore | None
    prompt_only: bool
    """True when the rule reads prompt columns only, so that it can be checked before generation."""
    flips: int
    """Flipped records of D_b in all."""
    eligible: int
    """Records of D_b."""
    chance: ChanceTest | None = None
    """Of the train rule on the test split; None without a rule and in runs that did not keep it."""
    words: str = ""
    """The train rule in the words of the task; empty without a rule and in runs that did not keep it."""
    where: FlipsWhere | None = None
    """Flips of the test split where the train rule holds and elsewhere; None likewise."""


def is_hq(score: RuleScore | None, threshold: float = THRESHOLD, floor: float = COVERAGE_FLOOR) -> bool:
    """True when a rule's MCC reaches the threshold and it fires on the floor's share of its scope or more."""
    return score is not None and score.mcc >= threshold and score.coverage >= floor


def dataset_coverage(anchored: AnchoredRule) -> float:
    """Share of the split's eligible records, train and held-out together, on which the HQ-T rule fires."""
    parts = [part for part in (anchored.train, anchored.held_out) if part is not None]
    records = sum(part.n for part in parts)
    return sum(part.coverage * part.n for part in parts) / records if records else 0.0


def is_hq_test(anchored: AnchoredRule, threshold: float = THRESHOLD, floor: float = COVERAGE_FLOOR) -> bool:
    """HQ-T: the held-out MCC reaches the threshold, and the coverage of the eligible records the floor."""
    return is_hq(anchored.held_out, threshold, floor=0.0) and dataset_coverage(anchored) >= floor


def is_hq_full(anchored: AnchoredRule, threshold: float = THRESHOLD, floor: float = COVERAGE_FLOOR) -> bool:
    """HQ-F: the MCC of the rule fitted on every eligible record reaches the threshold."""
    return is_hq(anchored.full, threshold, floor)

"""What is said of one unit by a rule over the prompt, where it never flips, and by the paper's anchored rule.

Beside a rule over the prompt stands what free-form trees reach with the same columns, which a rule may exceed. A
rule is shown only where the whole interval of its held-out MCC lies above 0 and Fisher's exact
test, corrected over all learned rules of the run (Holm), tells it apart from chance.

The paper's anchored rule (§4.5) is of high quality by MCC and coverage: HQ-T on held-out records, HQ-F on all of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from mecharule_ops.rules.algebra import Rule
from mecharule_ops.rules.interval import MccInterval, interval_of
from mecharule_ops.types import ChanceTest, FlipCount, FlipsWhere, Neuron, RuleScore

THRESHOLD = 0.70
"""MCC from which a rule is of high quality (paper, §4.5)."""
STABLE, TELLS = 0.5, 0.5
"""Agreement of halves from which a rule is told; MCC that the lower bound of what tells flips exceeds."""
STRONG, LEAST_QUIET = 0.8, 5
"""Share that a unit flips from which its exceptions are sought and told; held-out records that meet one at least."""
HOLDS = 0.7
"""What the AUC of terms that hold exceeds, its lower bound too."""
COVERAGE_FLOOR = 0.005
"""Least share of the eligible records on which a high-quality rule fires (paper, §4.5)."""
CHOSEN, PERMUTED = ("train-chosen", "test-chosen", "all-fit"), ", permuted"
"""The scores of `chosen_scores`, by which records chose a rule's combination, and what is added with flips permuted."""


class Family(StrEnum):
    """What kind of rule it is."""

    INPUT = "input"
    """The prompt's fields alone."""
    EXCEPTION = "exception"
    """Of a unit that nearly always flips: where it never does, which is no flip of many train records."""
    ANCHORED = "anchored"
    """The rule of the paper (§4.5), which has no free-form trees beside it."""


class RuleStatus(StrEnum):
    """What became of a rule; the value is the sentence a person reads."""

    LEARNED = "a rule was learned"
    SHOWN = "the rule predicts held-out flips better than chance"
    NO_BETTER = "no rule predicts: the interval of the held-out MCC is not above 0"
    NOT_APART = "no rule predicts: over all learned rules of the run chance may do as well"
    NO_CLAUSE = "no clause that fires often enough agrees with the target better than chance"
    CONSTANT = "the target is the same on every train record, so there is nothing to tell apart"
    TOO_FEW = "one side of the target has too few train records to learn a rule from"
    TOO_FEW_HELD_OUT = (
        "one side of the flips has too few held-out records for an interval, so no rule is shown"
    )
    NO_PREDICATES = "there are no predicates to build a rule from"
    NO_RECORDS = "there are no records to learn a rule from"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitRule:
    """When ablating one unit flips the behaviour, by the rule of one family."""

    neuron: Neuron
    family: Family
    rule: Rule | None = None
    """What train chose, whether or not it may be shown."""
    absent: RuleStatus | None = None
    """Why there is none."""
    train: RuleScore | None = None
    """On the records it was learned from."""
    held_out: RuleScore | None = None
    """Scored once, on the others (an anchored rule: HQ-T)."""
    chance: ChanceTest | None = None
    """Of the rule on the same records; None without a rule."""
    where: FlipsWhere | None = None
    """Held-out flips where it holds and elsewhere; None likewise."""
    words: str = ""
    """The rule in the words of the task; empty without one."""
    prompt_only: bool = False
    """Whether it reads columns of the prompt alone, so that it can be checked before the model answers."""
    validated: float | None = None
    """Of an account's rule: mean MCC of such rules over the folds inside train."""
    agreement: float | None = None
    """Of an account's rule: MCC of where the rules of two halves of train hold, on the other records; the median."""
    permuted: float | None = None
    """Of an account's rule: the held-out MCC of one learned from flips that were permuted over the records."""
    free_form: MccInterval | None = None
    """Of an account's rule: trees of any form over the same columns, scored once on the same records."""
    full_rule: Rule | None = None
    """Of an anchored rule: HQ-F, fitted on all eligible records: descriptive, not held out."""
    full: RuleScore | None = None
    flips: FlipCount | None = None
    """Of an anchored rule: flipped records of D_b, of all."""
    published: Mapping[str, float] = field(default_factory=dict)
    """`chosen_scores` over both regimes, in a run by the published protocol."""

    @property
    def interval(self) -> MccInterval | None:
        """The held-out MCC with its interval; None without a rule or on too few records."""
        return None if self.held_out is None else interval_of(self.held_out)

    @property
    def status(self) -> RuleStatus:
        """What became of it: held-out records decide that, and the correction over the run once it is made."""
        if self.absent is not None:
            return self.absent
        if (interval := self.interval) is None:
            return RuleStatus.TOO_FEW_HELD_OUT
        if not interval.above_chance:
            return RuleStatus.NO_BETTER
        return RuleStatus.NOT_APART if self.chance is not None and self.chance.failed else RuleStatus.SHOWN

    @property
    def shown(self) -> bool:
        """Whether it predicts held-out flips, beyond chance."""
        return self.status is RuleStatus.SHOWN

    @property
    def of_trees(self) -> float | None:
        """Its held-out MCC over that of free-form trees; None where one of them is no better than chance."""
        reached, trees = self.interval, self.free_form
        return reached.mcc / trees.mcc if reached and trees and min(reached.mcc, trees.mcc) > 0 else None

    @property
    def told(self) -> bool:
        """Whether its words may stand in a headline: it is shown, and another sample gives nearly the same rule."""
        return self.shown and self.agreement is not None and self.agreement >= STABLE

    @property
    def tells(self) -> bool:
        """Whether it is told and says which answers flip: the lower bound of its MCC lies above `TELLS`."""
        return self.told and self.interval is not None and self.interval.low > TELLS


def is_hq(score: RuleScore | None, threshold: float = THRESHOLD, floor: float = COVERAGE_FLOOR) -> bool:
    """True when a rule's MCC reaches the threshold and it fires on the floor's share of its scope or more."""
    return score is not None and score.mcc >= threshold and score.coverage >= floor


def dataset_coverage(anchored: UnitRule) -> float:
    """Share of the split's eligible records, train and held-out together, on which the HQ-T rule fires."""
    parts = [part for part in (anchored.train, anchored.held_out) if part is not None]
    records = sum(part.n for part in parts)
    return sum(part.coverage * part.n for part in parts) / records if records else 0.0


def is_hq_test(anchored: UnitRule, threshold: float = THRESHOLD, floor: float = COVERAGE_FLOOR) -> bool:
    """HQ-T: the held-out MCC reaches the threshold, and the coverage of the eligible records the floor."""
    return is_hq(anchored.held_out, threshold, floor=0.0) and dataset_coverage(anchored) >= floor


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """How well something tells the ranks of held-out records, and the upper third."""

    r2: float
    auc: float
    low: float
    high: float
    """95 % interval of the AUC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A clause, and how far up the ranks it lifts a record where it holds, 1 being all the way."""

    rule: Rule
    lifts: float
    words: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Graded:
    """A few terms, the one that was chosen first before the others, and what they are worth beside trees."""

    terms: tuple[Term, ...]
    fit: Fit
    trees: Fit
    permuted: Fit
    """Of terms chosen in the same way after the numbers were permuted over the records."""
    agreement: float
    """Correlation of what as many terms from either half of train say of held-out records: median of five splits."""
    records: int
    """Held-out records."""
    top: FlipsWhere
    """Those in the upper third, where the terms put them there and elsewhere."""

    @property
    def kept(self) -> float:
        """What the terms keep of the trees' AUC above .5; NaN where the trees know nothing."""
        known = self.trees.auc - 0.5
        return (self.fit.auc - 0.5) / known if known > 0 else float("nan")

    @property
    def tells(self) -> bool:
        """Whether they tell the upper third of held-out records for sure, and halves of train give much the same."""
        return self.fit.low > HOLDS and self.agreement >= STABLE

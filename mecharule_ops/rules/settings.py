"""What shapes a RuleSHAP extraction, and the ways it can end (paper, §4.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from math import ceil

import numpy as np
from jaxtyping import Bool

from mecharule_ops.errors import UsageError
from mecharule_ops.rules.boosting import BoostSettings


class RuleStatus(StrEnum):
    """How rule extraction ended; the value is the sentence a person reads."""

    LEARNED = "a rule was learned"
    NO_RECORDS = "there are no records to learn a rule from"
    NO_PREDICATES = "there are no predicates to build a rule from"
    CONSTANT = "the target is the same on every record, so no rule can separate it"
    TOO_FEW = "one side of the target has too few records to learn a rule from"
    NO_CLAUSE = "no clause that fires often enough agrees with the target better than chance"


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleShapSettings:
    """What shapes the extraction. Raises `UsageError` when a value is out of range."""

    boost: BoostSettings = field(default_factory=BoostSettings)
    """The trees."""
    min_coverage: float = 0.005
    """A clause must fire on at least this share of the records, in [0, 1]."""
    min_support: int = 3
    """A clause must fire on at least this many records, however few there are."""
    min_class: int = 5
    """Each side of the target needs this many records."""
    shap_draws: int = 4096
    """Records drawn (with replacement) for the SHAP weights when there are more distinct rows than this."""
    pool: int = 1000
    """Best clauses that are kept and offered to the greedy OR."""
    max_clauses: int = 8
    """Most clauses of a rule."""
    starts: int = 1
    """Best single clauses that the greedy OR is seeded with, one climb each; 1 is one climb from the best."""
    min_gain: float = 0.02
    """The greedy OR adds a clause only if the MCC improves by more than this; the paper's 0 overfits a few hundred
    records and keeps spurious clauses of planted rules (`tests/rules/test_planted_defaults.py`)."""

    def __post_init__(self) -> None:
        counts = (self.min_support, self.min_class, self.shap_draws, self.pool, self.max_clauses, self.starts)
        if not 0 <= self.min_coverage <= 1 or min(counts) < 1 or self.min_gain < 0:
            raise UsageError(f"expected a coverage in [0, 1], a gain ≥ 0 and counts ≥ 1, got {self}")

    @classmethod
    def paper(cls) -> RuleShapSettings:
        """As printed: the greedy OR keeps every clause that improves the MCC at all (paper, §4.2)."""
        return cls(min_gain=0.0)

    def least_firings(self, records: int) -> int:
        """Records on which a clause must fire; the small slack keeps a share such as 0.07 of 100 at 7."""
        return max(self.min_support, ceil(self.min_coverage * records - 1e-9))


def readiness(target: Bool[np.ndarray, " record"], predicates: Sequence[str], min_class: int) -> RuleStatus:
    """LEARNED when each side of the target has `min_class` records to learn from, otherwise why not."""
    positives = int(np.count_nonzero(target))
    rarer = min(positives, len(target) - positives)
    if len(target) == 0:
        return RuleStatus.NO_RECORDS
    if not predicates:
        return RuleStatus.NO_PREDICATES
    if rarer == 0:
        return RuleStatus.CONSTANT
    return RuleStatus.TOO_FEW if rarer < min_class else RuleStatus.LEARNED

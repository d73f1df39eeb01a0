"""What shapes a RuleSHAP extraction, and the ways it can end (paper, §4.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import ceil

import numpy as np
from jaxtyping import Bool

from mecharule_ops.errors import UsageError

MIN_CLASS = 5
"""Each side of a target needs this many records."""
MIN_SUPPORT = 3
"""A clause must fire on at least this many records, however few there are."""


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

    rounds: int = 100
    """Trees that propose clauses."""
    depth: int = 4
    """Most conditions on a path, so of a clause."""
    min_coverage: float = 0.005
    """A clause must fire on at least this share of the records, in [0, 1]."""
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
        counts = (self.rounds, self.depth, self.shap_draws, self.pool, self.max_clauses, self.starts)
        if not 0 <= self.min_coverage <= 1 or min(counts) < 1 or self.min_gain < 0:
            raise UsageError(f"expected a coverage in [0, 1], a gain ≥ 0 and counts ≥ 1, got {self}")

    def least_firings(self, records: int) -> int:
        """Records on which a clause must fire; the small slack keeps a share such as 0.07 of 100 at 7."""
        return max(MIN_SUPPORT, ceil(self.min_coverage * records - 1e-9))


def readiness(target: Bool[np.ndarray, " record"], predicates: Sequence[str]) -> RuleStatus:
    """LEARNED when each side of the target has `MIN_CLASS` records to learn from, otherwise why not."""
    positives = int(np.count_nonzero(target))
    rarer = min(positives, len(target) - positives)
    if len(target) == 0:
        return RuleStatus.NO_RECORDS
    if not predicates:
        return RuleStatus.NO_PREDICATES
    if rarer == 0:
        return RuleStatus.CONSTANT
    return RuleStatus.TOO_FEW if rarer < MIN_CLASS else RuleStatus.LEARNED

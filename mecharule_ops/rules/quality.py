"""Which anchored rules count as high-quality: HQ-T on held-out records, HQ-F on all of them (paper, §4.5)."""

from __future__ import annotations

from mecharule_ops.types import AnchoredRule, RuleScore

THRESHOLD = 0.70
"""MCC from which a rule is of high quality (paper, §4.5)."""
COVERAGE_FLOOR = 0.005
"""Least share of the eligible records on which a high-quality rule fires (paper, §4.5)."""


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

"""Intervals over seeds and what they allow one to say.

A seed draws other records, another held-out split and other slices of one model with the same units: an interval over
seeds speaks of such draws, and a number that is the same in every seed has none. Runs of one seed under two conditions
share all three and are compared in pairs. Intervals are Student's t. Counts of a handful of seeds are not normal, so
they are a guide to the spread, not exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy.special import stdtrit
from scipy.stats import rankdata

CONFIDENCE = 0.95
FEWEST = 5
"""Seeds below which no difference is called one."""
_ROUNDING = 1e-12
"""Values as near as this are the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A mean over seeds with its two-sided t-interval."""

    mean: float
    """NaN without values."""
    low: float
    """NaN with fewer than two values."""
    high: float
    n: int
    """Values that were not NaN."""


class Direction(StrEnum):
    """What a paired difference over seeds shows; the value is the phrase a person reads."""

    MORE = "more"
    FEWER = "fewer"
    NOT_SHOWN = "no difference shown"
    TOO_FEW = "too few seeds to say"


def t_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """Mean ± t(n−1) · s / √n of the values that are not NaN."""
    given = [value for value in values if not math.isnan(value)]
    n = len(given)
    if n == 0:
        return Interval(mean=math.nan, low=math.nan, high=math.nan, n=0)
    mean = float(np.mean(given))
    if n == 1:
        return Interval(mean=mean, low=math.nan, high=math.nan, n=1)
    if max(given) - min(given) < _ROUNDING:
        return Interval(mean=mean, low=mean, high=mean, n=n)
    half = float(stdtrit(n - 1, (1 + confidence) / 2)) * float(np.std(given, ddof=1)) / math.sqrt(n)
    return Interval(mean=mean, low=mean - half, high=mean + half, n=n)


def paired_difference(
    first: Sequence[float], second: Sequence[float], confidence: float = CONFIDENCE
) -> Interval:
    """The t-interval of first − second, seed by seed; the two are aligned."""
    return t_interval([a - b for a, b in zip(first, second, strict=True)], confidence)


def simultaneous(comparisons: int, confidence: float = CONFIDENCE) -> float:
    """The confidence that each of several intervals needs so that all hold together (Bonferroni)."""
    return 1 - (1 - confidence) / comparisons


def direction_of(difference: Interval) -> Direction:
    """`more` or `fewer` only when at least `FEWEST` seeds that differ give an interval without zero."""
    if difference.n < FEWEST:
        return Direction.TOO_FEW
    if not _has_spread(difference):
        return Direction.NOT_SHOWN
    if difference.low > 0:
        return Direction.MORE
    return Direction.FEWER if difference.high < 0 else Direction.NOT_SHOWN


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Spearman's ρ, ties sharing their mean rank; NaN for fewer than two pairs or a constant side."""
    if len(first) < 2 or len(set(first)) == 1 or len(set(second)) == 1:
        return math.nan
    return float(np.corrcoef(rankdata(first), rankdata(second))[0, 1])


def same_words(difference: Interval) -> str:
    """What stands behind a difference that has no spread and therefore no interval; empty for any other."""
    same = difference.n > 1 and not _has_spread(difference)
    return " (the same in every seed; seeds share units, so no interval)" if same else ""


def spelled(interval: Interval, digits: int = 1, scale: float = 1.0, *, signed: bool = False) -> str:
    """`4.2 [3.1, 5.3]`; the mean alone when there is no spread, `–` when there is nothing.

    A bound below 0 of what cannot be negative is printed as 0; `signed` is for what can.
    """
    if interval.n == 0:
        return "–"
    low = interval.low if signed else max(0.0, interval.low)
    mean, low_text, high = (
        f"{round(scale * value, digits) + 0.0:.{digits}f}" for value in (interval.mean, low, interval.high)
    )
    return f"{mean} [{low_text}, {high}]" if _has_spread(interval) else mean


def spelled_percent(interval: Interval) -> str:
    """`48 % [45, 51]`, one decimal below 10 %; bounds outside 0 to 100 are printed as those."""
    if interval.n == 0:
        return "–"
    digits = 0 if interval.mean >= 0.1 or interval.mean == 0 else 1
    mean, low, high = (
        f"{100 * value:.{digits}f}"
        for value in (interval.mean, max(0.0, interval.low), max(interval.mean, min(1.0, interval.high)))
    )
    return f"{mean} % [{low}, {high}]" if _has_spread(interval) else f"{mean} %"


def _has_spread(interval: Interval) -> bool:
    return interval.n > 1 and interval.high > interval.low

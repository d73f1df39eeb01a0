"""Means over seeds with their intervals, and what a difference allows one to say.

A seed draws other records, another held-out split and other slices of one model with the same units: an interval over
seeds describes such draws, and a number that is the same in every seed has none. Runs of one seed under two conditions
share all three and are compared in pairs. Intervals are Student's t. Counts of a handful of seeds are not normal, so
they are a guide to the spread, not exact.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from scipy import stats

from mecharule_ops.confidence import lower_bound
from mecharule_ops.facts.searches import recall_words
from mecharule_ops.findings.counts import floored
from mecharule_ops.numbers import k_of_n, percent, plural
from mecharule_ops.thresholds import ALPHA
from mecharule_ops.types import Share

CONFIDENCE = 0.95
FEWEST = 5
"""Seeds below which no difference is called one."""
_ROUNDING = 1e-12
"""Values as near as this are the same."""
Row = Mapping[str, object]
"""A row of a table by its columns' names, of which no two are the same."""


def summed_recall_words(found: Share, units: Share | None) -> str:
    """`12/12 (3 units; at least 36 %)`: a recall summed over seeds, its lower bound over distinct units.

    Seeds of one model have the same units, so a unit counts once, as found where every seed that has it found it.
    """
    if units is None or not found.n:
        return k_of_n(found)
    if units.n == found.n:
        return recall_words(found)
    share = "" if found.count == found.n else f"{percent(found.count / found.n)}; "
    always = plural(units.n, "unit")
    if units.count < units.n:
        always = f"{units.count:,} of {always} in every seed"
    lowest = 100 * floored(lower_bound(units.count, units.n, ALPHA))
    return f"{found.count:,}/{found.n:,} ({share}{always}; at least {lowest:g} %)"


class Interval(NamedTuple):
    """A mean over seeds with its two-sided t-interval; NaN where there is none."""

    mean: float
    low: float
    high: float
    n: int
    """Values that were not NaN."""

    @property
    def varies(self) -> bool:
        """Whether seeds differ."""
        return self.n > 1 and self.high > self.low


def t_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """Mean ± t(n−1) · s / √n of the values that are not NaN."""
    given = [value for value in values if not math.isnan(value)]
    n = len(given)
    mean = sum(given) / n if n else math.nan
    if n < 2:
        return Interval(mean, math.nan, math.nan, n)
    if max(given) - min(given) < _ROUNDING:
        return Interval(mean, mean, mean, n)
    low, high = stats.t.interval(confidence, n - 1, loc=mean, scale=stats.sem(given))
    return Interval(mean, float(low), float(high), n)


def paired(first: Sequence[float], second: Sequence[float], comparisons: int = 1) -> Interval:
    """The interval of first − second, seed by seed; that many of them hold together (Bonferroni)."""
    return t_interval([a - b for a, b in zip(first, second, strict=True)], 1 - (1 - CONFIDENCE) / comparisons)


def direction(difference: Interval) -> str:
    """`more` or `fewer` only when at least `FEWEST` seeds that differ give an interval without zero."""
    if difference.n < FEWEST:
        return "too few seeds to say"
    if not difference.varies or difference.low <= 0 <= difference.high:
        return "no difference shown"
    return "more" if difference.low > 0 else "fewer"


def summary(rows: Sequence[Row], *by: str) -> list[dict[str, object]]:
    """A row for each value of the columns `by`: mean, low and high of every other column, in columns of their own."""
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in by), []).append(row)
    made = []
    for key, group in groups.items():
        said: dict[str, object] = dict(zip(by, key, strict=True))
        for name in (name for name in group[0] if name not in by):
            found = t_interval([float(str(row[name])) for row in group])
            said |= {name: found.mean, f"{name}, low": found.low, f"{name}, high": found.high}
        made.append(said)
    return made


def words(interval: Interval, *, percent: bool = False, signed: bool = False) -> str:
    """`4.2 [3.1, 5.3]`, or `48 % [45, 51]`; the mean alone where seeds do not differ, `–` without a value.

    A bound outside what can be, below 0 or above 100 %, is printed at the edge; `signed` is for what can be negative.
    """
    if not interval.n:
        return "–"
    low = interval.low if signed else max(0.0, interval.low)
    high = max(interval.mean, min(1.0, interval.high)) if percent else interval.high
    scale, digits = (100, int(0 < interval.mean < 0.1)) if percent else (1, 1)
    mean, below, above = (
        f"{round(scale * value, digits) + 0.0:.{digits}f}" for value in (interval.mean, low, high)
    )
    return f"{mean}{' %' * percent}{f' [{below}, {above}]' * interval.varies}"

"""The numbers of one finished run that the paper's tables count: pure reading of findings (paper, §5)."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeVar

from mecharule_ops.experiments.requested_runs import PlannedRunDone
from mecharule_ops.experiments.seed_intervals import Interval, spelled, spelled_percent, t_interval
from mecharule_ops.findings.counts import RecallRow
from mecharule_ops.findings.measures import within
from mecharule_ops.findings.records import Findings, SearchOutcome
from mecharule_ops.report.document import Table
from mecharule_ops.rules.quality import is_hq_full, is_hq_test
from mecharule_ops.saying.rules import predicts
from mecharule_ops.saying.searches import recall_words, summed_recall_words, tested_all
from mecharule_ops.types import AnchoredRule, Neuron, Regime, Share

Measure = Callable[[PlannedRunDone], float]
"""A number of one run; NaN where the run has none."""
Row = TypeVar("Row")
Column = tuple[str, Callable[[Sequence[PlannedRunDone]], str]]
"""A column's name, and what stands in it for some runs."""
REGIMES = (Regime.BASELINE_POSITIVE, Regime.BASELINE_NEGATIVE)
THRESHOLDS = (0.70, 0.75, 0.80, 0.85, 0.90)
"""MCC from which rules are counted in experiment E1."""


def over_seeds(runs: Sequence[PlannedRunDone], measure: Measure) -> Interval:
    """The measure's mean over the runs, with its t-interval."""
    return t_interval([measure(run) for run in runs])


def counted(name: str, measure: Measure) -> Column:
    """A column of a count's means over seeds; whole where there is one run."""
    return name, lambda runs: spelled(over_seeds(runs, measure), digits=int(len(runs) > 1))


def in_percent(name: str, measure: Measure) -> Column:
    """A column of a share's means over seeds."""
    return name, lambda runs: spelled_percent(over_seeds(runs, measure))


def measured(
    first: str | tuple[str, ...],
    rows: Mapping[str, Row] | Mapping[tuple[str, ...], Row],
    columns: Sequence[tuple[str, Callable[[Row], str]]],
    align: str = "l",
) -> Table:
    """A row an entry, its name or names in the columns `first`, aligned as `align` says, then what each column says."""
    return Table(
        header=(*_named(first), *(name for name, _ in columns)),
        rows=tuple((*_named(names), *(words(each) for _, words in columns)) for names, each in rows.items()),
        align=align + "r" * len(columns),
    )


def _named(names: str | tuple[str, ...]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else names


def searches(runs: Sequence[PlannedRunDone], regime: Regime) -> list[SearchOutcome]:
    """The searches of one regime; runs that did not analyse it are left out."""
    return [search for run in runs if (search := run.search(regime)) is not None]


def localized(run: PlannedRunDone) -> float:
    """Localized units, both regimes together, as the paper counts them."""
    return sum(len(search.agonists) for search in run.findings.searches)


def tau_agonists(run: PlannedRunDone) -> float:
    """τ-agonists, both regimes together."""
    return sum(len(search.tau_agonists) for search in run.findings.searches)


def task_score(run: PlannedRunDone) -> float:
    """Share of the records on which the unablated model succeeds."""
    return run.findings.task_score.rate


def bearing_t(run: PlannedRunDone) -> float:
    """Localized units for which a rule was found on train records."""
    return sum(rule.rule is not None for rule in _anchored(run.findings))


def bearing_f(run: PlannedRunDone) -> float:
    """Localized units for which a rule was found on all eligible records."""
    return sum(rule.full_rule is not None for rule in _anchored(run.findings))


def hq_test(threshold: float) -> Measure:
    """Units whose train rule reaches the threshold on held-out records, at the coverage floor (HQ-T)."""
    return lambda run: sum(
        is_hq_test(rule, threshold, run.findings.coverage_floor) for rule in _anchored(run.findings)
    )


def hq_full(threshold: float) -> Measure:
    """Units whose all-record rule reaches the threshold there, at the coverage floor (HQ-F)."""
    return lambda run: sum(
        is_hq_full(rule, threshold, run.findings.coverage_floor) for rule in _anchored(run.findings)
    )


hq_t, hq_f = hq_test(THRESHOLDS[0]), hq_full(THRESHOLDS[0])
"""The same at the paper's cutoff of .70."""


COUNTED: Mapping[str, Measure] = {
    "localized": localized,
    "τ-agonists": tau_agonists,
    "HQ-T": hq_t,
    "HQ-F": hq_f,
}
"""What is counted of a run under every condition."""


def hq_t_shown(run: PlannedRunDone) -> float:
    """Those of HQ-T whose rule is shown: its interval lies above 0, and Holm's correction over the run leaves it."""
    floor = run.findings.coverage_floor
    return sum(
        is_hq_test(rule, THRESHOLDS[0], floor) and predicts(rule) is not None
        for rule in _anchored(run.findings)
    )


def union(regime: Regime, *, drawn: bool = False) -> Measure:
    """Cov_∪ of the localized units of one regime, or of as many drawn from all of their layers."""

    def measure(run: PlannedRunDone) -> float:
        search = run.search(regime)
        share = None if search is None else search.drawn_union if drawn else search.union
        return math.nan if share is None else share.rate

    return measure


def recall(regime: Regime, low: float | None = None) -> Measure:
    """Share of the exhaustive τ-agonists that the search localized; of one strength bin when `low` is given."""

    def measure(run: PlannedRunDone) -> float:
        share = recall_share(run.search(regime), low)
        return math.nan if share is None else share.rate

    return measure


def recall_share(search: SearchOutcome | None, low: float | None = None) -> Share | None:
    """The counts behind `recall`; None when no exhaustive run measured them."""
    rows = () if search is None else search.recall
    wanted = (row.found for row in rows if _is_of(row, None if low is None else (low,)))
    return next(wanted, None)


def recalled(found_by: Sequence[SearchOutcome], lows: Collection[float] | None = None) -> str:
    """The recall of several searches in words, summed, of the bins that begin at `lows` or over all of them.

    Searches of one model share units, so the bound is over distinct ones: a unit counts as found where every search
    in which it is a τ-agonist of these bins localized it.
    """
    found: dict[Neuron, bool] = {}
    shares = []
    for search in found_by:
        units = {agonist.neuron for agonist in search.agonists}
        rows = [row for row in search.recall if _is_of(row, lows)]
        shares += [row.found for row in rows]
        for unit in search.exhaustive.units if search.exhaustive and rows else ():
            if any(within(unit.estimate.strength, row.low, row.high) for row in rows):
                found[unit.neuron] = found.get(unit.neuron, True) and unit.neuron in units
    if tested_all(found_by):
        return recall_words(pooled(shares), every=True)
    return summed_recall_words(pooled(shares), Share(count=sum(found.values()), n=len(found)))


def pooled(shares: Iterable[Share | None]) -> Share:
    """Counts added up; 0/0 for none."""
    given = [share for share in shares if share is not None]
    return Share(count=sum(share.count for share in given), n=sum(share.n for share in given))


def cost_of_n(run: PlannedRunDone) -> float:
    """Group ablations of all searches over the units they searched."""
    costs = [search.cost for search in run.findings.searches]
    units = sum(cost.candidates for cost in costs)
    return sum(cost.queries for cost in costs) / units if units else math.nan


def cost_of_forwards(run: PlannedRunDone) -> float:
    """Example-forwards of all searches over those of testing every unit alone."""
    costs = [search.cost for search in run.findings.searches]
    full = sum(cost.exhaustive_example_forwards for cost in costs)
    return sum(cost.all_forwards for cost in costs) / full if full else math.nan


def units_of(search: SearchOutcome | None, *, strong: bool = True) -> frozenset[Neuron]:
    """The τ-agonists of a search, or all its localized units."""
    found = () if search is None else search.tau_agonists if strong else search.agonists
    return frozenset(agonist.neuron for agonist in found)


def _anchored(findings: Findings) -> list[AnchoredRule]:
    return [rule for search in findings.searches for rule in search.anchored]


def _is_of(row: RecallRow, lows: Collection[float] | None) -> bool:
    """Whether a row counts τ-agonists over all bins, or of one that begins at `lows`."""
    return row.criterion == "point" and (row.whole if lows is None else not row.whole and row.low in lows)

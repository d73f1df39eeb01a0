"""Baselines: the same records and slices under every replacement baseline (paper, appendix B and C).

A baseline decides what an ablated unit is set to, and so which units look like agonists. `slot0` is what the
published code writes: the mean at the first sequence slot, where an attention sink's massive activations live.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from mecharule_ops.experiments import run_counts
from mecharule_ops.experiments.charts import grid
from mecharule_ops.experiments.page import ExperimentPart
from mecharule_ops.experiments.requested_runs import (
    ExperimentRequest,
    PlannedRun,
    PlannedRunDone,
    labelled,
    labels,
    under,
)
from mecharule_ops.experiments.run_counts import (
    COUNTED,
    REGIMES,
    Column,
    counted,
    in_percent,
    measured,
    over_seeds,
    units_of,
)
from mecharule_ops.experiments.seed_intervals import rank_correlation, t_interval
from mecharule_ops.findings.measures import jaccard
from mecharule_ops.findings.records import SearchOutcome
from mecharule_ops.numbers import percent, two_decimals
from mecharule_ops.report.document import Table
from mecharule_ops.types import Baseline, Neuron, Share

SEEDS = 3
_Agreement = Callable[[SearchOutcome, SearchOutcome], float]
_AGREEMENT_KEY = (
    "Agreement of two baselines on the same slices, mean over seeds and regimes: Jaccard index of the τ-agonists, then "
    "Spearman's ρ of the strengths of all units where every unit was tested alone."
)


def plan(request: ExperimentRequest) -> tuple[PlannedRun, ...]:
    """Every baseline under the first seeds."""
    return under(request, {each.value: {"baseline": each.value} for each in Baseline}, SEEDS)


def part(runs: Sequence[PlannedRunDone]) -> ExperimentPart:
    """What each baseline finds and how far it leaves the data, then how far any two agree."""
    names = labels(runs)
    jaccards = [[_mean_pair(runs, a, b, _jaccard) for b in names] for a in names]
    rhos = [[_mean_pair(runs, a, b, _rho) for b in names] for a in names]
    return ExperimentPart(
        blocks=(
            "Out of range: replaced values of the strongest localized units (up to controls_for a search) that the "
            "unit never takes at that position in the data, of all their replaced values, pooled over seeds.",
            measured("baseline", {name: labelled(runs, name) for name in names}, _COLUMNS),
            _AGREEMENT_KEY,
            _matrix("Jaccard", names, jaccards),
            _matrix("Spearman's ρ", names, rhos),
        ),
        figures={"baselines-agreement": (grid("baselines-agreement", names, rhos), _CAPTION)},
        rows=(
            (
                "τ-agonists; replaced values out of range",
                ", ".join(
                    f"{name} {over_seeds(labelled(runs, name), run_counts.tau_agonists).mean:.1f}; "
                    f"{percent(outside(labelled(runs, name)).rate)}"
                    for name in names
                ),
            ),
        ),
    )


_CAPTION = "Spearman's ρ of the strengths of all units under two baselines, mean over seeds and regimes."
_COLUMNS: tuple[Column, ...] = (
    *(counted(name, measure) for name, measure in COUNTED.items()),
    *(in_percent(f"union {regime.arrow}", run_counts.union(regime)) for regime in REGIMES),
    ("out of range", lambda runs: percent(outside(runs).rate)),
)


def outside(runs: Sequence[PlannedRunDone]) -> Share:
    """Replaced values out of range, pooled over the units with controls of all runs."""
    return run_counts.pooled(
        controls.out_of_range
        for run in runs
        for search in run.findings.searches
        for controls in search.controls
    )


def _mean_pair(runs: Sequence[PlannedRunDone], first: str, second: str, agreement: _Agreement) -> float:
    """The agreement of two labels, mean over seeds and regimes; NaN where it is never defined."""
    pairs = zip(labelled(runs, first), labelled(runs, second), strict=True)
    values = [
        agreement(a, b)
        for one, other in pairs
        for regime in REGIMES
        if (a := one.search(regime)) is not None and (b := other.search(regime)) is not None
    ]
    return t_interval(values).mean


def _jaccard(first: SearchOutcome, second: SearchOutcome) -> float:
    return jaccard(units_of(first), units_of(second)).rate


def _rho(first: SearchOutcome, second: SearchOutcome) -> float:
    mine, other = strengths(first), strengths(second)
    shared = sorted(mine.keys() & other.keys())
    return (
        rank_correlation([mine[unit] for unit in shared], [other[unit] for unit in shared])
        if shared
        else math.nan
    )


def strengths(search: SearchOutcome) -> dict[Neuron, float]:
    """Ê of every unit that was tested alone by brute force; empty when there was none."""
    units = search.exhaustive.units if search.exhaustive else ()
    return {unit.neuron: unit.estimate.strength for unit in units}


def _matrix(title: str, names: Sequence[str], values: Sequence[Sequence[float]]) -> Table:
    rows = tuple((name, *map(two_decimals, line)) for name, line in zip(names, values, strict=True))
    return Table(header=(title, *names), rows=rows, align="l" + "r" * len(names))

"""E0, pipeline validation: what the whole pipeline finds under the main condition (paper, §5 and table E0)."""

from __future__ import annotations

from collections.abc import Sequence

from mecharule_ops.experiments import run_counts
from mecharule_ops.experiments.charts import bars
from mecharule_ops.experiments.page import ExperimentPart
from mecharule_ops.experiments.requested_runs import (
    MAIN,
    ExperimentRequest,
    PlannedRun,
    PlannedRunDone,
    under,
)
from mecharule_ops.experiments.run_counts import REGIMES, Column, counted, in_percent, measured, over_seeds
from mecharule_ops.experiments.seed_intervals import Interval, spelled, spelled_percent, t_interval
from mecharule_ops.report.document import Table
from mecharule_ops.types import Regime

UP, DOWN = REGIMES
_COLUMNS: tuple[Column, ...] = (
    counted("localized", run_counts.localized),
    counted("τ-agonists", run_counts.tau_agonists),
    counted("HQ-T", run_counts.hq_t),
    counted("HQ-T shown", run_counts.hq_t_shown),
    counted("HQ-F", run_counts.hq_f),
    in_percent("task score", run_counts.task_score),
    in_percent("union 1→0", run_counts.union(UP)),
    in_percent("drawn 1→0", run_counts.union(UP, drawn=True)),
    in_percent("union 0→1", run_counts.union(DOWN)),
    in_percent("drawn 0→1", run_counts.union(DOWN, drawn=True)),
)


def plan(request: ExperimentRequest) -> tuple[PlannedRun, ...]:
    """The main condition under every seed."""
    return under(request, {MAIN: {}})


def part(runs: Sequence[PlannedRunDone]) -> ExperimentPart:
    """A row a seed and their mean, then layer by layer."""
    layers = sorted({cover.layer for run in runs for s in run.findings.searches for cover in s.layer_union})
    drawn = {"e0-layers": (_figure(runs, layers), _CAPTION)} if layers else {}
    return ExperimentPart(
        blocks=(
            measured("seed", {**{str(run.seed): [run] for run in runs}, "mean": runs}, _COLUMNS),
            "Union: records of the regime flipped by at least one localized unit; drawn: by as many units drawn from "
            f"all of the same layers, localized ones too. {_counted(runs)} HQ-T and HQ-F at MCC ≥ .70, a point "
            "estimate; HQ-T shown: those whose interval lies above 0 too and which Holm's correction leaves. "
            "Localized units are counted over both regimes. HQ-F is fitted and scored on the same records: only HQ-T "
            f"is evidence that a rule predicts. {_searched(runs)}",
            _layers(runs, layers),
        ),
        figures=drawn,
        says=says(runs),
        rows=(
            ("τ-agonists of a run, both directions", spelled(over_seeds(runs, run_counts.tau_agonists))),
            ("units with a rule at held-out MCC ≥ .70 (HQ-T)", _hq_t_words(runs)),
            (
                "localized units together flip",
                "; ".join(f"{regime.arrow} {_union_words(runs, regime)}" for regime in REGIMES),
            ),
        ),
    )


def _counted(runs: Sequence[PlannedRunDone]) -> str:
    """On which records the unions are counted."""
    outside = all(search.union_outside for run in runs for search in run.findings.searches)
    where = (
        "outside the slices, whose records chose the units"
        if outside
        else "on all records, also of the slices"
    )
    return f"Both are counted {where}; a layer's union on all records."


def _searched(runs: Sequence[PlannedRunDone]) -> str:
    """How many units a union could be of."""
    units = max(search.cost.candidates for run in runs for search in run.findings.searches)
    return f"{units:,} units were searched; a union grows with the units in it."


def says(runs: Sequence[PlannedRunDone]) -> str:
    """What the pipeline found, in a sentence."""
    found, ruled = (over_seeds(runs, measure).mean for measure in (run_counts.tau_agonists, run_counts.hq_t))
    rules = f"{ruled:.1f} units with a rule" if ruled else "no unit with a rule"
    return f"A run finds {found:.1f} τ-agonists in the mean, and {rules} of held-out MCC .70 or more."


def _hq_t_words(runs: Sequence[PlannedRunDone]) -> str:
    every, shown = (
        spelled(over_seeds(runs, measure)) for measure in (run_counts.hq_t, run_counts.hq_t_shown)
    )
    return f"{every}; shown (interval above 0, Holm) {shown}"


def _union_words(runs: Sequence[PlannedRunDone], regime: Regime) -> str:
    mine, beside = (
        spelled_percent(over_seeds(runs, run_counts.union(regime, drawn=drawn))) for drawn in (False, True)
    )
    return f"{mine}; as many units drawn from their layers {beside}"


_CAPTION = "Union coverage of the localized units of each layer, mean over seeds with t-intervals."


def _layers(runs: Sequence[PlannedRunDone], layers: Sequence[int]) -> Table:
    rows = []
    for layer in layers:
        cells = [spelled(_units(runs, regime, layer)) for regime in REGIMES]
        cells += [spelled_percent(_cover(runs, regime, layer)) for regime in REGIMES]
        rows.append((str(layer), *cells))
    header = ("layer", "localized 1→0", "localized 0→1", "union 1→0", "union 0→1")
    return Table(header=header, rows=tuple(rows), align="rrrrr")


def _units(runs: Sequence[PlannedRunDone], regime: Regime, layer: int) -> Interval:
    """Localized units of a layer."""
    searches = run_counts.searches(runs, regime)
    return t_interval([sum(a.neuron.layer == layer for a in search.agonists) for search in searches])


def _cover(runs: Sequence[PlannedRunDone], regime: Regime, layer: int) -> Interval:
    """Union coverage of a layer; a searched layer without a localized unit covers nothing."""
    return t_interval(
        [
            next((cover.flipped.rate for cover in search.layer_union if cover.layer == layer), 0.0)
            for search in run_counts.searches(runs, regime)
        ]
    )


def _figure(runs: Sequence[PlannedRunDone], layers: Sequence[int]) -> str:
    series = {
        f"union {regime.arrow}": [_cover(runs, regime, layer) for layer in layers] for regime in REGIMES
    }
    return bars("e0-layers", [str(layer) for layer in layers], series, xlabel="layer", ylabel="flipped share")

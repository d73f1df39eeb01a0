"""Sensitivity: one setting changed at a time, everything else as in the main condition (paper, appendix C)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from mecharule_ops.experiments import run_counts
from mecharule_ops.experiments.charts import lines
from mecharule_ops.experiments.page import ExperimentPart
from mecharule_ops.experiments.requested_runs import (
    MAIN,
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
    recalled,
)
from mecharule_ops.experiments.seed_intervals import spelled, spelled_percent
from mecharule_ops.numbers import plural
from mecharule_ops.report.document import Block
from mecharule_ops.tasks.task_names import task_of
from mecharule_ops.types import Regime

SEEDS = 3
"""The first seeds of the request; the seeds of one setting are compared with the same seeds of the others."""
SWEPT = {"τ": ("tau", (0.1, 0.2, 0.3, 0.4, 0.5)), "α": ("alpha", (0.01, 0.05, 0.2))}
"""The setting behind an axis, and its values beside the main condition's."""
AXES = ("τ", "cap", "α", "n per slice", "completion length")


def _recalled(regime: Regime, runs: Sequence[PlannedRunDone]) -> str:
    """The recall in one direction over all runs, with its lower bound over distinct units."""
    return recalled(run_counts.searches(runs, regime))


_COLUMNS: tuple[Column, ...] = (
    *(counted(name, measure) for name, measure in COUNTED.items()),
    in_percent("score", run_counts.task_score),
    in_percent("queries of N", run_counts.cost_of_n),
    in_percent("forwards of brute force", run_counts.cost_of_forwards),
    *((f"recall {regime.arrow}", partial(_recalled, regime)) for regime in REGIMES),
)


def plan(request: ExperimentRequest) -> tuple[PlannedRun, ...]:
    """The main condition and every changed setting under the first seeds."""
    changed = {
        f"{axis} {value}": changes
        for axis in AXES
        for value, changes in _values(request, axis).items()
        if any(getattr(request.base, name) != wanted for name, wanted in changes.items())
    }
    return under(request, {MAIN: {}, **changed}, SEEDS)


def _values(request: ExperimentRequest, axis: str) -> dict[str, dict[str, object]]:
    """Each value of an axis as printed, with the settings that make it; the main one is among them."""
    base, units = request.base, request.units[request.basis]
    if axis in SWEPT:
        name, values = SWEPT[axis]
        return {f"{value:g}": {name: value} for value in sorted({*values, getattr(base, name)})}
    if axis == "cap":
        caps = [max(1, units // 4), max(1, units // 2), base.cap]
        return {f"{min(cap, units):,}": {"cap": cap} for cap in caps}
    if axis == "n per slice":
        sizes = (max(1, base.slice_size // 2), base.slice_size, base.slice_size * 2)
        return {str(size): {"slice_size": size} for size in sizes}
    length = task_of(base).max_new_tokens
    lengths = (max(1, length // 2), length, 2 * length)
    task = base.task_settings
    return {str(n): {} if n == length else {"task_settings": {**task, "max_new_tokens": n}} for n in lengths}


def part(runs: Sequence[PlannedRunDone]) -> ExperimentPart:
    """A table an axis; the main condition stands in each at its own value."""
    blocks: list[Block] = [f"Each row is a mean over {plural(len(labelled(runs, MAIN)), 'seed')}."]
    blocks += [measured(axis, _rows(runs, axis), _COLUMNS, "r") for axis in AXES]
    return ExperimentPart(
        blocks=(*blocks, _bearing(runs)),
        figures={"sensitivity-units": (_figure(runs), _CAPTION)},
        rows=(
            (
                "τ-agonists as τ grows",
                ", ".join(
                    f"τ {value}: {spelled(over_seeds(some, run_counts.tau_agonists))}"
                    for value, some in _rows(runs, "τ").items()
                ),
            ),
        ),
    )


_CAPTION = (
    "Localized units, τ-agonists and HQ-F units as one setting changes, mean over seeds with t-intervals."
)


def _rows(runs: Sequence[PlannedRunDone], axis: str) -> dict[str, tuple[PlannedRunDone, ...]]:
    """The runs at each value of an axis, in the order of the values."""
    found = {_value(same[0], axis): same for same in (labelled(runs, name) for name in labels(runs))}
    main = labelled(runs, MAIN)
    found[_value(main[0], axis)] = main
    return dict(sorted(found.items(), key=lambda row: float(row[0].replace(",", ""))))


def _value(run: PlannedRunDone, axis: str) -> str:
    config = run.planned.config
    if axis == "cap":
        return f"{max(search.cost.candidates for search in run.findings.searches):,}"
    if axis == "completion length":
        return str(task_of(config).max_new_tokens)
    return str(config.slice_size) if axis == "n per slice" else f"{getattr(config, SWEPT[axis][0]):g}"


def _bearing(runs: Sequence[PlannedRunDone]) -> str:
    """Units with a rule and cost at the ends of the paper's range of τ."""
    rows = _rows(runs, "τ")
    parts = [
        f"at τ = {value} {spelled(over_seeds(rows[value], run_counts.bearing_f))} units bear a rule, at "
        f"{spelled_percent(over_seeds(rows[value], run_counts.cost_of_n))} of N ablations"
        for value in ("0.2", "0.5")
        if value in rows
    ]
    return f"Here {'; '.join(parts)}."


def _figure(runs: Sequence[PlannedRunDone]) -> str:
    drawn = {name: measure for name, measure in COUNTED.items() if name != "HQ-T"}
    rows = {axis: _rows(runs, axis) for axis in AXES}
    panels = {
        axis: {
            name: [over_seeds(some, measure) for some in by_value.values()] for name, measure in drawn.items()
        }
        for axis, by_value in rows.items()
    }
    ticks = {axis: list(by_value) for axis, by_value in rows.items()}
    return lines("sensitivity-units", panels, ticks, ylabel="units")

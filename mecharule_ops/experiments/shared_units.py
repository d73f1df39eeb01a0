"""Overlap: which units and which flips are shared, and where attribution puts its strongest units.

Source: the paper, §5 "Evaluation metrics", appendix A and C. Units are compared within one basis, flipped records
within one seed and regime, where both runs saw the same ones. Attribution ranks by |EAP-IG score|; the search by the
measured strength of its localized units. The first is no causal claim; that the two differ is what is measured.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from statistics import median

import numpy as np
from jaxtyping import Bool, Float

from mecharule_ops.config import RunConfig
from mecharule_ops.experiments import e1
from mecharule_ops.experiments.by_baseline import strengths
from mecharule_ops.experiments.charts import bars
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
from mecharule_ops.experiments.run_counts import REGIMES, measured, pooled, searches, units_of
from mecharule_ops.experiments.seed_intervals import rank_correlation, spelled, t_interval
from mecharule_ops.findings.measures import SMALL, jaccard
from mecharule_ops.findings.records import SearchOutcome
from mecharule_ops.numbers import k_of_n, two_decimals
from mecharule_ops.report.document import Table
from mecharule_ops.saying.flips import by_strength
from mecharule_ops.tasks.arithmetic import Arithmetic
from mecharule_ops.tasks.task_names import task_of
from mecharule_ops.types import Neuron, Regime, Share

SEEDS = 3
Pair = tuple[PlannedRunDone, PlannedRunDone]
Searches = list[tuple[SearchOutcome | None, SearchOutcome | None]]


def plan(request: ExperimentRequest) -> tuple[PlannedRun, ...]:
    """Main, the conditions of E1, the other bases, and each operator as a task of its own, first seeds."""
    few = replace(request, seeds=request.seeds[:SEEDS])
    bases = {basis.value: {"bases": (basis,)} for basis in few.units if basis is not few.basis}
    return (*e1.plan(few), *under(few, {**bases, **_tasks(few.base)}))


def _tasks(base: RunConfig) -> dict[str, dict[str, object]]:
    """A condition an operator where the task has several; none for other tasks."""
    task = task_of(base)
    operators = task.operators if isinstance(task, Arithmetic) and len(task.operators) > 1 else ()
    return {
        f"only {each}": {"task_settings": {**base.task_settings, "operators": [each]}} for each in operators
    }


def part(runs: Sequence[PlannedRunDone]) -> ExperimentPart:
    """Shared units, shared flips, attribution beside the search, and Dom^(m)."""
    main = labelled(runs, MAIN)
    return ExperimentPart(
        blocks=(
            "Shared units of two sets, of all units in either (Jaccard), pooled over seeds and regimes:",
            _units_table(runs),
            "Records that both sets of localized units flip, of those that either flips, on the same records:",
            _flips_table(runs),
            _within(main),
            layer_table(main),
            rank_sentence(main),
            "Dom^(m), main condition: the strongest tested subgroup of at most m units over its opened group. Only "
            "tested subgroups count, so this bounds Dom^(m) from below; sequential tests stop early, so both strengths "
            "carry sampling noise.",
            _dominance(main),
        ),
        figures={"overlap-flips": (_figure(runs), _CAPTION)},
        rows=(("attribution and strength of all units", rank_sentence(main)),),
    )


_CAPTION = (
    "Jaccard index of the flipped records, main condition against others of the same seed, with t-intervals."
)


def _pairs(runs: Sequence[PlannedRunDone], first: str, second: str) -> list[Pair]:
    return list(zip(labelled(runs, first), labelled(runs, second), strict=True))


def _unit_pairs(runs: Sequence[PlannedRunDone]) -> Iterator[tuple[str, list[Pair]]]:
    """What is compared unit by unit: conditions, tasks, seeds; other bases have other units."""
    basis = runs[0].planned.config.bases
    same = [name for name in labels(runs) if labelled(runs, name)[0].planned.config.bases == basis]
    yield from ((f"main, {name}", _pairs(runs, MAIN, name)) for name in same if name != MAIN)
    tasks = [name for name in same if _another_task(runs, name)]
    yield from ((f"{one}, {other}", _pairs(runs, one, other)) for one, other in combinations(tasks, 2))
    yield "main, another seed", list(combinations(labelled(runs, MAIN), 2))


def _units_table(runs: Sequence[PlannedRunDone]) -> Table:
    rows: dict[str, Searches] = {
        name: [(a.search(regime), b.search(regime)) for a, b in pairs for regime in REGIMES]
        for name, pairs in _unit_pairs(runs)
    }
    up, down = REGIMES
    rows["1→0, 0→1 of one run"] = [(run.search(up), run.search(down)) for run in labelled(runs, MAIN)]
    columns = (
        ("τ-agonists", partial(_shared_units, strong=True)),
        ("localized", partial(_shared_units, strong=False)),
    )
    return measured("compared", rows, columns)


def _shared_units(compared: Searches, *, strong: bool) -> str:
    """τ-agonists, or all localized units, of both searches of those of either."""
    return k_of_n(
        pooled(jaccard(units_of(a, strong=strong), units_of(b, strong=strong)) for a, b in compared)
    )


def _flip_labels(runs: Sequence[PlannedRunDone]) -> list[str]:
    """Labels whose runs saw the records of the main condition: all but other tasks."""
    return [name for name in labels(runs) if name != MAIN and not _another_task(runs, name)]


def _another_task(runs: Sequence[PlannedRunDone], name: str) -> bool:
    main, other = (labelled(runs, label)[0].planned.config.task_settings for label in (MAIN, name))
    return main != other


def _flips_table(runs: Sequence[PlannedRunDone]) -> Table:
    rows = {f"main, {name}": name for name in _flip_labels(runs)}
    columns = [(regime.arrow, partial(_flip_words, runs, regime)) for regime in REGIMES]
    return measured("compared", rows, columns)


def _flip_words(runs: Sequence[PlannedRunDone], regime: Regime, name: str) -> str:
    return k_of_n(pooled(_flips(runs, name, regime)))


def _flips(runs: Sequence[PlannedRunDone], name: str, regime: Regime) -> list[Share]:
    return [
        shared_flips(one.flips[regime], other.flips[regime])
        for one, other in _pairs(runs, MAIN, name)
        if regime in one.flips and regime in other.flips
    ]


def shared_flips(
    first: Bool[np.ndarray, "neuron eligible"], second: Bool[np.ndarray, "unit eligible"]
) -> Share:
    """Records that some unit of both sets flips, of those that some unit of either flips."""
    one, other = first.any(axis=0), second.any(axis=0)
    return Share(count=int((one & other).sum()), n=int((one | other).sum()))


def _within(main: Sequence[PlannedRunDone]) -> str:
    """How much two τ-agonists of one search flip the same records."""
    found = (pair for run in main for search in run.findings.searches for pair in search.overlaps)
    shares = [pair.shared for pair in found if pair.shared.n]
    if not shares:
        return "No search of the main condition has two τ-agonists, so their flips cannot be compared."
    middle = median(share.rate for share in shares)
    return (
        f"Two τ-agonists of one search, main condition: median Jaccard index of their flipped records {middle:.2f} "
        f"over {len(shares):,} pairs; 1 would be full overlap."
    )


def _dominance(main: Sequence[PlannedRunDone]) -> Table:
    rows: dict[tuple[str, ...], list[float]] = {}
    for regime in REGIMES:
        opened = (group for search in searches(main, regime) for group in search.dominance)
        groups = [group for group in opened if group.group_strength > 0]
        rows[regime.arrow, "1"] = [group.ratio for group in groups]
        rows[regime.arrow, str(SMALL)] = [group.small_ratio for group in groups]
    columns = (
        ("opened groups", lambda ratios: str(len(ratios))),
        ("median", lambda ratios: two_decimals(median(ratios)) if ratios else "–"),
        (
            "stronger than their group",
            lambda ratios: k_of_n(Share(count=sum(ratio > 1 for ratio in ratios), n=len(ratios))),
        ),
    )
    return measured(("regime", "m"), rows, columns, "lr")


def _figure(runs: Sequence[PlannedRunDone]) -> str:
    names = _flip_labels(runs)
    series = {
        regime.arrow: [t_interval([share.rate for share in _flips(runs, name, regime)]) for name in names]
        for regime in REGIMES
    }
    return bars("overlap-flips", names, series, xlabel="", ylabel="Jaccard index")


TOP = 50


def top_attributed(scores: Float[np.ndarray, "layer channel"], search: SearchOutcome) -> list[Neuron]:
    """The units with the largest |score|, at most `TOP`; ties in the order of their names."""
    order = np.argsort(-np.abs(scores).reshape(-1), kind="stable")[:TOP]
    basis, width = search.intervention.basis, scores.shape[1]
    return [Neuron(basis, int(place) // width, int(place) % width) for place in order]


def layer_table(runs: Sequence[PlannedRunDone]) -> Table:
    """By layer and regime: how many of either top list lie there, summed over seeds, and how many in both."""
    rows = []
    for regime in REGIMES:
        attributed, localized, both = Counter[int](), Counter[int](), Counter[int]()
        for scores, search in _scored(runs, regime):
            first = top_attributed(scores, search)
            second = [agonist.neuron for agonist in by_strength(search.agonists)[:TOP]]
            attributed.update(unit.layer for unit in first)
            localized.update(unit.layer for unit in second)
            both.update(unit.layer for unit in set(first) & set(second))
        rows += [
            (regime.arrow, str(layer), str(attributed[layer]), str(localized[layer]), str(both[layer]))
            for layer in sorted({*attributed, *localized})
        ]
    header = ("regime", "layer", f"attribution's top {TOP}", f"strongest {TOP} localized", "in both")
    return Table(header=header, rows=tuple(rows), align="lrrrr")


def rank_sentence(runs: Sequence[PlannedRunDone]) -> str:
    """Spearman's ρ of |score| and measured strength, where every unit was tested alone."""
    parts = []
    for regime in REGIMES:
        found = t_interval([_rho(scores, search) for scores, search in _scored(runs, regime)])
        if found.n:
            found = replace(found, low=max(-1.0, found.low), high=min(1.0, found.high))
            parts.append(f"{spelled(found, 2, signed=True)} in {regime.arrow}")
    if not parts:
        return (
            "Not every unit was tested alone, so the rank correlation of attribution and strength is unknown."
        )
    return (
        f"Spearman's ρ of |attribution| and the strength of every unit, mean over seeds: {', '.join(parts)}."
    )


def _scored(
    runs: Sequence[PlannedRunDone], regime: Regime
) -> list[tuple[Float[np.ndarray, "layer channel"], SearchOutcome]]:
    """(attribution, search) of each run that analysed the regime."""
    return [
        (run.scores[regime], search)
        for run in runs
        if (search := run.search(regime)) is not None and regime in run.scores
    ]


def _rho(scores: Float[np.ndarray, "layer channel"], search: SearchOutcome) -> float:
    measured = strengths(search)
    if not measured:
        return math.nan
    attributed = [abs(float(scores[unit.layer, unit.channel])) for unit in measured]
    return rank_correlation(attributed, list(measured.values()))

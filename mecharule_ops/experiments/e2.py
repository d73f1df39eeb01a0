"""E2, the search against testing every unit alone on the same slices (paper, §5 and table E2, H2).

The default search, the other of `guided` and `cha`, and the paper's own, Algorithm 1 as printed, are held against the
same brute force; beside them what no search is needed for: units tested alone in order of the norm of their write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from statistics import median

import numpy as np
from jaxtyping import Float

from mecharule_ops.errors import UsageError
from mecharule_ops.experiments import run_counts
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
from mecharule_ops.experiments.run_counts import REGIMES, measured, over_seeds, recalled
from mecharule_ops.experiments.seed_intervals import (
    Direction,
    Interval,
    direction_of,
    paired_difference,
    same_words,
    spelled,
    spelled_percent,
    t_interval,
)
from mecharule_ops.findings.counts import Dominance
from mecharule_ops.findings.measures import SMALL, recall_rows
from mecharule_ops.findings.records import SearchOutcome
from mecharule_ops.numbers import percent
from mecharule_ops.report.document import Bullets, Table
from mecharule_ops.types import Agonist

OTHER, PRINTED, WRITE_NORM = "other search", "Algorithm 1", "write norm"
_CHOSEN = (
    "The group sizes of `cha` and `guided` were chosen on runs of arith-tiny, so their recall there is no independent "
    "test of them; nothing of Algorithm 1 was chosen here."
)
_OVERTOPPING = (
    "Overtopping under Algorithm 1: the largest group of each layer that was opened, beside the strongest unit and the "
    "strongest group of at most 4 that were tested inside it. A share near 1: a few units explain their group; above "
    "1: the group hides them. Only tested subgroups count, so the shares are bounds from below."
)
_KEY = (
    "Recall: of the units that reach τ when every unit is tested alone on the same slices, those that the search "
    "localized, counts summed over seeds. Seeds share the model's units, so the lower bound is over distinct units: "
    "one counts as found where every seed in which it reaches τ found it. Queries are group ablations; an "
    "example-forward is one ablated generation, and what `guided` spends on its predictions is in it, a backward as "
    "two; cost is a mean over seeds. Write norm is no search: as many units as the default search's example-forwards "
    "pay for are tested alone, in order of the norm of what they write to the residual stream, which is read off the "
    "weights."
)


def plan(request: ExperimentRequest) -> tuple[PlannedRun, ...]:
    """Three searches under every seed. Raises `UsageError` when nothing is brute-forced."""
    total = min(request.units[request.basis], request.base.cap)
    if total > request.base.exhaustive_up_to:
        raise UsageError(
            f"expected brute force for e2, {request.basis} has {total:,} units; add --exhaustive-up-to {total}"
        )
    other = "cha" if request.base.search == "guided" else "guided"
    return under(request, {MAIN: {}, OTHER: {"search": other}, PRINTED: {"parity": True}})


def part(runs: Sequence[PlannedRunDone]) -> ExperimentPart:
    """Recall by strength bin and cost by three measures, then what the paper's two claims look like here."""
    runs = (*runs, *by_write_norm(runs))
    return ExperimentPart(
        blocks=(
            _KEY,
            _recall(runs),
            _cost(runs),
            Bullets(
                tuple(
                    claim
                    for label in _names(runs)
                    if label != WRITE_NORM
                    for claim in _claims(labelled(runs, label))
                )
            ),
            _CHOSEN,
            _OVERTOPPING,
            _overtopping(labelled(runs, PRINTED)),
        ),
        figures={"e2-recall": (_figure(runs), _CAPTION)},
        says=_says(runs),
        rows=tuple(
            (f"τ-agonists found by {name}", found)
            for name, found in _in_short(runs).items()
            if name != WRITE_NORM
        ),
    )


def by_write_norm(runs: Sequence[PlannedRunDone]) -> Iterator[PlannedRunDone]:
    """The default search's runs as if they had tested the units of largest write norm alone, at no higher cost."""
    for run in labelled(runs, labels(runs)[0]):
        if run.norms is not None:
            searches = tuple(_by_norm(run, run.norms, search) for search in run.findings.searches)
            yield replace(
                run,
                planned=replace(run.planned, label=WRITE_NORM),
                findings=replace(run.findings, searches=searches),
            )


def _by_norm(
    run: PlannedRunDone, norms: Float[np.ndarray, "layer channel"], search: SearchOutcome
) -> SearchOutcome:
    cost, tau = search.cost, run.planned.config.tau
    every = search.exhaustive.units if search.exhaustive else ()
    ranked = sorted(every, key=lambda one: (-norms[one.neuron.layer, one.neuron.channel], one.neuron))
    tested = ranked[: cost.all_forwards // cost.slice_examples]
    paid = replace(
        cost,
        queries=len(tested),
        example_forwards=len(tested) * cost.slice_examples,
        prediction_forwards=0,
    )
    alpha, epsilon = run.planned.config.slice_alpha, run.planned.config.epsilon
    found = tuple(
        Agonist(
            neuron=one.neuron,
            regime=search.regime,
            estimate=one.estimate,
            ucb=one.estimate.ucb(alpha),
            tau=tau,
            epsilon=epsilon,
        )
        for one in tested
    )
    recall = recall_rows(every, {one.neuron for one in tested}, tau, alpha)
    return replace(search, cost=paid, agonists=found, singletons_tested=len(tested), recall=recall)


def _in_short(runs: Sequence[PlannedRunDone]) -> dict[str, str]:
    """For each search recall and cost in both directions."""
    said: dict[str, list[str]] = {}
    for (name, arrow), searches in _by_regime(runs).items():
        cost = t_interval([search.cost.share_of_exhaustive_forwards for search in searches]).mean
        said.setdefault(name, []).append(f"{arrow} {recalled(searches)} at {percent(cost)} of brute force")
    return {name: "; ".join(both) for name, both in said.items()}


def _says(runs: Sequence[PlannedRunDone]) -> str:
    found = _in_short(runs)
    name, first = next(iter(found.items()))
    norm = (
        f"; units of the largest write norm, as many tested alone: {found[WRITE_NORM]}"
        if WRITE_NORM in found
        else ""
    )
    return f"The search `{name}` finds of the τ-agonists that brute force finds: {first}{norm}."


_CAPTION = "Recall of the τ-agonists that brute force finds, mean over seeds with t-intervals."


def _names(runs: Sequence[PlannedRunDone]) -> dict[str, str]:
    """The searches that were run, by label: the default first."""
    said = {run.label: run.planned.config.search for run in runs} | {
        PRINTED: PRINTED,
        WRITE_NORM: WRITE_NORM,
    }
    return {label: said[label] for label in labels(runs)}


def _by_regime(runs: Sequence[PlannedRunDone]) -> dict[tuple[str, ...], list[SearchOutcome]]:
    """The searches of all seeds by (name, direction) of their kind."""
    return {
        (name, regime.arrow): run_counts.searches(labelled(runs, label), regime)
        for label, name in _names(runs).items()
        for regime in REGIMES
    }


def _bins(runs: Sequence[PlannedRunDone]) -> list[tuple[float, float]]:
    rows = (row for run in runs for search in run.findings.searches for row in search.recall)
    return sorted({(row.low, row.high) for row in rows if row.criterion == "point" and not row.whole})


def _recall(runs: Sequence[PlannedRunDone]) -> Table:
    spans = [
        (f"[{low:.2g}, {high:.2g}{']' if high == 1 else ')'}", partial(recalled, lows=(low,)))
        for low, high in _bins(runs)
    ]
    return measured(("search", "regime"), _by_regime(runs), [("overall", recalled), *spans], "ll")


def _cost(runs: Sequence[PlannedRunDone]) -> Table:
    columns = (
        ("queries", _mean_of("cost.queries", partial(spelled, digits=0))),
        ("of N", _mean_of("cost.share_of_n", spelled_percent)),
        ("of 2N−1", _mean_of("cost.share_of_2n_minus_1", spelled_percent)),
        ("example-forwards of brute force", _mean_of("cost.share_of_exhaustive_forwards", spelled_percent)),
    )
    return measured(("search", "regime"), _by_regime(runs), columns, "ll")


def _mean_of(name: str, words: Callable[[Interval], str]) -> Callable[[Sequence[object]], str]:
    """What an attribute of some things is in the mean."""
    value = attrgetter(name)
    return lambda found: words(t_interval([value(each) for each in found]))


def _overtopping(runs: Sequence[PlannedRunDone]) -> Table:
    """A row a regime and layer: strengths of the largest opened group and of the best inside it, mean over seeds."""
    rows: dict[tuple[str, ...], list[Dominance]] = {}
    for regime in REGIMES:
        opened = [
            [group for group in search.dominance if group.group_strength > 0]
            for search in run_counts.searches(runs, regime)
        ]
        for layer in sorted({group.layer for groups in opened for group in groups}):
            here = [[group for group in groups if group.layer == layer] for groups in opened]
            rows[regime.arrow, str(layer)] = [
                max(groups, key=lambda group: group.size) for groups in here if groups
            ]
    strength = partial(spelled, digits=2)
    columns = (
        ("seeds", lambda groups: str(len(groups))),
        ("units", lambda groups: f"{median(group.size for group in groups):.0f}"),
        ("group Ê", _mean_of("group_strength", strength)),
        ("unit Ê", _mean_of("best_singleton", strength)),
        ("Dom(1)", _mean_of("ratio", strength)),
        (f"≤ {SMALL} Ê", _mean_of("best_small", strength)),
        (f"Dom({SMALL})", _mean_of("small_ratio", strength)),
    )
    return measured(("regime", "layer"), rows, columns, "lr")


def _claims(runs: Sequence[PlannedRunDone]) -> tuple[str, str]:
    """The paper's two: recall is higher in 1→0 than in 0→1, and higher for strong units than for weak ones."""
    (name,) = _names(runs).values()
    up, down = (list(map(run_counts.recall(regime), runs)) for regime in REGIMES)
    regimes = paired_difference(up, down)
    bins = [low for low, _ in _bins(runs)]
    both = [search for regime in REGIMES for search in run_counts.searches(runs, regime)]
    return (
        f"{name}: recall in 1→0 less that in 0→1, seed by seed: {_points(regimes)}; {_said(direction_of(regimes))}.",
        f"{name}: {recalled(both, bins[:1])} of the units below strength {_edge(bins)} are found and "
        f"{recalled(both, bins[1:])} of those from there on.",
    )


def _edge(bins: Sequence[float]) -> str:
    return f"{bins[1]:.2g}" if len(bins) > 1 else "1"


def _points(interval: Interval) -> str:
    return f"{spelled(interval, 0, 100, signed=True)} points{same_words(interval)}"


def _said(word: Direction) -> str:
    return {
        Direction.MORE: "higher in 1→0, as in the paper",
        Direction.FEWER: "lower in 1→0, unlike the paper",
        Direction.NOT_SHOWN: "no difference shown; the paper reports higher recall in 1→0",
        Direction.TOO_FEW: "too few seeds with τ-agonists in both directions to say",
    }[word]


def _figure(runs: Sequence[PlannedRunDone]) -> str:
    bins = _bins(runs)
    groups = [*(f"{low:.2g}–{high:.2g}" for low, high in bins), "all"]
    series = {
        f"{name}, {regime.arrow}": [
            over_seeds(labelled(runs, label), run_counts.recall(regime, low))
            for low in (*(low for low, _ in bins), None)
        ]
        for label, name in _names(runs).items()
        for regime in REGIMES
    }
    return bars("e2-recall", groups, series, xlabel="strength by brute force", ylabel="recall")

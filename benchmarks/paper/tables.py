"""What each experiment shows: its tables, its lines on the page, its sentence (paper, §5, appendix C).

Pure reading of finished runs. A run, or a search, gives a row of numbers; `summary` gives their means over seeds.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise

import numpy as np
from jaxtyping import Bool, Float
from scipy.stats import spearmanr

from mecharule_ops.facts.searches import summed_recall_words
from mecharule_ops.findings.counts import SMALL, dominance, jaccard
from mecharule_ops.findings.records import SearchOutcome
from mecharule_ops.numbers import k_of_n, percent
from mecharule_ops.rules.families import is_hq_full, is_hq_test
from mecharule_ops.types import Neuron, Regime, Share

from .finishing import PaperRun, Runs
from .intervals import Row, direction, paired, summary, t_interval, words
from .plans import FAKE, PRINTED, REFERENCE, SPECTRAL

Rows = Sequence[Row]
REGIMES = (Regime.BASELINE_POSITIVE, Regime.BASELINE_NEGATIVE)
THRESHOLDS = (0.70, 0.75, 0.80, 0.85, 0.90)
"""MCC from which rules are counted in experiment E1."""
EDGES = (0.3, 0.5)
"""Strengths between the paper's bins of recall."""
BRIEF = (
    "localized",
    "τ-agonists",
    "HQ-T ≥ 0.70",
    "HQ-F ≥ 0.70",
    "task score",
    "queries of N",
    "forwards of brute force",
)
"""Columns of the experiments that change one setting."""
TOP = 50
"""Units of the two lists that attribution and search are compared by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What one experiment shows."""

    tables: Mapping[str, Rows]
    lines: Sequence[tuple[str, str]]
    """(what was counted, what was found)"""
    says: str = field(default="")


def run_row(run: PaperRun) -> dict[str, float]:
    """Every number of a run that the tables count, both regimes together."""
    found, floor = run.findings, run.findings.coverage_floor
    rules = [rule for search in found.searches for rule in search.anchored]
    costs = [search.cost for search in found.searches]
    shares = {
        f"{what} {regime.arrow}": _rate(run.search(regime), name)
        for regime in REGIMES
        for what, name in (("union", "union"), ("drawn", "drawn_union"))
    }
    return {
        "localized": sum(len(search.agonists) for search in found.searches),
        "τ-agonists": sum(len(search.tau_agonists) for search in found.searches),
        "rule-bearing, train": sum(rule.rule is not None for rule in rules),
        **{f"HQ-T ≥ {t:.2f}": sum(is_hq_test(rule, t, floor) for rule in rules) for t in THRESHOLDS},
        "HQ-T ≥ 0.70, shown": sum(is_hq_test(r, 0.7, floor) and r.shown for r in rules),
        "rule-bearing, all": sum(rule.full_rule is not None for rule in rules),
        **{f"HQ-F ≥ {t:.2f}": sum(is_hq_full(rule, t, floor) for rule in rules) for t in THRESHOLDS},
        **shares,
        "task score": found.task_score.rate,
        "queries of N": _over(costs, "queries", "candidates"),
        "forwards of brute force": _over(costs, "all_forwards", "exhaustive_example_forwards"),
    }


def _rate(search: SearchOutcome | None, name: str) -> float:
    """Records that a localized unit flips, or that one of as many units drawn from the same layers flips."""
    share = getattr(search, name, None)
    return math.nan if share is None else float(share.rate)


def _over(costs: Iterable[object], part: str, whole: str) -> float:
    pairs = [(getattr(cost, part), getattr(cost, whole)) for cost in costs]
    total = sum(all_of for _, all_of in pairs)
    return sum(some for some, _ in pairs) / total if total else math.nan


def conditions(runs: Runs, *names: str) -> Rows:
    """A row a condition: means over seeds of the numbers named, or of all."""
    rows = [{"condition": label, **run_row(run)} for label, some in runs.items() for run in some]
    return summary(
        [{name: row[name] for name in ("condition", *names)} for row in rows] if names else rows, "condition"
    )


def over(runs: Iterable[PaperRun], name: str, **form: bool) -> str:
    """One number's mean over seeds in words."""
    return words(t_interval([run_row(run)[name] for run in runs]), **form)


def searches(runs: Iterable[PaperRun], regime: Regime) -> list[SearchOutcome]:
    """The searches of one regime; runs that did not analyse it are left out."""
    return [search for run in runs if (search := run.search(regime)) is not None]


def pooled(shares: Iterable[Share | None]) -> Share:
    """Counts added up; 0/0 for none."""
    given = [share for share in shares if share is not None]
    return Share(count=sum(share.count for share in given), n=sum(share.n for share in given))


def e0(runs: Runs) -> Shown:
    """The whole pipeline under the main condition: by seed, in the mean, by layer."""
    (main,) = runs.values()
    layers = [
        {
            "layer": cover.layer,
            "regime": regime.arrow,
            "localized": at[cover.layer],
            "union": cover.flipped.rate,
        }
        for regime in REGIMES
        for search in searches(main, regime)
        for at in [Counter(agonist.neuron.layer for agonist in search.agonists)]
        for cover in search.layer_union
    ]
    good = over(main, "HQ-T ≥ 0.70")
    together = "; ".join(
        f"{r.arrow} {over(main, f'union {r.arrow}', percent=True)}, as many units drawn from their layers "
        f"{over(main, f'drawn {r.arrow}', percent=True)}"
        for r in REGIMES
    )
    return Shown(
        tables={
            "e0": conditions(runs),
            "e0-seeds": [{"seed": run.config.seed, **run_row(run)} for run in main],
            "e0-layers": summary(layers, "layer", "regime"),
        },
        lines=(
            ("τ-agonists of a run, both directions", over(main, "τ-agonists")),
            (
                "units with a rule of held-out MCC ≥ .70 (HQ-T)",
                f"{good}; shown {over(main, 'HQ-T ≥ 0.70, shown')}",
            ),
            ("localized units together flip", together),
        ),
        says=f"A run finds {over(main, 'τ-agonists')} τ-agonists, and {good} units with a rule of held-out MCC .70.",
    )


def e1(runs: Runs) -> Shown:
    """Splits and coverage: the paper's main condition less each other, seed by seed; all intervals hold together."""
    columns = {"HQ-T": "HQ-T ≥ 0.70", "HQ-F": "HQ-F ≥ 0.70"}
    values = {
        (label, what): [run_row(run)[column] for run in some]
        for label, some in runs.items()
        for what, column in columns.items()
    }
    others = [label for label in runs if label != REFERENCE]
    found = {
        (other, what): paired(values[REFERENCE, what], values[other, what], len(others) * len(columns))
        for other in others
        for what in columns
    }
    said = {other: {direction(found[other, what]) for what in columns} for other in (SPECTRAL, FAKE)}
    told = "; ".join(
        f"against the {other}, {' or '.join(sorted(words_of))}" for other, words_of in said.items()
    )
    differences = {other: one for (other, what), one in found.items() if what == "HQ-T"}
    less = (f"{other} {words(one, signed=True)}: {direction(one)}" for other, one in differences.items())
    empty = [what for what in columns if not any(sum(values[label, what]) for label in runs)]
    none = f" (no unit of any condition reaches {' or '.join(empty)})" if empty else ""
    return Shown(
        tables={
            "e1": [{**row, **_splits(runs[str(row["condition"])])} for row in conditions(runs)],
            "e1-differences": [
                {"less": other, "measure": what, **one._asdict(), "says": direction(one)}
                for (other, what), one in found.items()
            ],
        },
        lines=[(f"{REFERENCE} less another, HQ-T", "; ".join(less))],
        says=f"Units with a good rule where a rule splits the slices, HQ-T and HQ-F: {told}{none}.",
    )


def _splits(runs: Sequence[PaperRun]) -> dict[str, int]:
    """Searches in which no rule left both slices large enough, so that the spectral split took its place."""
    splitters = [search.splitter for run in runs for search in run.findings.searches]
    return {"searches": len(splitters), "searches without a splitter rule": splitters.count(None)}


def e2(runs: Runs) -> Shown:
    """The searches against testing every unit alone on the same slices; overtopping under Algorithm 1.

    The group sizes of `cha` and `guided` were chosen on runs of arith-tiny, so their recall there is no independent
    test of them.
    """
    rows: list[Row] = []
    said: dict[str, list[str]] = {}
    for label, some in runs.items():
        tau = some[0].config.tau
        edges = [tau, *(edge for edge in EDGES if edge > tau), 1.0]
        for regime in REGIMES:
            found = searches(some, regime)
            whole, distinct = recall(found, tau, 1.0)
            row: dict[str, object] = {
                "search": label,
                "regime": regime.arrow,
                "found": whole.count,
                "of": whole.n,
            }
            row |= {"distinct units found in every seed": distinct.count, "of distinct units": distinct.n}
            for low, high in pairwise(edges):
                bin_of = recall(found, low, high)[0]
                row |= {f"found in [{low:g}, {high:g}]": bin_of.count, f"of [{low:g}, {high:g}]": bin_of.n}
            costs = [
                {
                    "queries": one.cost.queries,
                    "of N": one.cost.share_of_n,
                    "of 2N−1": one.cost.share_of_2n_minus_1,
                    "forwards of brute force": one.cost.share_of_exhaustive_forwards,
                }
                for one in found
            ]
            (cost,) = summary(costs) or ({},)
            rows.append(row | cost)
            share = percent(float(str(cost.get("forwards of brute force", "nan"))))
            said.setdefault(label, []).append(
                f"{regime.arrow} {summed_recall_words(whole, distinct)} at {share} of brute force"
            )
    return Shown(
        tables={"e2": rows, "e2-overtopping": summary([*_overtopping(runs[PRINTED])], "regime", "layer")},
        lines=[(f"τ-agonists found by {label}", "; ".join(both)) for label, both in said.items()],
    )


def recall(found_by: Sequence[SearchOutcome], low: float, high: float) -> tuple[Share, Share]:
    """Units of a strength in [low, high) by brute force that were localized: summed over searches, and distinct ones.

    Searches of one model share units: a distinct unit counts as found where every search in which it has such a
    strength localized it.
    """
    hits: dict[Neuron, list[bool]] = {}
    for search in found_by:
        units = {agonist.neuron for agonist in search.agonists}
        for unit, strength in strengths(search).items():
            if low <= strength < high or strength == high == 1.0:
                hits.setdefault(unit, []).append(unit in units)
    every = [hit for each in hits.values() for hit in each]
    return Share(count=sum(every), n=len(every)), Share(count=sum(map(all, hits.values())), n=len(hits))


def _overtopping(runs: Sequence[PaperRun]) -> Iterator[Row]:
    """The largest opened group of each layer beside the strongest tested unit and small group inside it, by search.

    A share Dom near 1: a few units explain their group; above 1: the group hides them. Only tested subgroups count, so
    the shares are bounds from below.
    """
    for regime in REGIMES:
        for search in searches(runs, regime):
            opened = [one for one in dominance(search.tree) if one.group.estimate.strength > 0]
            for layer in sorted({one.group.layer for one in opened}):
                group, single, small = max(
                    (one for one in opened if one.group.layer == layer), key=lambda one: one.group.size
                )
                whole = group.estimate.strength
                yield {
                    **{"regime": regime.arrow, "layer": layer, "units": group.size, "group Ê": whole},
                    **{"unit Ê": single, "Dom(1)": single / whole},
                    **{f"≤ {SMALL} Ê": small, f"Dom({SMALL})": small / whole},
                }


def sensitivity(runs: Runs) -> Shown:
    """One setting changed at a time, everything else as in the main condition."""
    rows = [
        {**row, **{f"recall {r.arrow}": k_of_n(_recall_of(runs[str(row["condition"])], r)) for r in REGIMES}}
        for row in conditions(runs, *BRIEF)
    ]
    grown = (f"{label} {over(some, 'τ-agonists')}" for label, some in runs.items() if label.startswith("τ "))
    return Shown(tables={"sensitivity": rows}, lines=[("τ-agonists as τ grows", ", ".join(grown))])


def _recall_of(runs: Sequence[PaperRun], regime: Regime) -> Share:
    return recall(searches(runs, regime), runs[0].config.tau, 1.0)[0]


def baselines(runs: Runs) -> Shown:
    """What each replacement baseline finds, how far it leaves the data, and how far any two agree."""
    beyond = {label: outside(some) for label, some in runs.items()}
    told = (
        f"{label} {over(some, 'τ-agonists')}; {percent(beyond[label].rate)}" for label, some in runs.items()
    )
    rows = [
        {**row, "values out of range": share.count, "of values": share.n}
        for row, share in zip(conditions(runs, *BRIEF), beyond.values(), strict=True)
    ]
    pairs = [
        {
            **{"baseline": one, "other": other, "Jaccard of τ-agonists": _mean(a, b, _jaccard)},
            **{"Spearman of strengths": _mean(a, b, _rho)},
        }
        for (one, a), (other, b) in combinations(runs.items(), 2)
    ]
    return Shown(
        tables={"baselines": rows, "baselines-agreement": pairs},
        lines=[("τ-agonists; replaced values out of range", ", ".join(told))],
    )


def outside(runs: Sequence[PaperRun]) -> Share:
    """Replaced values that the unit never takes at that position, pooled over the units with controls of all runs."""
    found = [search for run in runs for search in run.findings.searches]
    return pooled(controls.out_of_range for search in found for controls in search.controls)


def _mean(
    first: Sequence[PaperRun],
    second: Sequence[PaperRun],
    agreement: Callable[[SearchOutcome, SearchOutcome], float],
) -> float:
    pairs = [
        (one.search(regime), other.search(regime))
        for one, other in zip(first, second, strict=True)
        for regime in REGIMES
    ]
    return t_interval([agreement(a, b) for a, b in pairs if a is not None and b is not None]).mean


def _jaccard(first: SearchOutcome | None, second: SearchOutcome | None, *, strong: bool = True) -> float:
    return shared_units(first, second, strong=strong).rate


def shared_units(first: SearchOutcome | None, second: SearchOutcome | None, *, strong: bool) -> Share:
    """τ-agonists, or all localized units, of both searches of those of either."""
    one, other = (
        {a.neuron for a in (search.tau_agonists if strong else search.agonists)} if search else set[Neuron]()
        for search in (first, second)
    )
    return jaccard(one, other)


def _rho(first: SearchOutcome, second: SearchOutcome) -> float:
    mine, other = strengths(first), strengths(second)
    return rank_correlation([(mine[unit], other[unit]) for unit in mine.keys() & other.keys()])


def strengths(search: SearchOutcome) -> dict[Neuron, float]:
    """Ê of every unit that was tested alone by brute force; empty when there was none."""
    return {unit.neuron: unit.estimate.strength for unit in search.exhaustive}


def rank_correlation(pairs: Sequence[tuple[float, float]]) -> float:
    """Spearman's ρ; NaN for fewer than two pairs or where one side does not vary."""
    if any(len({pair[side] for pair in pairs}) < 2 for side in (0, 1)):
        return math.nan
    return float(spearmanr(*zip(*pairs, strict=True)).statistic)


def overlap(runs: Runs) -> Shown:
    """Which units and flips are shared, and where attribution puts its strongest units.

    Units are compared within one basis, flipped records within one seed, regime and task, where both runs saw the same.
    """
    main = next(iter(runs.values()))
    units = [
        {
            "compared": name,
            **_counts("τ-agonists", (shared_units(a, b, strong=True) for a, b in pairs)),
            **_counts("localized", (shared_units(a, b, strong=False) for a, b in pairs)),
        }
        for name, pairs in _unit_pairs(runs, main)
    ]
    flips = [
        {
            "compared": f"main, {label}",
            **{key: n for r in REGIMES for key, n in _counts(r.arrow, _flipped(main, some, r)).items()},
        }
        for label, some in runs.items()
        if some is not main and some[0].config.task_settings == main[0].config.task_settings
    ]
    rhos = (f"{r.arrow} {words(t_interval([*_ranked(main, r)]), signed=True)}" for r in REGIMES)
    return Shown(
        tables={
            "overlap-units": units,
            "overlap-flips": flips,
            "overlap-layers": [row for regime in REGIMES for row in by_layer(main, regime)],
        },
        lines=[("Spearman's ρ of |attribution| and strength, all units", ", ".join(rhos))],
    )


def _counts(name: str, shares: Iterable[Share]) -> dict[str, int]:
    found = pooled(shares)
    return {f"{name} shared": found.count, f"{name} of either": found.n}


Pairs = list[tuple[SearchOutcome | None, SearchOutcome | None]]


def _unit_pairs(runs: Runs, main: Sequence[PaperRun]) -> Iterator[tuple[str, Pairs]]:
    """What is compared unit by unit: conditions, tasks, seeds, regimes; other bases have other units."""
    first = main[0].config
    same = {label: some for label, some in runs.items() if some[0].config.bases == first.bases}
    tasks = {label for label, some in same.items() if some[0].config.task_settings != first.task_settings}
    for (one, a), (other, b) in combinations(same.items(), 2):
        if a is main or {one, other} <= tasks:
            pairs = [(x.search(r), y.search(r)) for x, y in zip(a, b, strict=True) for r in REGIMES]
            yield f"{one}, {other}", pairs
    yield (
        "main, another seed",
        [(x.search(r), y.search(r)) for x, y in combinations(main, 2) for r in REGIMES],
    )
    yield "1→0, 0→1 of one run", [(run.search(REGIMES[0]), run.search(REGIMES[1])) for run in main]


def _flipped(main: Sequence[PaperRun], others: Sequence[PaperRun], regime: Regime) -> Iterator[Share]:
    for one, other in zip(main, others, strict=True):
        if regime in one.flips and regime in other.flips:
            yield shared_flips(one.flips[regime], other.flips[regime])


def shared_flips(first: Bool[np.ndarray, "unit record"], second: Bool[np.ndarray, "other record"]) -> Share:
    """Records that some unit of both sets flips, of those that some unit of either flips."""
    one, other = first.any(axis=0), second.any(axis=0)
    return Share(count=int((one & other).sum()), n=int((one | other).sum()))


def top_attributed(scores: Float[np.ndarray, "layer channel"], search: SearchOutcome) -> list[Neuron]:
    """The units with the largest |score|, at most `TOP`; ties in the order of their names."""
    order = np.argsort(-np.abs(scores).reshape(-1), kind="stable")[:TOP]
    return [Neuron(search.intervention.basis, *divmod(int(place), scores.shape[1])) for place in order]


def by_layer(main: Sequence[PaperRun], regime: Regime) -> list[Row]:
    """By layer: how many of attribution's and of the search's top units lie there, summed over seeds, and in both."""
    lists: dict[str, list[Neuron]] = {
        f"attribution's top {TOP}": [],
        f"strongest {TOP} localized": [],
        "in both": [],
    }
    for run in main:
        if (search := run.search(regime)) is not None and regime in run.scores:
            ranked = sorted(search.agonists, key=lambda one: (-one.estimate.strength, one.neuron))
            attributed = top_attributed(run.scores[regime], search)
            localized = [agonist.neuron for agonist in ranked[:TOP]]
            both = [unit for unit in localized if unit in attributed]
            for held, more in zip(lists.values(), (attributed, localized, both), strict=True):
                held += more
    at = {name: Counter(unit.layer for unit in units) for name, units in lists.items()}
    layers = sorted({layer for counter in at.values() for layer in counter})
    return [
        {"regime": regime.arrow, "layer": layer, **{name: counter[layer] for name, counter in at.items()}}
        for layer in layers
    ]


def _ranked(main: Sequence[PaperRun], regime: Regime) -> Iterator[float]:
    for run in main:
        if (search := run.search(regime)) is not None and regime in run.scores:
            scores = np.abs(run.scores[regime])
            yield rank_correlation(
                [(float(scores[unit.layer, unit.channel]), each) for unit, each in strengths(search).items()]
            )


EXPERIMENTS: Mapping[str, Callable[[Runs], Shown]] = {
    "e0": e0,
    "e1": e1,
    "e2": e2,
    "sensitivity": sensitivity,
    "baselines": baselines,
    "overlap": overlap,
}

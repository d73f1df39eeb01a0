"""What each experiment shows: its tables, its lines on the page, its sentence (paper, §5, appendix C).

Pure reading of finished runs. A run, or a search, gives a row of numbers; `summary` gives their means over seeds.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, groupby
from typing import Any

import numpy as np

from mecharule_ops.facts.rules import short
from mecharule_ops.findings.counts import floored
from mecharule_ops.findings.records import SearchOutcome
from mecharule_ops.rules.families import CHOSEN, PERMUTED, THRESHOLD, is_hq, is_hq_test
from mecharule_ops.types import Baseline, FlipCount, Regime

from .finishing import PaperRun, Runs
from .intervals import Row, direction, paired, summary, t_interval, words
from .plans import CHANNELS, FAKE, HEADS, LAYER, REFERENCE, SCALE, SPECTRAL

Rows = Sequence[Row]
NOTHING: Mapping[str, Rows] = {}
REGIMES = (Regime.BASELINE_POSITIVE, Regime.BASELINE_NEGATIVE)
THRESHOLDS = (0.70, 0.75, 0.80, 0.85, 0.90)
"""MCC from which rules are counted in experiment E1."""
RECALL = ("flips at least", "found", "drawn", "met by the audit alone", "left at most", "recall at least")
_COLUMNS = (
    "search|localized; at τ; anchored|recall at τ, at least (missed, at most); cost|any anchored (random)|"
)
SCALE_COLUMNS = tuple((_COLUMNS + "train-chosen; permuted|test-chosen; permuted").split("|"))
TIERS = (0.2, 0.4, 0.6, 0.8)
"""Shares of a slice that a unit flips, of which recall at scale is told."""
SCORES = [f"{how}{null}" for how in CHOSEN for null in ("", PERMUTED)]
"""By which records a rule's combination is chosen, each beside the same with flips permuted over records."""
LEARNED = (
    (CHOSEN[0], "chosen on train, scored held out", ""),
    (CHOSEN[1], "clauses from train, combination chosen held out (published HQ-T)", "399 of 1,486"),
    (CHOSEN[2], "fitted and scored on all (HQ-F)", "1,210 of 1,343"),
)
"""What the published count does to a rule, with the paper's HQ-T and HQ-F of rule-bearing units over its six runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What one experiment shows."""

    tables: Mapping[str, Rows]
    lines: Sequence[tuple[str, ...]]
    """(what was counted, what was found); of `published` also by chance, and in the paper."""
    says: str = field(default="")


def run_row(run: PaperRun) -> dict[str, float]:
    """Every number of a run that the tables count, both regimes together."""
    found, floor = run.findings, run.findings.coverage_floor
    rules = [rule for search in found.searches for rule in search.anchored]
    chosen = [scores for each in run.chosen.values() for scores in each]
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
        **{f"HQ-F ≥ {t:.2f}": sum(is_hq(rule.full, t, floor) for rule in rules) for t in THRESHOLDS},
        **{name: sum(one.get(name, 0) >= THRESHOLD for one in chosen) for name in SCORES},
        **shares,
        "task score": found.task_score.rate,
        "queries of N": _over(costs, "queries", "candidates"),
        "forwards of brute force": _over(costs, "all_forwards", "exhaustive_example_forwards"),
    }


def _rate(search: SearchOutcome | None, name: str) -> float:
    """Records that a localized unit flips, or that one of as many units drawn from the same layers flips."""
    share = getattr(search, name, None)
    return math.nan if share is None else float(share.rate)


def _together(search: SearchOutcome | None) -> str:
    """`98 of 102 (random 31)`: records that any anchored unit flips, and as many units drawn from their layers."""
    union, drawn = getattr(search, "union", None), getattr(search, "drawn_union", None)
    return f"{union.count} of {union.n}{f' (random {drawn.count})' if drawn else ''}" if union else "–"


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


def by_choice(runs: Iterable[PaperRun]) -> str:
    """Units that reach MCC .70 by each way of choosing, each beside the same with flips permuted."""
    found = {name: over(runs, name) for name in SCORES}
    return "; ".join(f"{how} {found[how]}, permuted {found[how + PERMUTED]}" for how in CHOSEN)


def searches(runs: Iterable[PaperRun], regime: Regime) -> list[SearchOutcome]:
    """The searches of one regime; runs that did not analyse it are left out."""
    return [search for run in runs if (search := run.search(regime)) is not None]


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
            ("units with a rule of MCC ≥ .70, by what chose it", by_choice(main)),
            ("any anchored unit flips", together),
        ),
        says=f"A run has {over(main, 'τ-agonists')} τ-agonists; of {over(main, 'rule-bearing, train')} anchored units "
        f"{good} have a rule of MCC .70 chosen on train, {over(main, CHOSEN[1])} one chosen on the labels that score "
        f"it, and {over(main, CHOSEN[1] + PERMUTED)} such a one with their flips permuted.",
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
    empty = [what for what in columns if not any(sum(values[label, what]) for label in runs)]
    told = [f"{what} cannot be tested here, since no unit of any condition reaches it" for what in empty]
    for what in [one for one in columns if one not in empty]:
        each = ", ".join(
            f"against the {one} {words(found[one, what], signed=True)}, {direction(found[one, what])}"
            for one in (SPECTRAL, FAKE)
        )
        told.append(f"{what}: {each}")
    return Shown(
        tables={
            "e1": [{**row, **_splits(runs[str(row["condition"])])} for row in conditions(runs)],
            "e1-differences": [
                {"less": other, "measure": what, **one._asdict(), "says": direction(one)}
                for (other, what), one in found.items()
            ],
        },
        lines=[(f"MCC ≥ .70, {label}", by_choice(some)) for label, some in runs.items()],
        says=f"Units with a good rule where a rule splits the slices: {'; '.join(told)}.",
    )


def _splits(runs: Sequence[PaperRun]) -> dict[str, int]:
    """Searches in which no rule left both slices large enough, so that the spectral split took its place."""
    splitters = [search.splitter for run in runs for search in run.findings.searches]
    return {"searches": len(splitters), "searches without a splitter rule": splitters.count(None)}


def published(runs: Runs) -> Shown:
    """The published counts taken apart, each beside the same with flips permuted and the paper's own."""
    found = {label: same[0] for label, same in runs.items()}
    rows = [row for label, run in found.items() if label in (HEADS, LAYER) for row in _scored(label, run)]
    said: list[list[str]] = []

    def tell(what: str, units: Sequence[dict[str, Any]], how: str, paper: str = "") -> list[str]:
        """A line of the page: what reaches MCC .70, and with flips permuted."""
        said.append([what, *(reach([unit[name] for unit in units]) for name in (how, how + PERMUTED)), paper])
        return said[-1]

    heads = [row for row in rows if row["in"] == HEADS]
    said.append([f"{HEADS}: chosen on train, by ours", reach([row["ours"] for row in heads]), "", ""])
    counts = [tell(f"{HEADS}: {name}", heads, how, paper) for how, name, paper in LEARNED]
    layer = [row for row in rows if row["in"] == LAYER]
    tell(f"{LAYER}, `slot0`: test-chosen over both regimes", layer, CHOSEN[1])
    strong = [row for row in layer if row["flips"] >= 0.9 * row["of"]]
    total = tell("the same, chosen on train but for the target, of those that break 90 %", strong, CHOSEN[0])
    for label, paper in (
        (CHANNELS, "100 %; 72.8, 48.6, 11.7 %"),
        (f"{CHANNELS}, {Baseline.MEAN_POSITIONAL}", ""),
    ):
        together = "; ".join(f"{r.arrow} {_together(found[label].search(r))}" for r in REGIMES)
        said.append([f"{label}: any anchored unit flips", together, "", paper])
    says = (
        f"Of the localized {HEADS} {counts[1][1]} have a rule of MCC .70 if its combination is chosen on labels that "
        f"score it, with flips permuted {counts[1][2]}, chosen on train {counts[0][1]}. Of the channels of "
        f"its layer 11 that break 90 % under `slot0`, chosen on train {total[1]}, permuted {total[2]}. On arith-tiny "
        f"anchored units, each alone, flip {said[-2][1]} by `slot0`, {said[-1][1]} under the positional mean."
    )
    return Shown(tables={"units": rows}, lines=[*map(tuple, said)], says=says)


def _scored(label: str, run: PaperRun) -> Iterator[dict[str, Any]]:
    """Each anchored unit with its flips and scores, those that break every answer too."""
    for search in run.findings.searches:
        for rule, of in zip(search.anchored, run.chosen[search.regime], strict=True):
            flips = rule.flips or FlipCount(flips=0, n=0)
            unit: dict[str, Any] = {"in": label, "unit": str(rule.neuron), "regime": search.regime.arrow}
            unit |= {"flips": flips.flips, "of": flips.n, "ours": rule.held_out.mcc if rule.held_out else 0.0}
            yield {**unit, **{name: (rule.published or of).get(name, 0.0) for name in SCORES}}


def scale(runs: Runs, kept: Mapping[str, Rows] = NOTHING) -> Shown:
    """Each search at the paper's scale, what chooses a rule beside flips permuted, and the units that two share; with
    the rows kept of searches that are not run now."""
    found = {
        f"{label}, {search.regime.arrow}": (run, search)
        for label, (run,) in runs.items()
        for search in run.findings.searches
    }
    rows: list[dict[str, Any]] = [*map(dict, kept.get("searches", ()))]
    for label, (run, search) in found.items():
        chosen = run.chosen[search.regime]
        good = {name: sum(one.get(name, 0) >= THRESHOLD for one in chosen) for name in SCORES}
        rules = [f"{good[how]}; {good[how + PERMUTED]}" for how in CHOSEN[:2]]
        localized = f"{len(search.agonists)}; {len(search.tau_agonists)}; {len(chosen)}"
        *_, left, least = recall(search, TIERS[0]).values()
        sure = "–" if math.isnan(least) else f"{100 * floored(least):g} %"
        paid = f"{100 * search.cost.share_of_exhaustive_forwards:.1f} %"
        cost = f"{sure} ({'–' if math.isnan(left) else f'{left:g}'}); {paid}"
        line = (label, localized, cost, _together(search), *rules)
        rows.append(dict(zip(SCALE_COLUMNS, line, strict=True)))
    rows.sort(key=lambda row: [*SCALE].index(condition(row["search"])))
    units: list[dict[str, Any]] = [*map(dict, kept.get("units", ()))]
    units += [
        {"search": label, "unit": str(one.neuron), "flips": one.estimate.strength}
        for label, (_, search) in found.items()
        for one in search.agonists
    ]
    of_search = {
        row["search"]: {each["unit"] for each in units if each["search"] == row["search"]} for row in rows
    }
    exact = {label for label, (_, search) in found.items() if not search.untested}
    shared: list[Row] = [*kept.get("shared", ())]
    for (one, first), (other, second) in combinations(of_search.items(), 2):
        alike = len({SCALE[condition(each)].get("model") for each in (one, other)}) == 1
        if alike and {one, other} & {*found} and {unit[0] for unit in first} == {unit[0] for unit in second}:
            both = {"one": one, "other": other, "shared": len(first & second), "of": len(first | second)}
            every = found[one][1].cost.candidates if {one, other} <= exact else math.nan
            shared.append({**both, "by chance": len(first) * len(second) / every})
    tiers = [*kept.get("recall", ())]
    tiers += [{"search": label, **recall(one, tier)} for label, (_, one) in found.items() for tier in TIERS]
    at = {row["search"]: row[SCALE_COLUMNS[1]].split("; ")[1] != "0" for row in rows}
    missed = {row["search"]: row[SCALE_COLUMNS[2]].split(")")[0].split("(")[1] for row in rows}
    quiet = groupby((search for search, named in at.items() if not named), condition)
    told = ((of, [f"{search[-3:]} {missed[search]}" for search in some]) for of, some in quiet)
    none = "; ".join(f"{of} ({', '.join(ways)})" for of, ways in told)
    not_run = "; ".join(label for label in SCALE if label not in map(condition, at))
    return Shown(
        tables={"units": units, "shared": shared, "recall": tiers, "searches": rows},
        lines=[tuple(row.values()) for row in rows if at[row["search"]]],
        says=f"Of this commit: {'; '.join(found)}; [others](tables/paper_scale-runs.csv). No unit is named at τ "
        f"(missed, at most) in: {none}.{f' Not run: {not_run}.' if not_run else ''}",
    )


def condition(search: str) -> str:
    """Of a search's name, which ends in its direction."""
    return search.removesuffix(", 1→0").removesuffix(", 0→1")


def recall(search: SearchOutcome, tier: float) -> dict[str, float]:
    """Units that flip that share of a slice: found by the search, met by its audit alone, left at most (95 %, or
    counted where every unit was tested after it); NaN without either."""
    audit, met = search.audit, {unit.neuron for unit in search.audit.found} if search.audit else set()
    there = [each.neuron for each in search.agonists if each.estimate.reaches(tier)]
    own = sum(unit not in met for unit in there)
    known = len(search.missed(tier)) if search.exhaustive or not search.untested else math.nan
    left = audit.missed_at_most if audit else known
    least = own / (len(there) + left) if there else math.nan
    drawn = audit.tested if audit else 0
    return dict(zip(RECALL, (tier, own, drawn, len(there) - own, left, least), strict=True))


def reach(scores: Sequence[float]) -> str:
    """`6 of 21 (median .66)`: those of MCC .70 or more."""
    middle = f" (median {short(float(np.median(scores)))})" if scores else ""
    return f"{sum(one >= THRESHOLD for one in scores)} of {len(scores)}{middle}"


_EACH = {"e0": e0, "e1": e1, "published": published, "scale": scale}
EXPERIMENTS: Mapping[str, Callable[..., Shown]] = _EACH

"""E1, splits and coverage: whether units are better explained when a rule forms the slices.

Source: the paper, §5 and table E1, H1.

Four conditions over the same records and held-out split: rule and spectral coverage (the paper's main one), a spectral
split without rule, a rule with slices drawn at random (main here), and a fake rule learned from permuted targets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mecharule_ops.experiments import run_counts
from mecharule_ops.experiments.charts import lines
from mecharule_ops.experiments.page import ExperimentPart
from mecharule_ops.experiments.requested_runs import (
    MAIN,
    ExperimentRequest,
    PlannedRun,
    PlannedRunDone,
    labelled,
    under,
)
from mecharule_ops.experiments.run_counts import (
    REGIMES,
    THRESHOLDS,
    Column,
    Measure,
    counted,
    in_percent,
    measured,
    over_seeds,
)
from mecharule_ops.experiments.seed_intervals import (
    CONFIDENCE,
    Direction,
    Interval,
    direction_of,
    paired_difference,
    same_words,
    simultaneous,
    spelled,
)
from mecharule_ops.report.document import Bullets, Table
from mecharule_ops.slices import E1Condition

REFERENCE = "rule + spectral"
"""The paper's main condition, which every other one is held against."""
CONDITIONS: Mapping[str, E1Condition] = {
    REFERENCE: E1Condition.RULE_SPECTRAL,
    "spectral split": E1Condition.SPECTRAL_SPLIT,
    MAIN: E1Condition.RULE_RANDOM,
    "fake rule": E1Condition.FAKE_RULE,
}
"""The label of each condition's runs; the main one is this tool's, which the other experiments share."""
_NAMES = {REFERENCE: "rule + spectral (the paper's main)", MAIN: "rule + random draw (main here)"}
COMPARED: tuple[tuple[str, Measure], ...] = (("HQ-T", run_counts.hq_t), ("HQ-F", run_counts.hq_f))
"""What decides: rules at MCC ≥ .70, held out and all-fit, as in the paper."""
_FOUND = (counted("localized", run_counts.localized), counted("τ-agonists", run_counts.tau_agonists))


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The paper's main condition less another in one measure, seed by seed."""

    other: str
    measure: str
    interval: Interval

    @property
    def direction(self) -> Direction:
        """Which of the two is higher, as far as the interval over seeds tells."""
        return direction_of(self.interval)


def plan(request: ExperimentRequest) -> tuple[PlannedRun, ...]:
    """Every condition under every seed."""
    others = {name: {"condition": each.value} for name, each in CONDITIONS.items() if name != MAIN}
    return under(request, {MAIN: {}, **others})


def part(runs: Sequence[PlannedRunDone]) -> ExperimentPart:
    """The paper's two tables with intervals, the paired differences, and the sentence that they allow."""
    by_label = {name: labelled(runs, name) for name in CONDITIONS}
    by_name = {_NAMES.get(name, name): some for name, some in by_label.items()}
    found = differences(by_label)
    level = simultaneous(len(found))
    return ExperimentPart(
        blocks=(
            sentence(found),
            *_floor(runs),
            "Units with a rule that reaches each MCC on held-out records (HQ-T), a point estimate; shown are those "
            "whose interval lies above 0 too and which Holm's correction over their run leaves:",
            _table(
                by_name,
                run_counts.bearing_t,
                run_counts.hq_test,
                counted("≥ .70, shown", run_counts.hq_t_shown),
            ),
            "The same, fitted and scored on all eligible records (HQ-F, descriptive):",
            _table(by_name, run_counts.bearing_f, run_counts.hq_full),
            "The paper's main condition less each other one, seed by seed, at MCC ≥ .70; intervals are paired "
            f"t-intervals at {level:.1%} each; all {len(found)} hold together at {CONFIDENCE:.0%} (Bonferroni):",
            _differences(found),
            measured(
                "condition", by_name, [in_percent(f"union {r.arrow}", run_counts.union(r)) for r in REGIMES]
            ),
            _fallbacks(by_label),
        ),
        figures={"e1-thresholds": (_figure(by_name), _CAPTION)},
        says=sentence(found),
        rows=tuple(
            (f"{what}, {measure}", f"{interval}: {direction}")
            for what, measure, interval, direction in _differences(found).rows
            if measure == "HQ-T"
        ),
    )


def differences(by_label: Mapping[str, Sequence[PlannedRunDone]]) -> tuple[Difference, ...]:
    """Each other condition in each deciding measure; all intervals hold together."""
    others = [name for name in by_label if name != REFERENCE]
    level = simultaneous(len(others) * len(COMPARED))
    reference = by_label[REFERENCE]
    return tuple(
        Difference(
            other=other,
            measure=name,
            interval=paired_difference(
                list(map(measure, reference)), list(map(measure, by_label[other])), level
            ),
        )
        for other in others
        for name, measure in COMPARED
    )


def sentence(found: Sequence[Difference]) -> str:
    """What the differences show about rule splits against spectral and fake ones, and no more."""
    told = [_told(other, found) for other in ("spectral split", "fake rule")]
    return f"On this model, over {found[0].interval.n} seeds: {'; '.join(told)}."


def _floor(runs: Sequence[PlannedRunDone]) -> tuple[str, ...]:
    """What to know where no condition has anything to count."""
    empty = [name for name, measure in COMPARED if not any(map(measure, runs))]
    return (
        f"No unit of any condition reaches {' or '.join(empty)}, so that cannot tell them apart.",
    ) * bool(empty)


def _told(other: str, found: Sequence[Difference]) -> str:
    words = {one.measure: one.direction for one in found if one.other == other}
    against = "spectral splits" if other == "spectral split" else "fake-rule splits"
    if set(words.values()) == {Direction.NOT_SHOWN}:
        return f"rule splits are not shown to beat {against} (no difference shown in HQ-T or HQ-F)"
    if set(words.values()) == {Direction.TOO_FEW}:
        return f"there are too few seeds to compare rule splits with {against}"
    parts = [
        f"{word} {measure} units"
        if word in (Direction.MORE, Direction.FEWER)
        else f"{word.value} in {measure}"
        for measure, word in words.items()
    ]
    return f"against {against}, rule splits give {' and '.join(parts)}"


_CAPTION = "Units with a rule of an MCC or more, held out (HQ-T) and all-fit (HQ-F): mean over seeds with t-intervals."


def _table(
    by_name: Mapping[str, Sequence[PlannedRunDone]],
    bearing: Measure,
    quality: Callable[[float], Measure],
    *more: Column,
) -> Table:
    """A row a condition: units, rule-bearing units, and units at each threshold of one quality."""
    reached = [counted(f"≥ {t:.2f}", quality(t)) for t in THRESHOLDS]
    return measured("condition", by_name, [*_FOUND, counted("rule-bearing", bearing), *reached, *more])


def _differences(found: Sequence[Difference]) -> Table:
    rows = tuple(
        (
            f"{REFERENCE} − {_NAMES.get(one.other, one.other)}",
            one.measure,
            f"{spelled(one.interval, signed=True)}{same_words(one.interval)}",
            one.direction.value,
        )
        for one in found
    )
    return Table(header=("difference", "measure", "mean and interval", "says"), rows=rows, align="llrl")


def _fallbacks(by_label: Mapping[str, Sequence[PlannedRunDone]]) -> Bullets:
    """How many searches of each condition had no rule with enough records on both sides."""
    lines_of = []
    for name, runs in by_label.items():
        if CONDITIONS[name] is E1Condition.SPECTRAL_SPLIT:
            continue
        searches = [search for run in runs for search in run.findings.searches]
        fell = sum(search.splitter is None for search in searches)
        lines_of.append(
            f"{_NAMES.get(name, name)}: in {fell} of {len(searches)} searches no rule left both slices large enough "
            "and the spectral split stood in."
        )
    return Bullets(tuple(lines_of))


def _figure(by_name: Mapping[str, Sequence[PlannedRunDone]]) -> str:
    ticks = [f"{t:.2f}" for t in THRESHOLDS]
    panels = {
        title: {name: [over_seeds(runs, quality(t)) for t in THRESHOLDS] for name, runs in by_name.items()}
        for title, quality in (("HQ-T", run_counts.hq_test), ("HQ-F", run_counts.hq_full))
    }
    return lines("e1-thresholds", panels, dict.fromkeys(panels, ticks), xlabel="MCC at least", ylabel="units")

"""Experiments on paper: which runs they plan, what they count, and which sentences the counts allow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from experiment_toys import UNITS, UP, finished, request
from findings_fixture import POSITIVE, TAU
from hypothesis import given, settings
from hypothesis import strategies as st

from mecharule_ops.errors import UsageError
from mecharule_ops.experiments import by_baseline, e0, e1, e2, run_counts, sensitivity, shared_units
from mecharule_ops.experiments.catalogue import EXPERIMENTS, chosen
from mecharule_ops.experiments.page import TRAINED, Chapter, ExperimentPart, as_data, brief, document, tables
from mecharule_ops.experiments.requested_runs import MAIN, PlannedRun, PlannedRunDone, distinct, planned
from mecharule_ops.experiments.run_folder import price_of
from mecharule_ops.experiments.shared_units import TOP, top_attributed
from mecharule_ops.findings.counts import Dominance
from mecharule_ops.findings.measures import recall_rows
from mecharule_ops.report.as_text import markdown_of, text_of
from mecharule_ops.report.document import Table
from mecharule_ops.saying.searches import recall_words, summed_recall_words
from mecharule_ops.slices import E1Condition
from mecharule_ops.types import Baseline, ChanceTest, Regime, Share


def ids(runs: Sequence[PlannedRun]) -> set[str]:
    return {run.id for run in runs}


def test_a_run_is_named_by_its_settings_alone() -> None:
    """The label is for people; any other setting is another run."""
    base = request().base
    assert planned(base, 1, "one").id == planned(base, 1, "two").id
    assert len(ids([planned(base, 1), planned(base, 2), planned(base, 1, tau=0.3)])) == 3
    assert len(planned(base, 1).id) == 12


def test_experiments_share_the_runs_of_the_main_condition() -> None:
    """E0's runs are among those of E1, E2 and overlap, so they are made once."""
    main = ids(e0.plan(request(3)))
    for name in ("e1", "e2", "sensitivity", "baselines", "overlap"):
        assert main <= ids(EXPERIMENTS[name].plan(request(3))), name


def test_e1_plans_every_condition_under_every_seed() -> None:
    """Four conditions of the paper, five seeds, twenty runs."""
    runs = distinct(e1.plan(request()))
    asked = {(run.config.condition, run.seed) for run in runs}
    assert asked == {(condition.value, seed) for condition in E1Condition for seed in range(5)}


@pytest.mark.parametrize("default", ["guided", "cha"])
def test_e2_plans_three_searches_whatever_the_default(default: str) -> None:
    """The default, the other of guided and cha, and Algorithm 1, each under every seed."""
    asked = request(2)
    runs = e2.plan(replace(asked, base=asked.base.model_copy(update={"search": default})))
    assert {(run.config.search, run.config.parity) for run in runs} == {
        ("guided", False),
        ("cha", False),
        (default, True),
    }
    assert len(distinct(runs)) == 6


def test_sensitivity_changes_one_setting_at_a_time() -> None:
    """Against the main run of its seed each other run differs in one field; the axes are the issue's five."""
    main = planned(request().base, 0).config.model_dump()
    changed = set()
    for run in sensitivity.plan(request()):
        own = run.config.model_dump()
        fields = {name for name in own if own[name] != main[name] and name != "seed"}
        assert len(fields) == (0 if run.label == MAIN else 1), run.label
        changed |= fields
    assert changed == {"tau", "cap", "alpha", "slice_size", "task_settings"}


def test_sensitivity_rows_are_in_the_order_of_their_values() -> None:
    """The main condition stands at its own value."""
    bases = {f"τ {tau}": request().base.model_copy(update={"tau": tau}) for tau in (0.5, 0.1)}
    changed = [replace(finished(0, label), planned=planned(base, 0, label)) for label, base in bases.items()]
    runs = [finished(0), *changed]
    table = next(block for block in sensitivity.part(runs).blocks if not isinstance(block, str))
    assert [row[0] for row in table.rows] == ["0.1", "0.2", "0.5"]


def test_baselines_plans_every_baseline() -> None:
    """Zero, means, donors, slot0."""
    assert {run.config.baseline for run in by_baseline.plan(request())} == set(Baseline)


def test_what_a_request_does_not_allow_is_refused() -> None:
    """One basis an experiment; brute force within reach for E2; a known name."""
    with pytest.raises(UsageError, match="one basis"):
        request(bases=("mlp_out", "attn_head"))
    with pytest.raises(UsageError, match="--exhaustive-up-to 256"):
        e2.plan(request(exhaustive_up_to=100))
    with pytest.raises(UsageError, match=r"sensitivity.*e9"):
        chosen("e0,e9")
    assert chosen("e1,e0,e1") == ("e1", "e0")


def test_the_price_counts_every_node_of_every_tree() -> None:
    """256 units: 511 nodes and 256 units singly, in two regimes, at 2 × 64 examples each."""
    price = price_of([planned(request().base, 0)], UNITS)
    assert price.evaluations == 2 * (511 + 256)
    assert price.example_forwards == 2 * (511 + 256) * 128
    without = price_of([planned(request(exhaustive_up_to=0, regimes=(1,)).base, 0)], UNITS)
    assert without.evaluations == 511


def test_counts_are_those_of_the_findings() -> None:
    """By hand on the fixture: 4 localized, 3 of them τ-agonists, 2 good rules of 3, 4 of 5 units found."""
    run = finished(0, good=2)
    assert (run_counts.localized(run), run_counts.tau_agonists(run)) == (4, 3)
    assert (run_counts.hq_t(run), run_counts.hq_f(run), run_counts.bearing_t(run)) == (2, 2, 3)
    assert run_counts.hq_test(0.8)(run) == 0
    assert run_counts.union(UP)(run) == 0.3
    assert np.isnan(run_counts.union(Regime.BASELINE_NEGATIVE)(run))
    assert run_counts.cost_of_n(run) == pytest.approx(104 / 270)
    strong = sum(unit.estimate.strength >= TAU for unit in POSITIVE.exhaustive.units)
    assert run_counts.recall_share(run.search(UP)).n == strong
    assert run_counts.recall_share(None) is None


def test_a_good_rule_is_counted_as_shown_only_where_chance_does_not_explain_it() -> None:
    """Two at MCC .78; one whose p Holm does not leave is of high quality by its point estimate alone."""
    run = finished(0, good=2)
    (search,) = run.findings.searches
    p = ChanceTest(p=0.04, adjusted=0.12, rules=3, level=0.05)
    first, *rest = search.anchored
    searches = (replace(search, anchored=(replace(first, chance=p), *rest)),)
    doubted = replace(run, findings=replace(run.findings, searches=searches))
    assert [run_counts.hq_t(one) for one in (run, doubted)] == [2, 2]
    assert [run_counts.hq_t_shown(one) for one in (run, doubted)] == [2, 1]
    assert ("units with a rule at held-out MCC ≥ .70 (HQ-T)", "2.0; shown (interval above 0, Holm) 1.0") in (
        e0.part([doubted]).rows
    )
    tables = [
        block for block in e1.part(conditions([1] * 5, [1] * 5, [1] * 5)).blocks if isinstance(block, Table)
    ]
    assert ["≥ .70, shown" in table.header for table in tables[:2]] == [True, False]


def conditions(main: Sequence[int], spectral: Sequence[int], fake: Sequence[int]) -> list[PlannedRunDone]:
    """Runs of E1 with so many high-quality units a seed; a random draw is as the paper's main condition."""
    given = {e1.REFERENCE: main, "spectral split": spectral, MAIN: main, "fake rule": fake}
    return [
        finished(seed, label, good=good) for label, many in given.items() for seed, good in enumerate(many)
    ]


@pytest.mark.parametrize(
    ("main", "spectral", "fake", "said"),
    [
        ([1, 2, 2, 1, 1], [1, 2, 1, 2, 1], [1, 1, 2, 2, 1], ["beat spectral", "beat fake-rule"]),
        ([1, 2, 2, 1, 1], [1, 2, 1, 2, 1], [9, 9, 9, 9, 8], ["beat spectral", "give fewer HQ-T"]),
        ([3, 3, 3, 3, 4], [3, 4, 3, 2, 4], [0, 0, 0, 0, 0], ["beat spectral", "more HQ-T units and more"]),
    ],
)
def test_the_sentence_of_e1_follows_the_numbers(
    main: list[int], spectral: list[int], fake: list[int], said: list[str]
) -> None:
    """Not shown to beat, fewer, more: whatever the paired intervals allow, and nothing else."""
    sentence = str(e1.part(conditions(main, spectral, fake)).blocks[0])
    assert "over 5 seeds" in sentence
    assert all(words in sentence for words in said)
    assert sentence.count("not shown to beat") == sum("beat" in words for words in said)


def test_two_seeds_allow_no_sentence() -> None:
    """However large the difference."""
    sentence = str(e1.part(conditions([9, 9], [0, 0], [0, 0])).blocks[0])
    assert "too few seeds" in sentence


def test_where_no_rule_is_good_the_page_says_that_nothing_can_be_told() -> None:
    """Zero against zero is no evidence of equality."""
    blocks = e1.part(conditions([0] * 5, [0] * 5, [0] * 5)).blocks
    assert blocks[1] == "No unit of any condition reaches HQ-T or HQ-F, so that cannot tell them apart."
    assert "cannot tell" not in str(e1.part(conditions([1] * 5, [0] * 5, [0] * 5)).blocks[1])


def test_the_differences_of_e1_hold_together() -> None:
    """Three conditions by two measures: six intervals, each at 1 − .05 / 6; the mean is the mean difference."""
    found = e1.differences(
        {
            name: [run for run in conditions([3, 1], [1, 1], [0, 0]) if run.label == name]
            for name in e1.CONDITIONS
        }
    )
    assert len(found) == 6
    assert {one.other: one.interval.mean for one in found if one.measure == "HQ-T"} == {
        "spectral split": 1.0,
        MAIN: 0.0,
        "fake rule": 2.0,
    }


def test_shared_flips_by_hand() -> None:
    """Unions 1100 and 0110: one record in both, three in either."""
    one, other = finished(0, flips=[[1, 0, 0, 0], [0, 1, 0, 0]]), finished(0, flips=[[0, 1, 1, 0]])
    assert shared_units.shared_flips(one.flips[UP], other.flips[UP]) == Share(count=1, n=3)


@settings(max_examples=30)
@given(st.integers(0, 5), st.integers(0, 5), st.integers(0, 9), st.randoms(use_true_random=False))
def test_shared_flips_are_those_of_sets(rows: int, others: int, records: int, random: object) -> None:
    """Against Python sets of record numbers."""
    draw = np.random.default_rng(random.getrandbits(32))
    first, second = draw.random((rows, records)) < 0.3, draw.random((others, records)) < 0.3
    one, other = ({int(r) for r in np.argwhere(flips)[:, 1]} for flips in (first, second))
    assert shared_units.shared_flips(first, second) == Share(count=len(one & other), n=len(one | other))


def test_the_units_of_largest_attribution_come_first() -> None:
    """Against a sort of (−|score|, layer, channel); negative scores count by size."""
    scores = np.random.default_rng(1).normal(size=(20, 9))
    scores[3, 4] = -9.0
    top = top_attributed(scores, POSITIVE)
    slow = sorted(np.ndindex(20, 9), key=lambda place: (-abs(scores[place]), place))[:TOP]
    assert [(unit.layer, unit.channel) for unit in top] == slow
    assert str(top[0]) == "a3.h4"


def test_overtopping_is_that_of_the_largest_opened_group_of_each_layer() -> None:
    """By hand: of 8 and 128 units at strengths .5 and .8 the latter counts; .6 alone is .75 of it; one of 0 is none."""

    def group(size: int, strength: float, layer: int = 3) -> Dominance:
        return Dominance(
            layer=layer, size=size, group_strength=strength, best_singleton=0.6, best_small=strength
        )

    runs = [
        with_groups(finished(0, e2.PRINTED), group(8, 0.5), group(128, 0.8)),
        with_groups(finished(1, e2.PRINTED), group(64, 0.8), group(9, 0.0, layer=1)),
        finished(0),
    ]
    (table,) = [
        block for block in e2.part(runs).blocks if isinstance(block, Table) and "Dom(1)" in block.header
    ]
    assert table.rows == (("1→0", "3", "2", "96", "0.80", "0.60", "0.75", "0.80", "1.00"),)


def test_write_norm_is_the_top_of_its_order_at_the_cost_of_the_default_search() -> None:
    """By hand: 300 and 20 forwards pay for 2 of 5 units of 128 each; norms as strengths, then the other way round."""
    strengths = sorted(one.estimate.strength for one in POSITIVE.exhaustive.units)
    strong = sum(strength >= TAU for strength in strengths)
    for sign, tested in ((1, strengths[-2:]), (-1, strengths[:2])):
        norms = np.zeros((30, 9))
        for one in POSITIVE.exhaustive.units:
            norms[one.neuron.layer, one.neuron.channel] = 1 + sign * one.estimate.strength
        run = finished(0)
        (search,) = run.findings.searches
        cost = replace(search.cost, example_forwards=300, prediction_forwards=20)
        searches = (replace(search, cost=cost),)
        run = replace(run, norms=norms, findings=replace(run.findings, searches=searches))
        (ranked,) = e2.by_write_norm([run, finished(1)])
        found = ranked.search(UP)
        assert (ranked.label, found.cost.queries, found.cost.all_forwards) == (e2.WRITE_NORM, 2, 256)
        assert run_counts.recall_share(found) == Share(count=sum(s >= TAU for s in tested), n=strong)
        part = e2.part([run])
        named = [[row[0] for row in block.rows] for block in part.blocks if isinstance(block, Table)]
        assert named[0][-1] == named[1][-1] == e2.WRITE_NORM
        assert "write norm" in part.says
    assert "write norm" not in e2.part([finished(0)]).says


def test_a_recall_over_seeds_is_bounded_over_distinct_units() -> None:
    """Five seeds that find the same units prove no more than one; a unit that one seed missed is not found."""
    search = finished(0).findings.searches[0]
    (one,) = [
        share for row in search.recall if row.criterion == "point" and row.whole for share in [row.found]
    ]
    alone, five = run_counts.recalled([search]), run_counts.recalled([search] * 5)
    assert alone == recall_words(one)
    assert five.startswith(f"{5 * one.count}/{5 * one.n} ")
    assert five.rpartition("at least")[2] == alone.rpartition("at least")[2]
    lost = next(a for a in search.agonists if a.neuron not in {u.neuron for u in search.missed(TAU)})
    agonists = tuple(each for each in search.agonists if each is not lost)
    units = search.exhaustive.units
    rows = recall_rows(units, {each.neuron for each in agonists}, TAU, 0.05)
    other = replace(search, agonists=agonists, recall=rows)
    assert f"{one.count - 1} of {one.n} units in every seed" in run_counts.recalled([search, search, other])
    bins = {row.low for row in search.recall if row.criterion == "point" and not row.whole}
    assert run_counts.recalled([search] * 2, bins) == run_counts.recalled([search] * 2)
    assert summed_recall_words(Share(count=12, n=12), Share(count=3, n=3)) == "12/12 (3 units; at least 36 %)"
    assert summed_recall_words(Share(count=12, n=12), None) == "12/12 (100 %)"


def with_groups(run: PlannedRunDone, *groups: Dominance) -> PlannedRunDone:
    (search,) = run.findings.searches
    return replace(run, findings=replace(run.findings, searches=(replace(search, dominance=groups),)))


def test_values_out_of_range_are_pooled() -> None:
    """3 of 640 in each of two runs; the units without that control add nothing."""
    assert by_baseline.outside([finished(0), finished(1)]) == Share(count=6, n=1280)


@pytest.mark.parametrize(("model", "said"), [("arith-tiny", True), ("smollm2-135m", False)])
def test_a_page_on_the_bundled_model_says_how_that_was_trained(model: str, said: bool) -> None:
    """In both forms of the page, and on no other model's."""
    run = finished(0)
    run = replace(run, findings=replace(run.findings, model=model))
    part = EXPERIMENTS["e0"].part([run])
    chapter = Chapter(name="e0", title="t", question="q", command="c", part=part, runs=(run,))
    for page in (document([chapter], "a machine"), brief([chapter], "a machine")):
        assert (TRAINED in page.sections[0].blocks) == said


def test_the_brief_page_says_what_every_experiment_shows() -> None:
    """In the order asked for, the fourth too."""
    run = finished(0)
    chapters = [
        Chapter(
            name="e0",
            title="t",
            question="q",
            command="c",
            part=ExperimentPart(blocks=(), figures={}, says=f"S{n}."),
            runs=(run,),
        )
        for n in range(4)
    ]
    assert str(brief(chapters, "a machine").sections[0].blocks[0]).endswith("S0. S1. S2. S3.")


@pytest.mark.parametrize("name", ["e0", "e1", "e2"])
def test_a_page_is_the_same_every_time_and_reads_in_every_form(name: str) -> None:
    """Text within its width, Markdown with the figure's path, JSON values, the command and the hashes."""
    label = {"e1": list(e1.CONDITIONS), "e2": [MAIN, e2.OTHER, e2.PRINTED]}.get(name, [MAIN])
    runs = tuple(finished(seed, each) for each in label for seed in range(2))
    made = EXPERIMENTS[name]
    first, second = made.part(runs), made.part(runs)
    assert first == second
    chapter = Chapter(
        name=name, title=made.title, question=made.question, command="mecharule x", part=first, runs=runs
    )
    page = document([chapter], "a machine")
    assert max(map(len, text_of(page, 120).splitlines())) <= 120
    figure = next(iter(first.figures))
    markdown = markdown_of(page, {figure: (f"figures/{figure}.svg", "caption")})
    assert f"](figures/{figure}.svg)" in markdown
    assert "mecharule x" in markdown
    assert runs[0].findings.model_hash in str(as_data(page))
    kept, files = brief([chapter], "a machine"), tables([chapter])
    short = markdown_of(kept)
    assert all(file.replace("_", "\\_") in short for file in files if file != "experiments-runs.csv")
    assert sum(isinstance(block, Table) and len(block.rows) <= 12 for block in kept.sections[0].blocks) == 1
    assert {run.planned.id for run in runs} == {row[2] for row in files["experiments-runs.csv"].rows}

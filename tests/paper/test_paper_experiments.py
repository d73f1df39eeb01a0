"""The paper's experiments: which runs they plan, what they count, which sentences the counts allow, what they reuse."""

import csv
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from findings_fixture import FINDINGS, POSITIVE, anchored
from hypothesis import given, settings
from hypothesis import strategies as st
from paper import plans, tables
from paper.__main__ import main, write
from paper.finishing import PaperRun, _key, stored
from paper.intervals import FEWEST, Interval, direction, paired, t_interval
from paper.plans import DRAWN, FAKE, MAIN, REFERENCE, SPECTRAL, plan
from scipy import stats

from mecharule_ops.config import RunConfig, make_config
from mecharule_ops.rules.families import UnitRule
from mecharule_ops.types import ChanceTest, FlipCount, Regime, Share

ROOT = Path(__file__).parents[2]
UP, DOWN = Regime.BASELINE_POSITIVE, Regime.BASELINE_NEGATIVE


def base(**changed: object) -> RunConfig:
    return make_config(**{"model": "arith-tiny", "exhaustive_up_to": 300, **changed})


def run(
    seed: int = 0,
    rules: Sequence[UnitRule] = (),
    flips: Sequence[Sequence[int]] = (),
    changed: RunConfig | None = None,
) -> PaperRun:
    """A run with one search, its rules, and the given flips of its units; no model and no file."""
    search = replace(POSITIVE, anchored=tuple(rules), union=Share(count=30 + seed, n=100))
    return PaperRun(
        config=changed or base(seed=seed),
        findings=replace(FINDINGS, searches=(search,), seed=seed, run=f"{seed:04x}"),
        chosen={UP: [{"test-chosen": 0.8, "all-fit, permuted": 0.7}] * len(rules)},
    )


def good(count: int) -> list[UnitRule]:
    """So many units whose rule reaches MCC .78, held out and all-fit, and one whose rule does not."""
    reached = [anchored(f"a1.h{number}", "a > 1", 0.78, 84, 40) for number in range(count)]
    return [*reached, anchored("a2.h0", "b", 0.3, 84, 40)]


def split(main: Sequence[int], spectral: Sequence[int], fake: Sequence[int]) -> dict[str, list[PaperRun]]:
    """Runs of E1 with so many good rules a seed; a random draw is as the paper's main condition."""
    counts = {REFERENCE: main, SPECTRAL: spectral, DRAWN: main, FAKE: fake}
    return {label: [run(seed, good(n)) for seed, n in enumerate(many)] for label, many in counts.items()}


# --- which runs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("parity", [False, True])
@pytest.mark.parametrize("name", ["e1", "scale"])
def test_no_two_conditions_are_one_run(name: str, parity: bool) -> None:
    """Under parity too, where the slices of the base are those of the paper's main condition; what is given goes
    before what a condition says; a sixth lacks its file."""
    found = plan(name, base(parity=parity), 2, {"slice_size": 15})
    every = [config for same in found.values() for config in same]
    assert ([*found], {config.slice_size for config in every}) == ([*plans.CONDITIONS[name]][:5], {15})
    assert len({config.model_dump_json() for config in every}) == len(every)
    assert _key(base(task_settings={"low": 1, "high": 5})) == _key(base(task_settings={"high": 5, "low": 1}))


# --- what is counted -------------------------------------------------------------------------------------


def test_counts_are_those_of_the_findings() -> None:
    """By hand on the fixture: 4 localized, 3 of them τ-agonists, 2 good rules of 3."""
    row = tables.run_row(run(rules=good(2)))
    assert (row["localized"], row["τ-agonists"], row["rule-bearing, train"]) == (4, 3, 3)
    assert (row["HQ-T ≥ 0.70"], row["HQ-F ≥ 0.70"], row["HQ-T ≥ 0.80"]) == (2, 2, 0)
    assert row["union 1→0"] == 0.3
    assert math.isnan(row["union 0→1"])
    assert row["queries of N"] == pytest.approx(104 / 270)


def test_a_good_rule_is_shown_only_where_chance_does_not_explain_it() -> None:
    """One of two whose p Holm does not leave is of high quality by its point estimate alone."""
    first, *rest = good(2)
    doubted = replace(first, chance=ChanceTest(p=0.04, adjusted=0.12, rules=3, level=0.05))
    row = tables.run_row(run(rules=[doubted, *rest]))
    assert (row["HQ-T ≥ 0.70"], row["HQ-T ≥ 0.70, shown"]) == (2, 1)


@pytest.mark.parametrize(
    ("main", "spectral", "fake", "said"),
    [
        ([1, 2, 2, 1, 1], [1, 2, 1, 2, 1], [1, 1, 2, 2, 1], ["no difference shown"] * 2),
        ([1, 2, 2, 1, 1], [1, 2, 1, 2, 1], [9, 9, 9, 9, 8], ["no difference shown", "fewer"]),
        ([3, 3, 3, 3, 4], [3, 4, 3, 2, 4], [0, 0, 0, 0, 0], ["no difference shown", "more"]),
        ([9, 9], [0, 0], [0, 0], ["too few seeds to say"] * 2),
        ([0] * 5, [0] * 5, [0] * 5, []),
    ],
)
def test_the_sentence_of_e1_follows_the_numbers(
    main: list[int], spectral: list[int], fake: list[int], said: list[str]
) -> None:
    """Whatever the paired intervals allow, and nothing else; zero against zero is no evidence of equality."""
    shown = tables.e1(split(main, spectral, fake))
    assert ("HQ-T cannot be tested here, since no unit of any condition reaches it" in shown.says) == (
        not said
    )
    wanted = f"against the {SPECTRAL} [^;]*, {said[0]}, against the {FAKE} [^;]*, {said[1]}" if said else ""
    assert re.search(wanted, shown.says)
    assert len({row["mean"] for row in shown.tables["e1-differences"] if row["less"] == DRAWN}) == 1


# --- intervals -------------------------------------------------------------------------------------------


def test_the_interval_holds_the_mean_as_often_as_it_says() -> None:
    """Of 2,000 samples of five normal numbers about 95 %; at half the width they would not (the check can fail)."""
    found = [t_interval(list(sample)) for sample in np.random.default_rng(0).normal(3.0, 2.0, (2000, 5))]
    assert 0.935 < np.mean([one.low <= 3.0 <= one.high for one in found]) < 0.965
    assert np.mean([abs(one.mean - 3.0) <= (one.high - one.low) / 4 for one in found]) < 0.9


@settings(max_examples=40)
@given(st.lists(st.tuples(st.floats(-50, 50), st.floats(-50, 50)), min_size=3, max_size=12))
def test_paired_differences_are_scipys(pairs: list[tuple[float, float]]) -> None:
    """Six that hold together at 95 % need 99.17 % each."""
    first, second = zip(*pairs, strict=True)
    if np.std(np.subtract(first, second)) > 1e-6:
        other = stats.ttest_rel(first, second).confidence_interval(1 - 0.05 / 6)
        assert paired(first, second, 6)[1:3] == pytest.approx((other.low, other.high), abs=1e-6)


@pytest.mark.parametrize(
    ("low", "high", "n", "said"),
    [
        (0.1, 2.0, FEWEST, "more"),
        (-2.0, -0.1, FEWEST, "fewer"),
        (-0.1, 2.0, FEWEST, "no difference shown"),
        (25.0, 25.0, FEWEST, "no difference shown"),
        (0.1, 2.0, FEWEST - 1, "too few seeds to say"),
    ],
)
def test_a_difference_is_called_one_only_without_zero_and_with_enough_seeds(
    low: float, high: float, n: int, said: str
) -> None:
    assert direction(Interval((low + high) / 2, low, high, n)) == said


# --- the page and its tables -----------------------------------------------------------------------------


def test_the_page_is_short_and_every_table_has_distinct_columns(tmp_path: Path) -> None:
    """At most three sentences, one table of at most a dozen rows, all else as CSV."""
    main = [run(seed, good(1)) for seed in range(2)]
    write(tmp_path, {"e0": {MAIN: main}, "e1": split([1, 2], [1, 1], [0, 1])}, "a command")
    page = (tmp_path / "experiments.md").read_text(encoding="utf-8")
    assert page.count("\n| ") <= 2 + 12
    assert all(f"](tables/{file.name})" in page for file in (tmp_path / "tables").iterdir())
    assert main[0].findings.model_hash in page
    assert "train-chosen 0.0, permuted 0.0; test-chosen 2.0, permuted 0.0; all-fit 0.0, permuted 2.0" in page


def test_the_published_page_has_each_count_beside_chance(tmp_path: Path) -> None:
    """By hand: two units of .80 where chosen on the labels that score; one breaks 280 of 280, and is not counted."""
    rules = [replace(rule, published={"test-chosen": 0.8, "test-chosen, permuted": 0.75}) for rule in good(1)]
    rules[0] = replace(rules[0], flips=FlipCount(flips=280, n=280))
    runs = {label: [run(rules=rules)] for label in plans.PUBLISHED}
    write(tmp_path, {"published": runs}, "a command", "paper")
    page = (tmp_path / "paper.md").read_text(encoding="utf-8")
    assert page.count("\n| ") <= 2 + 12
    assert f"| {plans.HEADS}: chosen on train, by ours | 1 of 2 (median .54) |" in page
    assert (
        f"| {plans.LAYER}, `slot0`: test-chosen over both regimes | 2 of 2 (median .80) | 2 of 2 (median .75) |"
        in page
    )
    assert "chosen on train but for the target, of those that break 90 % | 0 of 1 (median 0.00) |" in page


def test_the_page_of_scale_has_a_row_a_search_and_overlap_beside_chance(tmp_path: Path) -> None:
    """By hand: 4 localized, all shared, 3 of 4 at τ found; where not every unit was asked no chance is told. What
    is run again alone keeps the rows of the others, and of its own other direction."""
    runs = {label: [run(rules=good(1))] for label in [*plans.SCALE][2:4]}
    write(tmp_path, {"scale": runs}, "a command", "paper_scale")
    page = (tmp_path / "paper_scale.md").read_text(encoding="utf-8")
    assert page.count("| 4; 3; 2 | 75 % (1); 38.5 % |") == page.count("| 2; 0 |") == 2
    assert "Not run: attn_head, mean-positional; mlp_out, mean-positional; attn_head, HANS," in page
    assert ",4,4,\n" in (tmp_path / "tables" / "paper_scale-shared.csv").read_text()
    assert len((tmp_path / "tables" / "paper_scale-units.csv").read_text().splitlines()) == 1 + 2 * 4
    files = [*(tmp_path / "tables").glob("paper_scale-[!r]*"), tmp_path / "tables" / "paper_scale-recall.csv"]
    before = [sorted(file.read_text().splitlines()) for file in files]
    again = run(rules=good(1))
    write(tmp_path, {"scale": {[*plans.SCALE][2]: [again]}}, "another command", "paper_scale")
    assert [sorted(file.read_text().splitlines()) for file in files] == before
    found = replace(again.findings, searches=(replace(again.findings.searches[0], regime=DOWN),))
    turned = replace(again, findings=found, chosen={DOWN: again.chosen[UP]})
    write(tmp_path, {"scale": {[*plans.SCALE][2]: [turned]}}, "a third", "paper_scale")
    assert (tmp_path / "tables" / "paper_scale-runs.csv").read_text().count("command") == 1 + 2
    assert len((tmp_path / "tables" / "paper_scale-searches.csv").read_text().splitlines()) == 1 + 3


def test_every_table_of_the_docs_has_distinct_columns() -> None:
    """Shown to fail: two columns `low` and two `high` stood in accounts-rules.csv."""
    for file in (ROOT / "docs" / "tables").glob("*.csv"):
        with file.open(encoding="utf-8") as text:
            header = next(csv.reader(text))
        assert len({*header}) == len(header), f"{file.name}: {header}"


QUICK = {"slice_size": 20, "proposals": 0, "anchor_for": 1, "controls_for": 1, "records": 120}


def test_finished_runs_are_reused_and_what_is_wrong_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """E0 on the heads of the bundled model: a second start makes the seed that is missing; a setting that does not
    exist is exit 2."""
    monkeypatch.setenv("MECHARULE_RUNS", str(tmp_path))

    def made(seeds: int, **changed: object) -> tuple[int, list[str]]:
        told = {**QUICK, "regimes": "[1]", "bases": '["attn_head"]', **changed}
        chosen = [word for name, value in told.items() for word in ("--set", f"{name}={value}")]
        folders = ("--runs", str(tmp_path / "runs"), "--into", str(tmp_path / "docs"))
        return main(["e0", "--seeds", str(seeds), *folders, *chosen]), capsys.readouterr().err.splitlines()

    assert made(1)[0] == 0
    (first,) = stored(tmp_path / "runs").values()
    before = first.read_bytes()
    assert made(2)[1][0].endswith(f"seed 0: {first}")
    assert len(stored(tmp_path / "runs")) == 2
    assert first.read_bytes() == before
    page = (tmp_path / "docs" / "experiments.md").read_text()
    assert "2 runs of arithmetic on arith-tiny" in page
    assert str(tmp_path) not in page
    code, (line,) = made(1, colour=1)
    assert code == 2
    assert "colour" in line

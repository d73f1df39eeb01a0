"""The page of repairs names what stands beside a mean, and so does every page that prints a ±."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from repairs_told import TEST, helping, unopened

from mecharule_ops.findings.repair_outcome import ControlKind, RepairSplit, SplitResult
from mecharule_ops.mcnemar import Paired
from mecharule_ops.saying.repair_facts import deciding_sentence

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs").glob("tables/*.csv")),
]


def test_a_change_over_seeds_stands_with_the_interval_that_the_header_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """23 − 6 and 33 − 6 of 600: 2.83 and 4.50 points, t(1) at .975 is 12.706, so 3.67 ± 12.706 · .8333."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from repair import table

    results = (TEST, replace(TEST, fixed=33, acted=90))
    seeds = [
        replace(helping(), seed=seed, splits=(SplitResult(split=RepairSplit.TEST, result=result),))
        for seed, result in enumerate(results)
    ]
    header, _, row = table(seeds).splitlines()
    assert "| change [95 % interval] |" in header
    assert "| +3.67 [-6.92, +14.26] |" in row
    assert "±" not in row


def test_a_seed_without_a_gate_counts_and_records_of_several_seeds_are_not_pooled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """2.83 and 0: 1.42 ± 12.706 · 1.4167. Ahead in one of two seeds is not ahead; one seed has no dagger."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from repair import BESIDE, _control, table

    header, _, row = table([helping(), replace(unopened(), seed=1, solution=True)]).splitlines()
    assert "| 2 | +1.42 [-16.58, +19.42] |" in row
    assert "†" not in table([helping()])
    cells = dict(zip(header.split(" | "), row.split(" | "), strict=True))
    assert cells["the runner-up where they act"] == "-0.50 †"
    assert cells["a solver anywhere"].startswith("+0.00 (1 of 2 seeds) †")
    many = [replace(helping(), seed=seed) for seed in range(3)]
    gains = [Paired(n=600, before=494, fixed=fixed, broken=0, acted=600) for fixed in (60, 1, 1)]
    many = [
        replace(one, controls=tuple(replace(each, ahead=gain) for each in one.controls))
        for one, gain in zip(many, gains, strict=True)
    ]
    assert all(_control(many, kind).endswith(" †") for kind in BESIDE)


def test_one_draw_of_random_units_decides_nothing() -> None:
    """However far the gates are ahead of it or behind: it stands beside, outside the verdict."""
    made = helping()
    drawn = next(one for one in made.controls if one.kind is ControlKind.RANDOM_REPAIR)
    runner_up = next(one for one in made.controls if one.kind is ControlKind.RUNNER_UP)
    for ahead in (Paired(n=600, before=400, fixed=90, broken=0, acted=90), TEST, runner_up.ahead):
        said = deciding_sentence(replace(made, controls=(runner_up, replace(drawn, ahead=ahead))))
        assert said.startswith(
            "On the same records the gates are better than: the runner-up where they act ("
        )
        assert (
            ". The gates do more than what was tried without units. Beside it the same repair of one draw"
            in said
        )
        assert "which decides nothing" in said
    assert deciding_sentence(replace(made, controls=(drawn,))).startswith("Beside it")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_table_has_a_plus_minus_that_its_page_does_not_name(page: Path) -> None:
    """It may be a standard error, half an interval or a standard deviation, over seeds or over records."""
    text = page.read_text(encoding="utf-8")
    rows = [
        line for line in text.splitlines() if "±" in line and (line.startswith("|") or page.suffix == ".csv")
    ]
    assert not rows or "± is " in text or "(±" in text

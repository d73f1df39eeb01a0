"""The page of repairs names what stands beside a mean, and so does every page that prints a ±."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from repairs_told import TEST, helping

from mecharule_ops.findings.repair import Split, SplitResult

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
        replace(helping(), seed=seed, splits=(SplitResult(split=Split.TEST, result=result),))
        for seed, result in enumerate(results)
    ]
    header, _, row = table(seeds).splitlines()
    assert "| change [95 % interval] |" in header
    assert "| +3.67 [-6.92, +14.26] |" in row
    assert "±" not in row


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_table_has_a_plus_minus_that_its_page_does_not_name(page: Path) -> None:
    """It may be a standard error, half an interval or a standard deviation, over seeds or over records."""
    text = page.read_text(encoding="utf-8")
    rows = [
        line for line in text.splitlines() if "±" in line and (line.startswith("|") or page.suffix == ".csv")
    ]
    assert not rows or "± is " in text or "(±" in text

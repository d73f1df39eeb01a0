"""Two runs beside each other: what they share is counted among what both searched, each unit by what was kept aside."""

import re
from pathlib import Path
from typing import Any

from tools.registry import call


def test_what_the_other_run_did_not_search_counts_in_no_share(finished_run: Path, quick_run: Path) -> None:
    """One run searched MLP writes, the other heads: they share nothing and differ in nothing.

    Each unit stands with its counts, their bound and how sure it is, the surest first; never with a half's share.
    """
    told = call("compare", {"run": str(finished_run), "first": str(quick_run)})
    row: Any = told.as_json["runs.shared.1"]
    assert row["first"] > 0
    assert (row["not_searched_by_first"], row["not_searched_by_second"]) == (row["second"], row["first"])
    assert (row["shared"], row["union"]) == (0, 0)
    assert "the runs share" not in told.text
    assert re.search(rf"of the first run's .* the other run did not search {row['first']}", told.text)
    assert told.text.count("  not searched") == told.text.count("  shown") > 0
    assert told.text.startswith(f"{finished_run.stem} ↔ {quick_run.stem}\n")
    values: list[Any] = [(one.unit, one.value) for one in told.facts if one.unit]
    shown = [(unit, value["first"]) for unit, value in values if value["first"]["certainty"] == "shown"]
    for unit, fate in shown:
        assert re.search(rf"  {unit} .* {fate['flips']} of {fate['n']} +\d+ % +shown\n", told.text)
    bounds = [fate["at_least"] for _, fate in shown]
    assert bounds == sorted(bounds, reverse=True) != []
    back: Any = call("compare", {"run": str(quick_run), "first": str(finished_run)}).as_json["runs.shared.1"]
    assert (back["not_searched_by_first"], back["union"]) == (row["first"], 0)
    differ: Any = told.as_json["runs.settings"]
    assert {"records", "slice_size", "interventions"} <= differ.keys() - {"bases", "phase"}

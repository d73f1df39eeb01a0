"""Cross tables against counts made by hand, and the price and the looks that they cost."""

import re
from pathlib import Path

import numpy as np
import pytest
from bundled_run import Ask
from scipy.stats import binomtest

from mecharule_ops import errors, types
from mecharule_ops.findings.controls import holm
from mecharule_ops.rules.algebra import Rule
from mecharule_ops.run.opening import findings_of, opened
from mecharule_ops.run.tabulating import Part, drawn, fires, looks_at
from tools._asked import condition_of


@pytest.fixture
def units(copied_run: Path) -> tuple[str, str]:
    with opened(str(copied_run)) as run:
        first, second = findings_of(run).units()[:2]
    return str(first.neuron), str(second.neuron)


def test_cells_sum_to_the_records_and_equal_counts_by_hand(
    copied_run: Path, ask: Ask, units: tuple[str, str]
) -> None:
    """With exact intervals, as SciPy gives them."""
    unit = units[0]
    found = ask("tabulate", units=unit, where="a > b", by="op", among="a > 20").as_json
    with opened(str(copied_run)) as run:
        places = drawn(run, run.regimes[0], Part.TRAIN)
        places = places[fires(run, Rule.parse("a > 20"))[places]]
        flips = run.flips([(types.Neuron.parse(unit),)], places, run.regimes[0])[0]
        for cell, rule in {"a > b": "a > b", "not (a > b)": "a <= b", "op = +": "op == '+'"}.items():
            inside = fires(run, Rule.parse(rule))[places]
            told = found[f"unit.{unit}.train.{cell}"]
            assert (told["flips"], told["n"]) == (int(flips[inside].sum()), int(inside.sum()))
            interval = binomtest(told["flips"], told["n"]).proportion_ci(0.95)
            assert (told["low"], told["high"]) == pytest.approx((interval.low, interval.high), abs=1e-9)
    held, other = (found[f"unit.{unit}.train.{cell}"] for cell in ("a > b", "not (a > b)"))
    assert held["n"] + other["n"] == len(places)


def test_a_number_is_cut_at_quartiles_and_a_text_of_many_values_is_refused(
    copied_run: Path, ask: Ask, units: tuple[str, str]
) -> None:
    found = ask("tabulate", units=units[0], by="a").as_json
    cells = [value for key, value in found.items() if " < a" in key or "a ≤ " in key]
    assert len(cells) == 4
    assert max(one["n"] for one in cells) - min(one["n"] for one in cells) <= 5
    with pytest.raises(errors.UsageError, match="expected a column of op, a, b"):
        ask("tabulate", units=units[0], by="weather")


def test_two_units_are_paired_on_the_same_records(copied_run: Path, ask: Ask, units: tuple[str, str]) -> None:
    found = ask("tabulate", units=",".join(units), paired=True).as_json
    with opened(str(copied_run)) as run:
        regime, groups = run.regimes[0], [(types.Neuron.parse(unit),) for unit in units]
        first, second = run.flips(groups, drawn(run, regime, Part.TRAIN), regime)
    told = found[f"units.{units[0]}.{units[1]}.train.paired"]
    counts = [int(np.sum(each)) for each in (first & second, first & ~second, second & ~first)]
    assert [told[name] for name in ("both", "first_only", "second_only")] == counts
    changed = told["first_only"] + told["second_only"]
    assert told["p"] == pytest.approx(binomtest(told["first_only"], changed, 0.5).pvalue if changed else 1.0)


def test_pairs_share_one_error_and_an_empty_cell_says_so(
    copied_run: Path, ask: Ask, units: tuple[str, str]
) -> None:
    with opened(str(copied_run)) as run:
        third = str(findings_of(run).units()[2].neuron)
    names = [*units, third]
    alone = [
        ask("tabulate", units=f"{one},{other}", paired=True).as_json[f"units.{one}.{other}.train.paired"]["p"]
        for one, other in ((names[0], names[1]), (names[0], names[2]), (names[1], names[2]))
    ]
    told = ask("tabulate", units=",".join(names), paired=True)
    assert [one.value["p"] for one in told.facts if one.key.endswith(".paired")] == pytest.approx(holm(alone))
    assert "corrected for 3 pairs" in told.text
    empty = ask("tabulate", units=units[0], where="a > 5000")
    assert "There are no train records (1→0) where a > 5000" in empty.text


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ({"where": "a > b", "among": "a > 20"}, ["a > b among a > 20"]),
        ({"where": "a > b", "by": "op"}, ["a > b", "op"]),
        ({"among": "a > 20"}, ["all among a > 20"]),
    ],
)
def test_a_look_at_held_out_records_is_of_all_that_it_showed_and_counted_once(
    copied_run: Path, ask: Ask, units: tuple[str, str], given: dict[str, str], read: list[str]
) -> None:
    """Train is free."""
    for records in ("train", "held-out", "held-out"):
        ask("tabulate", units=units[0], records=records, **given)
    with opened(str(copied_run)) as run:
        assert [look["condition"] for look in looks_at(run, units[0], run.regimes[0])] == read


def test_records_are_those_of_the_unit_with_what_it_does(
    copied_run: Path, ask: Ask, units: tuple[str, str]
) -> None:
    unit = units[0]
    every, flipped = (
        ask("records", unit=unit, flips=which, limit=500).as_json["rows"] for which in ("any", "yes")
    )
    all_cell = ask("tabulate", units=unit).as_json[f"unit.{unit}.train.all"]
    assert (len(flipped), len(every)) == (all_cell["flips"], all_cell["n"])  # type: ignore[arg-type]
    assert {row["flips"] for row in flipped} == {True}  # type: ignore[attr-defined]


def test_every_printed_rule_is_read_back(copied_run: Path) -> None:
    """Anchored or of an account; what reads columns that a pass alone gives is refused by their names."""
    with opened(str(copied_run)) as run:
        rules = [rule.rule for search in findings_of(run).searches for rule in search.rules if rule.rule]
        read = [rule for rule in rules if not re.search(r"lead_|runner_up_|drop_|push_", str(rule))]
        assert all((fires(run, condition_of(run, str(rule))) == fires(run, rule)).all() for rule in read)
    assert len(read) > 2


def test_the_lead_is_a_column(copied_run: Path, ask: Ask, units: tuple[str, str]) -> None:
    """What is no syntax is refused in one plain line."""
    with opened(str(copied_run)) as run:
        leads = [record.margin > 2 for record in run.observed.records]
        assert fires(run, Rule.parse("lead > 2")).tolist() == leads
    rows = ask("records", unit=units[0], where="lead > 2", limit=500).as_json["rows"]
    assert rows
    assert all(row["lead"] > 2 for row in rows)  # type: ignore[call-overload, union-attr]
    with pytest.raises(errors.UsageError, match=r"such as a > b and carry\(a, b\), got 'the moon is full'$"):
        ask("tabulate", units=units[0], where="the moon is full")

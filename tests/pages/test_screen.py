"""The end of a run on one screen: it fits, says each thing once, and leads on."""

import dataclasses
import os
import re
from pathlib import Path
from typing import Any

import pytest
from findings_fixture import FINDINGS, NEGATIVE, POSITIVE, agonist

from mecharule_ops.facts.run_evidence import next_steps
from mecharule_ops.facts.shown_units import evidence_words, rank_words, unshowable, unshowable_by
from mecharule_ops.findings.evidence import HeldOut, HeldOutFlips, units_for
from mecharule_ops.findings.records import Findings
from mecharule_ops.pages.screen import screen
from mecharule_ops.types import Neuron, Regime

GOLDEN = Path(__file__).parent / "golden" / "screen.txt"
MANY = dataclasses.replace(
    POSITIVE,
    agonists=tuple(agonist(f"m{n}.{n}", 20 + n % 40, 2) for n in range(200)),
    anchored=(),
    controls=(),
    held_out=HeldOut(
        records=64,
        found=tuple(HeldOutFlips(neuron=Neuron.parse(f"m{n}.{n}"), flips=20 + n % 40) for n in range(200)),
        random=(0,) * 99,
        units=10**6,
    ),
)


def run_of(*searches: object) -> Findings:
    return dataclasses.replace(FINDINGS, searches=searches)


def test_the_screen_of_the_fixture_is_the_golden_one() -> None:
    if os.environ.get("MECHARULE_GOLDEN") == "write":
        GOLDEN.write_text(screen(FINDINGS), encoding="utf-8")
    assert screen(FINDINGS) == GOLDEN.read_text(encoding="utf-8")


SCREENS = {
    "fixture": FINDINGS,
    "no search": run_of(),
    "nothing found": run_of(NEGATIVE),
    "many units": run_of(MANY),
    "many searches": run_of(*[MANY] * 4, *[NEGATIVE] * 9),
    "only negatives": run_of(*[NEGATIVE] * 12),
    "a long note": dataclasses.replace(FINDINGS, notes=("A note that the task must say. " * 12,)),
}


@pytest.mark.parametrize("findings", SCREENS.values(), ids=SCREENS)
def test_it_is_at_most_one_screen(findings: Findings) -> None:
    """40 lines of 100 columns, whatever was found; where the report is stands at its end."""
    lines = screen(findings).splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 100
    assert lines[-1] == "All:  mecharule show 0c1f --full"


def test_what_is_not_shown_has_no_line_and_no_question() -> None:
    """It is named once, among those that are not; where nothing is shown that comes first, and says its direction."""
    text = " ".join(screen(FINDINGS).split())
    assert "; 1 more head reached 20 % on one half (64 answers), not shown." in text
    assert text.count("a20.h6") == 1
    assert "not shown: ◐ a20.h6" in text
    none = dataclasses.replace(POSITIVE, held_out=dataclasses.replace(POSITIVE.held_out, random=(64,) * 99))
    nothing = screen(run_of(none, dataclasses.replace(none, regime=Regime.BASELINE_NEGATIVE)))
    beside = "3 heads reached 20 % on one half (64 answers), not shown."
    said = " ".join(nothing.split())
    for turns in ("turns right answers wrong", "turns wrong answers right"):
        assert f"No head is shown that {turns}: {beside}" in said
    assert "●" not in nothing
    assert "why does" not in nothing


FEW = dataclasses.replace(POSITIVE.held_out, random=(0,) * 8, units=270)  # type: ignore[type-var]
NO_RECORD = tuple(dataclasses.replace(unit, flips=0) for unit in FEW.found)


@pytest.mark.parametrize(
    ("changes", "why", "cured"),
    [
        ({}, "", False),
        ({"held_out": None}, "not_asked", False),
        ({"held_out": None, "basis_units": 8}, "few_units", False),
        ({"held_out": FEW}, "few_drawn", True),
        ({"held_out": FEW, "basis_units": 270}, "few_drawn", True),
        ({"held_out": FEW, "basis_units": 8}, "few_units", False),
        ({"held_out": dataclasses.replace(FEW, records=0, found=NO_RECORD)}, "no_records", False),
    ],
)
def test_why_nothing_can_be_shown_and_whether_a_command_measures_it(
    changes: dict[str, Any], why: str, cured: bool
) -> None:
    """Of 8 heads no more can be drawn, and without a record more show nothing."""
    outcome = dataclasses.replace(POSITIVE, **changes)
    assert unshowable_by(FINDINGS, outcome) == why
    told = " ".join(screen(run_of(outcome)).split())
    assert ("`mecharule run --from 0c1f --set controls=199` measures it" in told) == cured
    keys = [key for key, _, _ in next_steps(None, run_of(outcome, NEGATIVE))]  # type: ignore[arg-type]
    assert [f"next.{one}" in keys for one in ("run", "controls", "0")] == [not why, cured, False]


@pytest.mark.parametrize(("units", "alpha", "needed"), [(270, 0.05, 199), (270, 0.01, 244)])
def test_as_many_random_units_are_advised_as_anything_shown_takes(
    units: int, alpha: float, needed: int
) -> None:
    """Never as few as still show nothing."""
    outcome = dataclasses.replace(POSITIVE, held_out=dataclasses.replace(FEW, units=units))
    findings = dataclasses.replace(run_of(outcome), alpha=alpha)
    assert needed >= units_for(units, alpha)
    assert f"--set controls={needed}`" in unshowable(findings, outcome)


def test_a_unit_above_all_random_ones_that_is_not_shown_says_why() -> None:
    """In the same breath; one that was drawn itself is named, and its rank leaves it out."""
    first, second, third = (each.neuron for each in POSITIVE.tau_agonists)
    held_out = HeldOut(
        records=8,
        found=tuple(HeldOutFlips(neuron=unit, flips=k) for unit, k in ((first, 8), (second, 3), (third, 1))),
        random=(*(0,) * 98, 1),
        units=270,
        again=(third,),
    )
    told = run_of(dataclasses.replace(POSITIVE, held_out=held_out, controls=()))
    said = {unit.neuron: f"{evidence_words(told, unit)}; {rank_words(unit)}" for unit in told.units()}
    assert said[second].startswith(
        f"{second} is suggestive, not shown: it flips 3 of 8 answers kept aside, and "
    )
    assert said[second].endswith("; as one of 3 heads at τ it may do so by chance; above all 99 random")
    assert said[third].startswith(f"{third} is open, not shown: it flips 1 of 8 answers kept aside, and ")
    assert said[third].endswith("(95 %, by 99 drawn at random, itself among them); above all 98 random")


def test_nothing_is_said_twice() -> None:
    """No count, unit or sentence of the screen stands on two lines, but the strongest unit's name."""
    lines = filter(None, screen(FINDINGS).splitlines())
    said = [line for line in lines if not line.lstrip().startswith(("Ask:", "mecharule"))]
    assert len(set(said)) == len(said)
    units = re.findall(r"\ba\d+\.h\d+\b", "\n".join(said))
    assert len(units) - len(set(units)) == 2

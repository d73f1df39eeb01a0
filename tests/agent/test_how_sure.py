"""How sure an answer is of a unit: over what its bounds hold, and what it does on records that chose nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from mecharule_ops.confidence import lower_bound, searched_alpha
from mecharule_ops.numbers import percent
from mecharule_ops.run.opening import findings_of, opened
from tools.registry import call
from tools.why import bounds_fact


def test_the_bounds_say_over_how_many_units_they_hold_and_held_out_flips_stand_beside_them(
    copied_run: Path,
) -> None:
    """The counts are the certificate's; a cover's slices have no bound."""
    with opened(str(copied_run)) as run:
        findings = findings_of(run)
        unit = findings.searches[0].agonists[0].neuron
    result = call("why", {"run": str(copied_run), "neuron": str(unit)})
    data: Any = result.data
    level = searched_alpha(findings.alpha, findings.searches[0].cost.candidates) / 2
    low = [lower_bound(part["flips"], part["n"], level) for part in data["slices"].values()]
    known = findings.unit(unit, findings.searches[0].regime)
    assert known is not None
    random, cover = (
        replace(known, search=replace(known.search, at_random=at_random)) for at_random in (True, False)
    )
    said = bounds_fact(findings, random).sentence
    shown = " and ".join(
        f"{percent(bound)} where {where}"
        for bound, where in zip(low, ("the splitter rule holds", "it does not"), strict=True)
    )
    assert said == (
        f"These counts show that it flips at least {shown}, of all such answers and as one of 256 units "
        "(95 % confidence); 20 % of those tried was looked for"
    )
    held_out = data["controls"]["flips"]
    counted = f"{held_out['flips']} of {held_out['n']} drawn from the held-out ones, more than"
    assert counted in result.text
    assert "at least" not in bounds_fact(findings, cover).sentence

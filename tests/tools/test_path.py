"""The chain of a unit: certified, kept, verified again on the reference path, printed and drawn."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bundled_run import Ask, opened

from mecharule_ops.certificates.certificate import Certificate
from mecharule_ops.certificates.verification import inconsistencies, totals_of
from mecharule_ops.errors import UsageError
from mecharule_ops.findings.chain import Chain, mediation_in, pairs_in
from mecharule_ops.mechanism.holds import Above, HeldLayer
from mecharule_ops.pages.chain_plots import chain_figures
from mecharule_ops.run.certify import certify_mediation
from mecharule_ops.types import Basis, Neuron, Regime


@pytest.fixture
def unit(copied_run: Path) -> Neuron:
    """The strongest localized unit of the first layer."""
    with opened(copied_run, read_only=True) as run:
        agonists = run.findings.searches[0].agonists
    low = [agonist for agonist in agonists if agonist.neuron.layer == 0]
    return max(low, key=lambda agonist: agonist.estimate.strength).neuron


@pytest.fixture
def chain(copied_run: Path, ask: Ask, unit: Neuron) -> Iterator[Chain]:
    """Its chain, made by the tool."""
    ask("explain", parts="chain", neuron=str(unit))
    with opened(copied_run, read_only=True) as run:
        found = run.chain(unit, Regime.BASELINE_POSITIVE)
        assert found is not None
        yield found


def certificate(path: Path, id: str | None) -> Certificate:
    with opened(path, read_only=True) as run:
        return run.store.certificate(str(id))


def test_the_chain_rests_on_certificates_that_run_again(copied_run: Path, ask: Ask, chain: Chain) -> None:
    """Both certificates agree with themselves and with the reference path; the chain says what they count."""
    mediated = certificate(copied_run, chain.mediation_certificate)
    paired = certificate(copied_run, chain.pairs_certificate)
    assert (mediated.kind, paired.kind) == ("mediation", "pairs")
    assert inconsistencies(mediated) == inconsistencies(paired) == ()
    assert mediation_in(mediated.rows, mediated.alpha) == chain.mediation
    assert pairs_in(paired.rows, paired.units[0], paired.alpha) == chain.pairs
    for one in (mediated, paired):
        assert ask("verify", what=one.id).exit_code == 0
        assert Certificate.from_json(one.to_json()) == one


def test_everything_above_held_is_the_strongest_hold_and_what_lies_below_carries_nothing(
    copied_run: Path, chain: Chain
) -> None:
    """What lies above carries at least as much as any part of it here; below a unit of the last layer, nothing."""
    by_hold = {one.held: one.gone.count for one in chain.mediation.through}
    assert {"above", "heads-above", "MLPs-above", "m1"} <= set(by_hold)
    assert by_hold["m1"] == by_hold["MLPs-above"]
    assert max(by_hold.values()) == by_hold["above"] > 0
    with opened(copied_run) as run:
        placed = [("asked", int(place)) for place in run.eligible(Regime.BASELINE_POSITIVE)[:30]]
        top = Neuron.parse("m1.3")
        made = certify_mediation(
            run, top, Regime.BASELINE_POSITIVE, [Above.EVERYTHING, HeldLayer(Basis.MLP_OUT, 0)], placed
        )
    assert all(one.gone.count == 0 == one.new.flips for one in mediation_in(made.rows, made.alpha).through)


def test_a_forged_hold_is_caught(copied_run: Path, ask: Ask, chain: Chain) -> None:
    """Rows of one hold given as another's agree with themselves, and differ from the model."""
    true = certificate(copied_run, chain.mediation_certificate)
    alone = {row.example: row.after for row in true.rows if row.held is None}
    rows = tuple(replace(row, after=alone[row.example]) if row.held == "above" else row for row in true.rows)
    forged = replace(true, rows=rows, totals=totals_of(rows, true.alpha))
    assert inconsistencies(forged) == ()
    with opened(copied_run) as run:
        run.store.put_certificate(forged)
    assert ask("verify", what=forged.id).exit_code == 4
    held = replace(true, rows=tuple(replace(row, held=true.units[0]) for row in true.rows))
    assert any("held and ablated" in fault for fault in inconsistencies(held))


def test_it_is_measured_once(ask: Ask, unit: Neuron, chain: Chain) -> None:
    """A second asking costs nothing and cites the certificates."""
    given = {"parts": "chain", "neuron": str(unit)}
    assert ask("explain", **given, estimate=True).text == "price: nothing, it is stored"
    json.dumps((first := ask("explain", **given)).as_json, allow_nan=False)
    assert {one.key: one.sources for one in first.facts}[f"unit.{unit}.chain.through"] == (
        f"c:{chain.mediation_certificate}",
    )


def test_named_units_are_held_in_place_of_the_found_ones(ask: Ask, unit: Neuron, chain: Chain) -> None:
    """Those that the chain holds already cost nothing; others are measured, however many, and kept."""
    given = {"parts": "chain", "neuron": str(unit)}
    held = str(next(one.hold for one in chain.mediation.through if isinstance(one.hold, Neuron)))
    assert "nothing" in ask("explain", **given, hold=held, estimate=True).text
    four = "m1.0,m1.1,m1.2,m1.3"
    assert "ablated completions" in ask("explain", **given, hold=four, estimate=True).text
    through: Any = ask("explain", **given, hold=four).as_json[f"unit.{unit}.chain.through"]
    assert {one["held"] for one in through["through"]} >= {*four.split(","), "above"}
    assert "nothing" in ask("explain", **given, hold=four, estimate=True).text
    with pytest.raises(UsageError, match="expected other units"):
        ask("explain", **given, hold=str(unit))


def test_figures_tell_groups_apart_without_colour(chain: Chain) -> None:
    """The same SVG for the same chain; bars that lower are hatched."""
    drawn = chain_figures(chain)
    assert drawn == chain_figures(chain)
    assert "url(#" in next(svg for name, (svg, _) in drawn.items() if name.endswith("writes"))

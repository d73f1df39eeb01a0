"""Which claim is weakest: by hand."""

from __future__ import annotations

from dataclasses import replace

from findings_fixture import FINDINGS

from mecharule_ops.findings.evidence import HeldOutFlips
from mecharule_ops.questions.support import by_support, strongest
from mecharule_ops.types import Basis, Neuron


def test_a_claim_without_controls_or_below_its_bound_comes_first() -> None:
    """Taking the held-out flips of a search away moves its units up; each weak point is named."""
    claims = by_support(FINDINGS)
    points = [len(claim.weak_points) for claim in claims]
    assert points == sorted(points, reverse=True)
    assert all(claim.unit.is_tau_agonist for claim in claims)
    best = claims[-1].unit
    searches = tuple(replace(one, held_out=None) for one in FINDINGS.searches)
    bare = {claim.unit.neuron: claim for claim in by_support(replace(FINDINGS, searches=searches))}
    assert "no random unit was ablated beside it" in bare[best.neuron].weak_points
    assert "no random unit was ablated beside it" not in claims[-1].weak_points


def test_a_search_that_hides_its_units_claims_nothing_of_them() -> None:
    """Suppressed units are in no answer."""
    hidden = tuple(replace(one, suppressed=True) for one in FINDINGS.searches)
    assert by_support(replace(FINDINGS, searches=hidden)) == ()


def test_the_strongest_of_a_kind_of_units_is_of_that_kind_where_it_was_searched() -> None:
    """`Head` counts heads alone; `neuron` says units in general where no hidden neuron was searched."""
    searched = FINDINGS.searches[0]
    weaker = replace(
        searched.agonists[0], neuron=Neuron.parse("n3.7"), estimate=searched.agonists[-1].estimate
    )
    assert searched.held_out is not None
    neurons = replace(
        searched,
        intervention=replace(searched.intervention, basis=Basis.MLP_HIDDEN),
        agonists=(weaker,),
        held_out=replace(searched.held_out, found=(HeldOutFlips(neuron=weaker.neuron, flips=35),)),
    )
    both = replace(FINDINGS, searches=(searched, neurons))
    first = strongest(FINDINGS)
    assert first is not None
    assert strongest(both, noun="neuron") == weaker
    assert strongest(both, noun="head") == strongest(FINDINGS, noun="neuron") == strongest(both) == first

"""Which claim about a unit is weakest: by hand."""

from __future__ import annotations

from dataclasses import replace

from findings_fixture import FINDINGS

from mecharule_ops.types import Regime


def test_a_claim_without_controls_or_below_its_bound_comes_first() -> None:
    """Taking the held-out flips of a search away moves its units up; each weak point is named."""
    claims = FINDINGS.by_support()
    points = [len(claim.weak_points) for claim in claims]
    assert points == sorted(points, reverse=True)
    assert all(claim.is_tau_agonist for claim in claims)
    best = claims[-1]
    searches = tuple(replace(one, held_out=None) for one in FINDINGS.searches)
    bare = {claim.neuron: claim for claim in replace(FINDINGS, searches=searches).by_support()}
    assert "no random unit was ablated beside it" in bare[best.neuron].weak_points
    assert "no random unit was ablated beside it" not in claims[-1].weak_points


def test_the_strongest_is_the_first_of_the_shown() -> None:
    """In each direction; none where nothing is shown."""
    for regime in (None, *Regime):
        shown = [unit for unit in FINDINGS.shown() if regime in (None, unit.search.regime)]
        assert FINDINGS.strongest(regime) == next(iter(shown), None)
    assert FINDINGS.strongest() is not None

"""Which claim is weakest, and when two units are told apart: by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from findings_fixture import FINDINGS

from mecharule_ops.questions.paired import Paired
from mecharule_ops.questions.support import by_support


def test_discordant_examples_decide_by_a_fair_coin() -> None:
    """By hand: 6 against 0 is 2 · 2⁻⁶; 3 against 3 and no discordant example say nothing."""
    assert Paired(both=9, first_only=6, second_only=0, n=20).p == pytest.approx(2 / 64)
    assert Paired(both=0, first_only=3, second_only=3, n=20).p == 1.0
    assert Paired(both=5, first_only=0, second_only=0, n=20).p == 1.0
    assert Paired(both=0, first_only=5, second_only=1, n=9).p == pytest.approx(2 * 7 / 64)


def test_only_examples_that_both_were_tested_on_count() -> None:
    """Flips of an example that one of them never saw are left out."""
    assert Paired.of({1, 2, 9}, {2, 3}, {1, 2, 3, 4}) == Paired(both=1, first_only=1, second_only=1, n=4)


def test_a_claim_without_controls_or_below_its_bound_comes_first() -> None:
    """Taking the controls of the best supported unit away moves it up; each weak point is named."""
    claims = by_support(FINDINGS)
    points = [len(claim.weak_points) for claim in claims]
    assert points == sorted(points, reverse=True)
    assert all(claim.agonist.is_tau_agonist for claim in claims)
    best = claims[-1].agonist
    searches = tuple(
        replace(one, controls=tuple(each for each in one.controls if each.neuron != best.neuron))
        for one in FINDINGS.searches
    )
    bare = {claim.agonist.neuron: claim for claim in by_support(replace(FINDINGS, searches=searches))}
    assert "no random unit was ablated beside it" in bare[best.neuron].weak_points
    assert "no random unit was ablated beside it" not in claims[-1].weak_points


def test_a_search_that_hides_its_units_claims_nothing_of_them() -> None:
    """Suppressed units are in no answer."""
    hidden = tuple(replace(one, suppressed=True) for one in FINDINGS.searches)
    assert by_support(replace(FINDINGS, searches=hidden)) == ()

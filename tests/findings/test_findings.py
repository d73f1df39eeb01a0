"""Findings: derived shares, the strict JSON round trip, recall, coverage, and what the controls show."""

import copy
import json
from dataclasses import replace

import pytest
from findings_fixture import ALPHA, FINDINGS, POSITIVE, estimate, node
from hypothesis import given
from hypothesis import strategies as st
from search_oracles import estimate as one_of

from mecharule_ops import errors, nodes, types
from mecharule_ops.findings.counts import SearchCost, UnitStrength, WholeLayer, dominance, recall_by_bound
from mecharule_ops.findings.records import from_json, to_json


def units(*strengths: int) -> list[UnitStrength]:
    """Units m0.0, m0.1, … flipping so many of 64 on D⁺ and none on D⁻."""
    return [
        UnitStrength(neuron=types.Neuron(types.Basis.MLP_OUT, 0, channel), estimate=estimate(flips, 0))
        for channel, flips in enumerate(strengths)
    ]


def test_cost_shares_are_those_worked_by_hand() -> None:
    """10 queries over 8 units: 10/8 of N and 10/15 of 2N − 1; 60 forwards against 8 · 12."""
    cost = SearchCost(queries=10, example_forwards=60, candidates=8, slice_examples=12)
    assert cost.share_of_n == 10 / 8
    assert cost.share_of_2n_minus_1 == 10 / 15
    assert cost.share_of_exhaustive_forwards == 60 / 96


def test_json_round_trip_gives_equal_findings_and_equal_bytes() -> None:
    text = to_json(FINDINGS)
    assert from_json(text) == FINDINGS
    assert to_json(from_json(text)) == text


@pytest.mark.parametrize(
    ("spoil", "named"),
    [
        (lambda found: found.update(extra=1), "extra"),
        (lambda found: found.pop("seed"), "seed"),
        (lambda found: found.update(tau="0.2"), "Findings.tau"),
        (lambda found: found.update(seed=True), "Findings.seed"),
        (lambda found: found.update(task_score={"count": 5, "n": 4}), "Findings.task_score"),
        (lambda found: found["task_settings"].update(high=None), "Findings.task_settings"),
        (lambda found: found["searches"][0].update(regime=2), "SearchOutcome.regime"),
        (lambda found: found["searches"][0]["strongest"].update(neuron="x1.2"), "m4.1234"),
    ],
)
def test_json_that_does_not_fit_is_refused_by_the_name_of_its_field(spoil: object, named: str) -> None:
    document = json.loads(to_json(FINDINGS))
    spoil(document["findings"])
    with pytest.raises(errors.UsageError) as caught:
        from_json(json.dumps(document))
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "other/9", "findings": {}}'])
def test_text_that_is_no_findings_is_a_usage_error(text: str) -> None:
    with pytest.raises(errors.UsageError, match="expected"):
        from_json(text)


def spoilt(value: object, field: str, wrong: object) -> object:
    """A copy with one field of a wrong type, past the checks of its constructor."""
    twin = copy.copy(value)
    object.__setattr__(twin, field, wrong)
    return twin


def test_a_value_of_a_foreign_type_is_refused_on_the_way_out() -> None:
    with pytest.raises(errors.UsageError, match=r"Findings\.alpha: expected float"):
        to_json(spoilt(FINDINGS, "alpha", "0.05"))
    with pytest.raises(errors.UsageError, match="expected a finite"):
        to_json(replace(FINDINGS, task_settings={"noise": float("nan")}))


def test_enums_and_units_are_read_by_exact_value() -> None:
    """`true` is no regime although True == 1, and an enum or unit of another kind is not written."""
    document = json.loads(to_json(FINDINGS))
    assert document["findings"]["searches"][0]["regime"] == 1
    assert document["findings"]["searches"][0]["strongest"]["neuron"] == "a20.h8"
    document["findings"]["searches"][0]["regime"] = True
    with pytest.raises(errors.UsageError, match="expected one of 1, 0, got True"):
        from_json(json.dumps(document))
    for field, wrong in (("neuron", "a20.h8"), ("regime", types.Basis.MLP_OUT)):
        search = spoilt(POSITIVE, "agonists", (spoilt(POSITIVE.agonists[0], field, wrong),))
        with pytest.raises(errors.UsageError, match=f"Agonist.{field}"):
            to_json(spoilt(FINDINGS, "searches", (search,)))


@given(
    st.lists(st.integers(0, 64), max_size=20), st.sets(st.integers(0, 19)), st.sampled_from([0.1, 0.2, 0.6])
)
def test_recall_is_of_the_units_the_paper_includes(flips: list[int], found: set[int], tau: float) -> None:
    exhaustive = units(*flips)
    localized = {types.Neuron(types.Basis.MLP_OUT, 0, channel) for channel in found}
    included = [unit.neuron for unit in exhaustive if unit.estimate.ucb(ALPHA) >= tau]
    told = recall_by_bound(exhaustive, localized, tau, ALPHA)
    assert (told.count, told.n) == (sum(unit in localized for unit in included), len(included))


def test_a_layer_is_named_by_what_it_flips_at_least_not_by_the_better_half() -> None:
    """A table of 26 right answers in halves of 3 and 15: layer 23 flips 2 of 3 and 3 of 15, layer 20 0 and 8."""
    whole = tuple(
        WholeLayer(layer=layer, estimate=one_of(few, 3, many, 15))
        for layer, few, many in ((20, 0, 8), (23, 2, 3))
    )
    assert replace(FINDINGS.searches[0], whole_layers=whole).strongest_layer.layer == 20


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
    for regime in (None, *types.Regime):
        shown = [unit for unit in FINDINGS.shown() if regime in (None, unit.search.regime)]
        assert FINDINGS.strongest(regime) == next(iter(shown), None)
    assert FINDINGS.strongest() is not None


def node_of(number: int, parent: int | None, size: int, flips: int, verdict: nodes.Verdict) -> nodes.Node:
    return replace(node(number, parent, size, verdict, 0), estimate=estimate(flips, 0, 10))


SEARCHED = [
    node_of(0, None, 8, 5, nodes.Verdict.SPLIT),
    node_of(1, 0, 4, 6, nodes.Verdict.SPLIT),
    node_of(2, 0, 4, 1, nodes.Verdict.PRUNED),
    node_of(3, 1, 2, 1, nodes.Verdict.PRUNED),
    node_of(4, 1, 1, 4, nodes.Verdict.KEPT),
    node_of(5, 1, 1, 3, nodes.Verdict.KEPT),
]


def test_dominance_by_hand() -> None:
    """Inside 8 units the best unit flips 4, and inside the four too; one that was pruned has none."""
    assert [tuple(one) for one in dominance(SEARCHED)] == [(SEARCHED[0], 0.4), (SEARCHED[1], 0.4)]
    assert dominance([SEARCHED[0], SEARCHED[2]]) == []

"""Units that flip 0→1 without their names, and certificates without their texts."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from findings_fixture import FINDINGS, NEGATIVE, POSITIVE

from mecharule_ops.errors import UsageError
from mecharule_ops.events import AgonistFound, NodeTested
from mecharule_ops.findings.records import from_json, to_json
from mecharule_ops.findings.suppression import Suppression
from mecharule_ops.pages import render_html, render_markdown, render_text
from mecharule_ops.types import Basis, Neuron, Regime

HIDE = Suppression(b"a key")
BOTH = replace(FINDINGS, searches=(NEGATIVE, replace(POSITIVE, regime=Regime.BASELINE_NEGATIVE)))
"""A search of 1→0 without a unit, and one of 0→1 with several."""


def test_a_hidden_unit_prints_parses_and_is_no_unit_of_a_model() -> None:
    """It keeps basis and layer; the number depends on the key alone and is the same every time."""
    unit = Neuron.parse("m4.1234")
    hidden = HIDE.hidden(unit)
    assert (hidden.basis, hidden.layer, hidden.is_hidden) == (Basis.MLP_OUT, 4, True)
    assert Neuron.parse(str(hidden)) == hidden == HIDE.hidden(unit)
    assert Suppression(b"other").hidden(unit) != hidden
    assert "1234" not in str(hidden).split("hidden")[0]
    assert not unit.is_hidden
    for text in ("m4.hidden", "m4.-5", "a1.hhidden3"):
        with pytest.raises(UsageError):
            Neuron.parse(text)


def test_findings_hide_one_direction_and_keep_every_count() -> None:
    """Names of 0→1 disappear from JSON and every report; numbers, rules and the other direction stay."""
    hidden = HIDE.findings(BOTH)
    harmless, risky = hidden.searches
    assert from_json(to_json(hidden)) == hidden
    assert harmless == BOTH.searches[0]
    assert risky.suppressed
    for shown, true in ((risky.agonists, POSITIVE.agonists), (risky.anchored, POSITIVE.anchored)):
        units = [each.neuron for each in shown]
        assert units == sorted(units), "the order of true names tells of them"
        assert {replace(each, neuron=HIDE.hidden(each.neuron)) for each in true} == {*shown}
    assert [unit.evidence for unit in hidden.shown()] == [unit.evidence for unit in BOTH.shown()]
    secret = [str(agonist.neuron) for agonist in POSITIVE.agonists]
    renderers = (to_json, render_text, render_markdown, render_html)
    for render in renderers:
        assert [unit for unit in secret if re.search(rf"{re.escape(unit)}\b", render(hidden))] == []
        assert [unit for unit in secret if re.search(rf"{re.escape(unit)}\b", render(BOTH))] != []


def test_events_of_one_direction_are_hidden_alike() -> None:
    """A unit has one number in its test and in its finding; the other direction's events are untouched."""
    found = AgonistFound(
        search="cha:0:m4",
        regime=0,
        neuron="m4.7",
        strength=0.5,
        ucb=0.7,
        signed_selectivity=0.1,
        is_tau_agonist=True,
    )
    tested = NodeTested(
        search="cha:0:m4",
        node=3,
        parent=0,
        depth=1,
        size=1,
        units="m4.7",
        associated_flips=1,
        associated_n=2,
        unrelated_flips=0,
        unrelated_n=2,
        ucb=0.9,
        verdict="kept",
    )
    name = str(HIDE.hidden(Neuron.parse("m4.7")))
    assert HIDE.event(found) == replace(found, neuron=name)
    assert HIDE.event(tested) == replace(tested, units=name)
    assert HIDE.event(replace(tested, channels=(7,), begin=1, end=2)) == replace(tested, units=name)
    group = replace(tested, units="m4.7 … m4.9", size=3)
    assert HIDE.event(group).units == f"{name} … {HIDE.hidden(Neuron.parse('m4.9'))}"  # type: ignore[attr-defined]
    for other in (replace(found, regime=1), replace(tested, search="cha:1:m4")):
        assert HIDE.event(other) == other

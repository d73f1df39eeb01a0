"""The stages of the method as tools on a stored run: score, extract, slices, candidates, anchor, control."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from bundled_run import opened

from mecharule_ops.errors import UsageError
from mecharule_ops.predicates.table import score_predicates
from mecharule_ops.run.controlling import beside, control_records, units_beside
from mecharule_ops.saying.control_facts import claims_words
from mecharule_ops.store import keys
from mecharule_ops.store.keys import Artefact
from mecharule_ops.thresholds import RANDOM_UNITS
from mecharule_ops.types import Neuron, Regime
from tools.explain import CERTIFIED
from tools.registry import call


@pytest.fixture(autouse=True)
def _its_folder(copied_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MECHARULE_RUNS", str(copied_run.parent))


def _data(name: str, **given: object) -> Any:
    return call(name, given).as_json


def test_scores_are_those_of_the_train_records(copied_run: Path) -> None:
    """Two routes to one AUC; a refusal is a row with its reason; without a predicate it is a usage error."""
    with opened(copied_run, read_only=True) as run:
        fires = (run.columns["a"] > run.columns["b"])[run.train]
        (true,) = score_predicates(fires[:, None], run.labels[run.train])
    first, second = _data("score", predicates="a > b; nosuch > 3", run="last")["rows"]
    assert first["AUC"] == f"{true.auc:.3f}"
    assert "expected a column" in second["refused because"]
    with pytest.raises(UsageError, match="got none"):
        call("score", {"run": "last", "predicates": " ; "})


def test_extracted_clauses_never_see_the_held_out_records(copied_run: Path) -> None:
    """With the held-out outcomes turned round, clauses and rule are the same."""
    before = call("extract", {"run": "last", "limit": 5})
    with opened(copied_run) as run:
        rows = [dict(row) for row in cast(list[Any], run.store.get(Artefact("records")))]
        for row, train in zip(rows, run.train, strict=True):
            row["label"] = row["label"] if train else not row["label"]
        run.store.put(Artefact("records"), rows)
    after = call("extract", {"run": "last", "limit": 5})
    assert before.data["rule"] == after.data["rule"]
    assert before.data["rows"] == after.data["rows"]
    assert before.data["rows"]


def test_slices_are_those_of_the_search(copied_run: Path) -> None:
    """Sizes, rule and prompts."""
    (row,) = _data("slices")["slices"]
    with opened(copied_run, read_only=True) as run:
        made = run.slices(Regime.BASELINE_POSITIVE)
    assert (row["associated"]["n"], row["unrelated"]["n"]) == (len(made.associated), len(made.unrelated))
    assert (row["rule"], row["pairs"]) == (made.rule, len(made.pairs))
    assert len(row["associated"]["prompts"]) == 5


def test_candidates_fall_by_their_scores(copied_run: Path) -> None:
    """All 256, by |score|, with what the search made of them; without scores in the order of channels."""
    rows = _data("candidates", limit=300)["rows"]
    unasked = [row["unit"] for row in rows if row["score"] == "not asked"]
    assert {row["rank"] for row in rows} == {"–"}
    assert unasked == [f"m{layer}.{channel}" for layer in range(2) for channel in range(128)]
    with opened(copied_run) as run:
        scores = np.random.default_rng(0).normal(size=(2, 128))
        run.store.put(keys.attribution(run.config.bases[0], Regime.BASELINE_POSITIVE), scores)
    rows = _data("candidates", limit=300)["rows"]
    strength = [abs(float(row["score"])) for row in rows]
    assert len(strength) == 256
    assert strength == sorted(strength, reverse=True)
    with opened(copied_run, read_only=True) as run:
        found = {str(agonist.neuron) for agonist in run.findings.searches[0].agonists}
    assert {row["unit"] for row in rows if row["search"]} == found


def test_anchoring_gives_the_runs_own_rule_and_makes_one_where_there_is_none(copied_run: Path) -> None:
    """What was anchored costs nothing and is equal; another unit has a price first, then a rule of its own flips."""
    with opened(copied_run, read_only=True) as run:
        known = run.findings.searches[0].anchored[0]
        eligible = run.eligible(Regime.BASELINE_POSITIVE)
    own = _data("anchor", run="last", neuron=str(known.neuron))
    assert own[f"unit.{known.neuron}.anchored.rule"]["text"] == known.rule
    assert _data("anchor", run="last", neuron=str(known.neuron), estimate=True)["price"] == {
        "example_forwards": 0,
        "seconds": 0.0,
    }
    price = _data("anchor", run="last", neuron="m0.0", estimate=True)["price"]
    assert price["example_forwards"] == len(eligible)
    made = _data("anchor", run="last", neuron="m0.0", yes=True)
    with opened(copied_run) as run:
        engine = run.engine(run.intervention(Neuron.parse("m0.0").basis))
        flips = int(np.count_nonzero(~engine.labels([(Neuron.parse("m0.0"),)], eligible.tolist())[0]))
        assert run.cost.example_forwards == 0
    assert made["unit.m0.0.anchored.flips"] == {"flips": flips, "n": len(eligible)}
    assert _data("anchor", run="last", neuron="m0.0", estimate=True)["price"]["example_forwards"] == 0


def test_the_tool_says_what_the_report_says_and_certifies_the_random_units(copied_run: Path) -> None:
    """Of a controlled unit the report's own words, at no price."""
    with opened(copied_run, read_only=True) as run:
        reported = run.findings.searches[0].controls[0]
    asked = {"run": "last", "neuron": str(reported.neuron), "parts": "controls"}
    assert "nothing" in call("explain", asked | {"estimate": True}).text
    assert _data("explain", **asked)[f"unit.{reported.neuron}.controls.claims"] == claims_words(reported)


def test_controls_that_are_missing_are_made_once_and_the_random_units_certified(copied_run: Path) -> None:
    """The same draw and function as the run's, of as many units as allow a p, corrected for no other unit; kept."""
    with opened(copied_run, read_only=True) as run:
        controlled = {ran.neuron for ran in run.findings.searches[0].controls}
        records = control_records(run, Regime.BASELINE_POSITIVE)
        unit = next(
            one for one in (Neuron.parse(f"m1.{channel}") for channel in range(9)) if one not in controlled
        )
        drawn = units_beside(run, unit, RANDOM_UNITS)[0]
    asked = {"run": "last", "neuron": str(unit), "parts": "controls"}
    assert "ablated completions" in call("explain", asked | {"estimate": True}).text
    data = _data("explain", **asked, yes=True)
    counts = data[f"unit.{unit}.controls.counts"]
    with opened(copied_run) as run:
        certificate = run.store.certificate(str(data[f"unit.{unit}.controls.certificate"]))
        assert run.config.controls < RANDOM_UNITS
        (made,) = beside(run, [unit], Regime.BASELINE_POSITIVE, most=RANDOM_UNITS)
    assert counts["random_units"]["count"] == made.basis.n - made.basis.count
    assert counts["random_units"]["corrected_over"] <= 1
    assert certificate.kind == "control"
    assert certificate.units == tuple(map(str, drawn[:CERTIFIED]))
    assert {total.n for total in certificate.totals} == {len(records)}
    assert call("verify", {"what": certificate.id}).exit_code == 0
    assert "nothing" in call("explain", asked | {"estimate": True}).text
    assert _data("explain", **asked)[f"unit.{unit}.controls.counts"] == counts

"""The stages of the method as tools on a stored run: score, extract, slices, candidates, anchor, control."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from bundled_run import Ask, opened

from agent.toolbox import Toolbox, schema_of
from mecharule_ops import errors, types
from mecharule_ops.facts.control_facts import selective_words
from mecharule_ops.predicates.table import score_predicates
from mecharule_ops.rules import algebra, matthews
from mecharule_ops.run.controlling import beside
from mecharule_ops.run.tabulating import Part, columns_of, drawn, fires
from mecharule_ops.store import keys
from mecharule_ops.store.keys import Artefact
from tools.registry import TOOLS


def test_scores_are_those_of_the_train_records(copied_run: Path, ask: Ask) -> None:
    """Two routes to one AUC; a refusal is a row with its reason; without a predicate it is a usage error."""
    with opened(copied_run, read_only=True) as run:
        fires = (run.columns["a"] > run.columns["b"])[run.train]
        (true,) = score_predicates(fires[:, None], run.labels[run.train])
    scored = ask("score", predicates="a > b; nosuch > 3; a > -5")
    first, second, constant = (
        scored.as_json[f"success.score.{text}"] for text in ("a > b", "nosuch > 3", "a > -5")
    )
    assert first["auc"] == true.auc
    assert (first["n"], first["n_elsewhere"]) == (int(fires.sum()), int((~fires).sum()))
    assert first["hits"] == int((fires & run.labels[run.train]).sum())
    assert "expected a column" in second["refused"]
    assert "holds on some train records" in constant["refused"]
    assert scored.exit_code == 2
    with pytest.raises(errors.UsageError, match="got none"):
        ask("score", predicates=" ; ")


def test_extracted_clauses_never_see_the_held_out_records(copied_run: Path, ask: Ask) -> None:
    """With the held-out outcomes turned round, clauses and rule are the same."""
    before = ask("extract", limit=5).as_json
    with opened(copied_run) as run:
        rows = [dict(row) for row in cast(list[Any], run.store.get(Artefact("records")))]
        for row, train in zip(rows, run.train, strict=True):
            row["label"] = row["label"] if train else not row["label"]
        run.store.put(Artefact("records"), rows)
    after = ask("extract", limit=5).as_json
    assert before["success.extracted"] == after["success.extracted"]
    assert before["rows"] == after["rows"]
    assert before["rows"]


def test_rules_of_a_units_flips_are_learned_on_them_over_the_columns_asked_among_the_records_asked(
    copied_run: Path, ask: Ask, unit: str
) -> None:
    """The rule's own train MCC against the flips, once more by hand; what reads another column is left out."""
    given = {"unit": unit, "columns": "a, op", "among": "b > 20", "limit": 500}
    told = ask("extract", **given).as_json
    found = told[f"unit.{unit}.extracted"]
    with opened(copied_run, read_only=True) as run:
        places = drawn(run, types.Regime.BASELINE_POSITIVE, Part.TRAIN)
        places = places[run.observed.columns["b"][places] > 20]
        flips = run.flips([(types.Neuron.parse(unit),)], places, types.Regime.BASELINE_POSITIVE)[0]
        holds = fires(run, algebra.Rule.parse(found["rule"]))[places]
    assert found["records"] == len(places)
    assert found["train_mcc"] == pytest.approx(matthews.mcc(holds, flips))
    assert not any(re.search(r"\b(b|expected|answer)\b", row["clause"]) for row in told["rows"])
    scored = ask("score", predicates="op == '-'", unit=unit).as_json[f"unit.{unit}.score.op == '-'"]
    counted = ask("tabulate", units=unit, where="op == '-'").as_json[f"unit.{unit}.train.op == '-'"]
    assert (scored["hits"], scored["n"]) == (counted["flips"], counted["n"])
    with pytest.raises(errors.UsageError, match="expected columns of"):
        ask("extract", **{**given, "columns": "c"})


def test_a_column_of_ones_own_is_kept_said_to_be_whose_and_read_by_every_condition(
    copied_run: Path, ask: Ask, unit: str
) -> None:
    """By arithmetic, by a condition over it, by labels; a name of the task's, two ways and stray ids are refused."""
    with opened(copied_run, read_only=True) as run:
        a, b = run.observed.columns["a"], run.observed.columns["b"]
        labelled = {str(record.example.id): "odd" for record in run.observed.records if record.example.id % 2}
    ask("column", name="total", expression="a + b")
    told = ask("column", name="large", expression="total > 300", made_by="mock")
    assert told.text.startswith("Column large of mock, by the expression total > 300")
    ask("column", name="parity", labels=json.dumps(labelled))
    with opened(copied_run, read_only=True) as run:
        columns, places = columns_of(run), drawn(run, types.Regime.BASELINE_POSITIVE, Part.TRAIN)
    assert (columns["total"] == a + b).all()
    assert (columns["large"] == (a + b > 300)).all()
    assert (columns["parity"] == "odd").sum() == len(labelled)
    asked = {"units": unit, "where": "large and parity == 'odd'"}
    counted = ask("tabulate", **asked).as_json[f"unit.{unit}.train.{asked['where']}"]
    assert counted["n"] == int((columns["large"] & (columns["parity"] == "odd"))[places].sum())
    for wrong, words in (
        ({"name": "a", "expression": "b"}, "that no column has"),
        ({"name": "x"}, "one of them"),
        ({"name": "x", "expression": "a +"}, "one expression"),
        ({"name": "x", "labels": '{"none": 1}'}, "ids of the run's records"),
        ({"name": "x", "labels": "no-such-file"}, "expected labels"),
    ):
        with pytest.raises(errors.UsageError, match=words):
            ask("column", **wrong)


def test_slices_are_those_of_the_search(copied_run: Path, ask: Ask) -> None:
    """Sizes, rule and prompts."""
    told = ask("slices").as_json
    with opened(copied_run, read_only=True) as run:
        made = run.slices(types.Regime.BASELINE_POSITIVE)
    kept = told["slices.1.associated"], told["slices.1.unrelated"]
    assert [side["n"] for side in kept] == [len(made.associated), len(made.unrelated)]
    assert (told["slices.1.rule"], told["slices.1.pairs"]["pairs"]) == (made.rule, len(made.pairs))
    assert len(kept[0]["prompts"]) == 5
    assert ask("slices", size=8).as_json["slices.1.associated"]["n"] == 8
    assert ask("slices").as_json == told


def test_candidates_fall_by_their_scores(copied_run: Path, ask: Ask) -> None:
    """All 256, by |score|, with what the search made of them; without scores in the order of channels."""
    rows = ask("candidates", limit=300).as_json["rows"]
    unasked = [row["unit"] for row in rows if row["score"] is None]
    assert {row["rank"] for row in rows} == {None}
    assert unasked == [f"m{layer}.{channel}" for layer in range(2) for channel in range(128)]
    with opened(copied_run) as run:
        scores = np.random.default_rng(0).normal(size=(2, 128))
        run.store.put(keys.attribution(run.config.bases[0], types.Regime.BASELINE_POSITIVE), scores)
    rows = ask("candidates", limit=300).as_json["rows"]
    strength = [abs(float(row["score"])) for row in rows]
    assert len(strength) == 256
    assert strength == sorted(strength, reverse=True)
    with opened(copied_run, read_only=True) as run:
        found = {str(agonist.neuron) for agonist in run.findings.searches[0].agonists}
    assert {row["unit"] for row in rows if row["found"]} == found


def test_anchoring_gives_the_runs_own_rule_and_makes_one_where_none_is(copied_run: Path, ask: Ask) -> None:
    """What was anchored costs nothing and is equal; another unit has a price first, then a rule of its own flips."""
    with opened(copied_run, read_only=True) as run:
        known = run.findings.searches[0].anchored[0]
        eligible = run.eligible(types.Regime.BASELINE_POSITIVE)
    own = ask("anchor", neuron=str(known.neuron)).as_json
    assert own[f"unit.{known.neuron}.anchored.rule"]["rule"] == str(known.rule)
    free, price = (
        ask("anchor", neuron=one, estimate=True).as_json["price"] for one in (str(known.neuron), "m0.0")
    )
    assert free == {"example_forwards": 0, "seconds": 0.0}
    assert price["example_forwards"] == len(eligible)
    made = ask("anchor", neuron="m0.0").as_json
    with opened(copied_run) as run:
        engine = run.engine(run.intervention(types.Neuron.parse("m0.0").basis))
        flips = int(np.count_nonzero(~engine.labels([(types.Neuron.parse("m0.0"),)], eligible.tolist())[0]))
        assert run.cost.example_forwards == 0
    assert made["unit.m0.0.anchored.flips"] == {"flips": flips, "n": len(eligible)}
    assert ask("anchor", neuron="m0.0", estimate=True).as_json["price"]["example_forwards"] == 0


def test_controls_are_the_reports_own_or_made_once(copied_run: Path, ask: Ask) -> None:
    """Of a controlled unit the report's own words, at no price; else the same draw and function as the run's; kept."""
    with opened(copied_run, read_only=True) as run:
        reported, *others = run.findings.searches[0].controls
        controlled = {str(ran.neuron) for ran in (reported, *others)}
    unit = next(name for name in (f"m1.{channel}" for channel in range(9)) if name not in controlled)
    asked = {"neuron": str(reported.neuron), "parts": "controls"}
    assert "nothing" in ask("explain", **asked, estimate=True).text
    assert f"Controls ({selective_words(reported)})" in " ".join(ask("explain", **asked).text.split())
    asked, key = {"neuron": unit, "parts": "controls"}, f"unit.{unit}.controls.counts"
    assert "ablated completions" in ask("explain", **asked, estimate=True).text
    counts = ask("explain", **asked).as_json[key]
    with opened(copied_run) as run:
        (made,) = beside(run, [types.Neuron.parse(unit)], types.Regime.BASELINE_POSITIVE, run.config.controls)
    assert counts["random_units"]["count"] == made.basis.n - made.basis.count
    assert "nothing" in ask("explain", **asked, estimate=True).text
    assert ask("explain", **asked).as_json[key] == counts


def test_a_model_starts_five_stages_with_other_settings(
    copied_run: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RuleSHAP, spectral compression, EAP-IG, CHA, anchoring: each by an offered tool, with arguments it may give."""
    box, started = Toolbox(str(copied_run)), list[list[str]]()

    def begun(words: Sequence[str]) -> str:
        started.append([*words])
        return "f00d"

    monkeypatch.setattr("tools.runs.start_job", begun)
    stages: tuple[tuple[str, dict[str, object]], ...] = (
        ("extract", {"columns": "a, b", "limit": 3}),
        ("slices", {"size": 8}),
        ("run", {"attribution": "always", "given": "m0.3"}),
        ("run", {"search": "cha", "tau": 0.3}),
        ("anchor", {"neuron": "m0.0"}),
    )
    for tool, given in stages:
        assert given.keys() <= schema_of(TOOLS[tool].arguments)["properties"].keys()
        assert box.result(tool, given)
    first, second = started
    assert first[2:] == ["--set=attribution=always", "--set=given=m0.3"]
    assert second[2:] == ["--set=tau=0.3", "--set=search=cha"]

"""From a question to verdicts on held-out records, without a model and with one."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from bundled_run import QUICK

from agent.hypotheses import MOST, investigate, investigated
from agent.verbs.runner import start
from mecharule_ops import config, errors
from mecharule_ops.events import Event, Notice
from mecharule_ops.run.opening import findings_of, opened
from mecharule_ops.run.tabulating import Part, drawn
from mecharule_ops.store.keys import PROPOSALS
from mecharule_ops.store.ledger import Claim, Ledger
from tools.registry import call


def _unit(path: Path) -> str:
    with opened(str(path)) as run:
        return str(findings_of(run).units()[0].neuron)


def _script(path: Path, *replies: dict[str, Any]) -> str:
    path.write_text(json.dumps({"replies": replies}))
    return f"mock:{path}"


def _call(name: str, **arguments: str) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


def _entries(path: Path) -> list[Any]:
    with opened(str(path)) as run:
        return [one for one in Ledger(run.store).entries() if isinstance(one.prediction, Claim)]


def test_claims_are_screened_on_train_registered_and_decided_once_on_all_held_out_records(
    copied_run: Path,
) -> None:
    unit, told = _unit(copied_run), list[str]()
    result = investigate(str(copied_run), f"when does {unit} flip?", told.append)
    entries = _entries(copied_run)
    assert 1 <= len(entries) <= MOST
    assert sum(line.startswith("train: ") for line in told) == len(entries)
    with opened(str(copied_run)) as run:
        held_out = len(drawn(run, findings_of(run).searches[0].regime, Part.HELD_OUT))
    assert all(one.outcome is not None and one.outcome.n == held_out for one in entries)
    again = investigate(str(copied_run), f"when does {unit} flip?")
    assert [one.outcome for one in _entries(copied_run)] == [one.outcome for one in entries], "decided once"
    assert again.text.splitlines()[0] == result.text.splitlines()[0]


def test_a_condition_that_the_question_names_is_the_claim(copied_run: Path) -> None:
    investigate(str(copied_run), f"does {_unit(copied_run)} flip more where op == '-'?")
    (entry,) = _entries(copied_run)
    assert "op == '-'" in str(entry)
    for asked in ("where it rains", "when it rains"):
        with pytest.raises(errors.UsageError, match="run's columns, got 'it rains'; nothing was tested"):
            investigate(str(copied_run), f"does {_unit(copied_run)} flip more {asked}?")
    with pytest.raises(errors.UsageError, match="a question that names a unit"):
        investigate(str(copied_run), "do neurons of the MLP store carries?")
    assert len(_entries(copied_run)) == 1


def test_a_purse_that_is_too_small_ends_it_before_anything_is_registered(
    copied_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.hypotheses.forwards_missing", lambda *a: 500)
    with pytest.raises(errors.BudgetSpent, match="`--seconds` allows more"):
        investigate(str(copied_run), f"when does {_unit(copied_run)} flip?", seconds=-1.0)
    assert not _entries(copied_run)


def test_the_whole_job_with_a_scripted_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Propose, run, look at train records, register, decide, answer with the verdict's facts, verify; headless."""
    monkeypatch.setenv("MECHARULE_RUNS", str(tmp_path))
    told: list[Event] = []
    proposes = _script(tmp_path / "proposes.json", {"json": {"predicates": ["op=='-' and b>60", "a > 9999"]}})
    start(config.make_config(**{**QUICK, "proposals": 1, "proposer": proposes}), told.append)
    (path,) = tmp_path.glob("*.mecharule")
    with opened(str(path)) as run:
        assert "holds(op == '-' and b > 60)" in run.vocabulary["kept"]
    unit, where = _unit(path), "holds(op == '-' and b > 60)"
    asks = _script(
        tmp_path / "asks.json",
        {"unless": ["[tool]"], "calls": [_call("tabulate", units=unit, where=where)]},
        {"unless": ["Claim "], "calls": [_call("register", neuron=unit, where=where)]},
        {
            "unless": ["difference +", "difference -"],
            "find": "Claim (?P<claim>\\w+)",
            "calls": [_call("decide", claims="$claim")],
        },
        {"find": "\\[(?P<id>f\\d+)\\] [^\\n]*needed", "text": "It was decided [$id]."},
    )
    result = investigated(str(path), "does it flip more where the sum is large?", llm=asks)
    assert [one["tool"] for one in result.data["tools"]] == ["tabulate", "register", "decide"]  # type: ignore[attr-defined]
    assert str(result.data["answer"]).startswith("It was decided [f")
    assert not result.data["marks"]
    assert _entries(path)[0].outcome is not None
    verified = call("verify", {"run": str(path), "all": True})
    assert verified.exit_code == 0, verified.text
    assert "match" in verified.text


def test_of_each_proposal_is_told_what_became_of_it(
    quick_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Taken over from the first run is what it observed and ablated; the vocabulary is made anew."""
    first = shutil.copy(quick_run, tmp_path / "fa57.mecharule")
    monkeypatch.setenv("MECHARULE_RUNS", str(tmp_path))
    told: list[Event] = []
    texts = ["op=='-' and b>60", "a > 9999", "1 +"]
    proposes = _script(tmp_path / "proposes.json", {"json": {"predicates": texts}})
    start(config.make_config(**{**QUICK, "proposals": 1, "proposer": proposes}), told.append, source="fa57")
    (path,) = set(tmp_path.glob("*.mecharule")) - {first}
    assert any(f"show {path.stem} --section rules" in one.text for one in told if isinstance(one, Notice))
    facts = {
        one.value["predicate"]: one for one in call("show", {"run": str(path), "section": "rules"}).facts[2:]
    }  # type: ignore[index, call-overload]
    assert [*facts] == ["holds(op == '-' and b > 60)", "a > 9999", "1 +"]
    assert "refused (constant: true on 0 of 112 train records)" in facts["a > 9999"].sentence
    assert "refused (" in facts["1 +"].sentence
    with opened(str(path), write=True) as run:
        (rule, *_) = [rule for search in run.findings.searches for rule in search.rules]
        assert rule.rule is not None
        accepted = sorted(rule.rule.predicates)
        run.store.put(PROPOSALS, {**run.store.get(PROPOSALS), "accepted": accepted})
    read = call("show", {"run": str(path), "section": "rules"}).facts[2:]
    assert all(
        re.search(f"accepted, in .*rules of {rule.neuron}", one.sentence) for one in read[: len(accepted)]
    )


def test_a_model_that_fails_decides_nothing_and_is_a_fault(copied_run: Path, tmp_path: Path) -> None:
    script = _script(tmp_path / "script.json", {"fault": "mock refused the key"})
    with pytest.raises(errors.ModelUnavailable, match="refused the key"):
        investigated(str(copied_run), "when does it flip?", llm=script)
    assert not _entries(copied_run)


def test_a_claim_that_was_looked_at_before_is_said_to_be_no_prediction(copied_run: Path) -> None:
    unit = _unit(copied_run)
    looked = {"run": str(copied_run), "units": unit, "where": "op == '-'", "records": "held-out", "yes": True}
    call("tabulate", looked)
    result = investigate(str(copied_run), f"does {unit} flip more where op == '-'?")
    assert "so what is decided on them is no prediction" in result.text

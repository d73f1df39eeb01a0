"""From a question to verdicts on held-out records, without a model and with one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent.hypotheses import MOST, investigate, investigated
from mecharule_ops.errors import BudgetSpent, ModelUnavailable, UsageError
from mecharule_ops.run.opening import findings_of, opened
from mecharule_ops.run.tabulating import Part, drawn
from mecharule_ops.store.ledger import Claim, Ledger
from tools.registry import call


def _unit(path: Path) -> str:
    with opened(str(path)) as run:
        return str(findings_of(run).units()[0].neuron)


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
    with pytest.raises(
        UsageError, match="expected a condition over the run's columns after where, got 'it rains'"
    ):
        investigate(str(copied_run), f"does {_unit(copied_run)} flip more where it rains?")


def test_a_purse_that_is_too_small_ends_it_before_anything_is_registered(
    copied_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.hypotheses.forwards_missing", lambda *a: 500)
    with pytest.raises(BudgetSpent, match="`--seconds` allows more"):
        investigate(str(copied_run), "when does it flip?", seconds=-1.0)
    assert not _entries(copied_run)


def test_the_whole_job_with_a_scripted_model(copied_run: Path, tmp_path: Path) -> None:
    """Look at train records, register, decide, answer with the verdict's facts, verified by the check."""
    unit = _unit(copied_run)
    script = tmp_path / "script.json"
    claim = {"neuron": unit, "where": "op == '-'"}
    replies = [
        {
            "unless": ["[tool]"],
            "calls": [{"name": "tabulate", "arguments": {"units": unit, "where": "op == '-'"}}],
        },
        {"unless": ["Claim "], "calls": [{"name": "register", "arguments": claim}]},
        {
            "unless": ["difference +", "difference -"],
            "find": "Claim (?P<claim>\\w+)",
            "calls": [{"name": "decide", "arguments": {"claims": "$claim"}}],
        },
        {"find": "\\[(?P<id>f\\d+)\\] [^\\n]*needed", "text": "It was decided [$id]."},
    ]
    script.write_text(json.dumps({"replies": replies}))
    result = investigated(str(copied_run), "does it flip more on subtractions?", llm=f"mock:{script}")
    assert [one["tool"] for one in result.data["tools"]] == ["tabulate", "register", "decide"]  # type: ignore[attr-defined]
    assert str(result.data["answer"]).startswith("It was decided [f")
    assert not result.data["marks"]
    assert _entries(copied_run)[0].outcome is not None


def test_a_model_that_fails_decides_nothing_and_is_a_fault(copied_run: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"replies": [{"fault": "mock refused the key"}]}))
    with pytest.raises(ModelUnavailable, match="refused the key"):
        investigated(str(copied_run), "when does it flip?", llm=f"mock:{script}")
    assert not _entries(copied_run)


def test_a_claim_that_was_looked_at_before_is_said_to_be_no_prediction(copied_run: Path) -> None:
    unit = _unit(copied_run)
    looked = {"run": str(copied_run), "units": unit, "where": "op == '-'", "records": "held-out", "yes": True}
    call("tabulate", looked)
    result = investigate(str(copied_run), f"does {unit} flip more where op == '-'?")
    assert "so what is decided on them is no prediction" in result.text

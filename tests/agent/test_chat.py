"""Questions about a run: offline, with a model, when it fails, and what is remembered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent.chat import ask, condition_of
from agent.prose import MARK
from mecharule_ops.errors import ModelUnavailable, UsageError
from mecharule_ops.events import Event, LlmMessage, QuestionAnswered
from mecharule_ops.run.opening import findings_of, opened
from mecharule_ops.store.keys import LAST_ANSWER
from tools.registry import call
from tools.result import ToolResult

OFFLINE: dict[str, str] = {}


def _script(folder: Path, *replies: dict[str, Any]) -> dict[str, str]:
    path = folder / "script.json"
    path.write_text(json.dumps({"replies": list(replies)}))
    return {"MECHARULE_LLM": f"mock:{path}", "MECHARULE_CONFIG": str(folder / "none.json")}


@pytest.fixture(autouse=True)
def _no_config(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(OFFLINE, "MECHARULE_CONFIG", str(tmp_path / "none.json"))


def test_a_canonical_question_says_what_its_tool_says(copied_run: Path) -> None:
    with opened(str(copied_run)) as run:
        unit = str(findings_of(run).units()[0].neuron)
    whole = call("why", {"run": str(copied_run), "neuron": unit})
    answer = ask(str(copied_run), f"why does {unit} flip?", environment=OFFLINE)
    assert answer.text == whole.text
    assert answer.data["understood"] == "why"
    whole = call("why", {"run": str(copied_run), "neuron": unit, "full": True})
    part = ask(str(copied_run), "how sure is it?", environment=OFFLINE)
    assert part.facts == tuple(fact for fact in whole.facts if fact.part == "How sure")


def test_anything_else_gets_suggestions_that_can_be_asked(copied_run: Path) -> None:
    answer = ask(str(copied_run), "what is the meaning of life?", environment=OFFLINE)
    suggested: Any = answer.data["suggested"]
    assert len(suggested) == 3
    assert answer.data["understood"] is None
    assert ask(str(copied_run), suggested[0], environment=OFFLINE).data["understood"]


def test_what_was_asked_is_remembered_and_can_be_verified(copied_run: Path) -> None:
    told: list[Event] = []
    answer = ask(
        str(copied_run), "why does the strongest channel flip?", show=told.append, environment=OFFLINE
    )
    assert [type(one) for one in told] == [QuestionAnswered]
    with opened(str(copied_run)) as run:
        kept = run.store.get(LAST_ANSWER)
    assert kept["certificates"] == answer.data["certificates"]
    proof = ask(str(copied_run), "prove it", environment=OFFLINE)
    assert proof.exit_code == 0
    assert "match" in proof.text


def test_a_model_follows_on_the_offline_answer_and_what_came_before(copied_run: Path, tmp_path: Path) -> None:
    first: list[ToolResult] = []
    environment = _script(
        tmp_path, {"when": ["why was that"], "text": "As was said."}, {"text": "It flips 99 of 98."}
    )
    one = ask(
        str(copied_run), "why does the strongest channel flip?", first=first.append, environment=environment
    )
    assert first[0].data["understood"] == "why"
    assert MARK in one.text
    assert "Facts:" not in one.text
    assert one.data["llm"] == f"mock:{tmp_path / 'script.json'}"
    assert ask(str(copied_run), "and again?", environment=environment).text.startswith("It flips 99 of 98.")
    with opened(str(copied_run)) as run:
        events = [event for _, _, event in run.store.events()]
    assert sum(isinstance(event, QuestionAnswered) for event in events) == 2
    assert any(isinstance(event, LlmMessage) for event in events)


@pytest.mark.parametrize("fault", ["key", "rate-limit", "server", "timeout", "cut", "refusal"])
def test_a_model_that_fails_leaves_the_offline_answer_and_one_line(
    copied_run: Path, tmp_path: Path, fault: str
) -> None:
    told: list[str] = []
    question = "what did the search miss?"
    alone = ask(str(copied_run), question, environment=OFFLINE)
    answer = ask(str(copied_run), question, told.append, environment=_script(tmp_path, {"fault": fault}))
    assert answer.text == alone.text
    (line,) = [line for line in told if "answered without it" in line]
    assert "\n" not in line
    assert str(answer.data["llm"]).startswith("none (mock:")


def test_a_model_named_by_flag_without_a_key_is_an_error(copied_run: Path) -> None:
    with pytest.raises(ModelUnavailable, match="ANTHROPIC_API_KEY is not set"):
        ask(str(copied_run), "why?", llm="anthropic/x", environment=OFFLINE)
    with pytest.raises(UsageError, match="expected none, mock:FILE"):
        ask(str(copied_run), "why?", llm="nobody", environment=OFFLINE)


def test_words_are_read_as_conditions_or_not_at_all(copied_run: Path) -> None:
    with opened(str(copied_run)) as run:
        assert condition_of(run, "carry(a, b)?") == "carry(a, b)"
        assert condition_of(run, "op is -") == "op == '-'"
        assert condition_of(run, "subtraction") == "op == '-'"
        assert condition_of(run, "the moon is full") is None
        assert condition_of(run, "op is maybe") is None

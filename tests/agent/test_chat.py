"""Questions about a run: offline, with a model, when it fails, and what is remembered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent.chat import ask, names_of
from agent.consent import Listener
from agent.prose import MARK
from mecharule_ops.errors import ModelUnavailable, UsageError
from mecharule_ops.events import AgonistFound, Event, LlmMessage, QuestionAnswered
from mecharule_ops.facts.shown_units import evidence_words, unit_status
from mecharule_ops.run.opening import find_certificate, findings_of, opened
from mecharule_ops.store.keys import LAST_ANSWER
from mecharule_ops.store.run_store import RunStore
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


@pytest.mark.parametrize("question", ["how sure is {}?", "is {} shown?", "could {} be chance?"])
def test_how_sure_a_unit_is_begins_with_whether_it_is_shown(copied_run: Path, question: str) -> None:
    """In the words that every page says of it, whether it is shown, open or not even a τ-agonist."""
    with opened(str(copied_run)) as run:
        findings = findings_of(run)
    kinds = {unit_status(unit): unit for unit in findings.units()}
    assert {"shown", "open", "not ruled out"} <= kinds.keys()
    for unit in kinds.values():
        first, *others = ask(str(copied_run), question.format(unit.neuron), environment=OFFLINE).facts
        assert first.sentence == evidence_words(findings, unit)
        assert first.sentence not in [one.sentence for one in others]


def test_a_part_that_is_not_stored_says_what_measures_it_and_no_more(copied_run: Path) -> None:
    """What is stored of the part stands before it; the rest of the card answers other questions."""
    with opened(str(copied_run)) as run:
        units = findings_of(run).by_evidence()
        made = next(str(one.neuron) for one in units if run.chain(one.neuron, one.search.regime))
        bare = next(str(one.neuron) for one in units if not run.chain(one.neuron, one.search.regime))

    def told(question: str) -> str:
        return ask(str(copied_run), question, environment=OFFLINE).text

    measures = f"`mecharule explain b00d {bare} --parts chain` measures it"
    for question in ("how does {} act?", "what breaks without {}?"):
        assert measures in told(question.format(bare))
        assert "How sure" not in told(question.format(bare))
        assert "measures it" not in told(question.format(made))
    assert told(f"what breaks without {bare}?").startswith(f"Switch channel {bare} off")
    assert "the splitter rule in disguise" in told(f"is {made} the splitter in disguise?")
    assert "of the examples of the slices that either flips both flip" in told(
        f"what shares flips with {made}?"
    )
    assert f"`mecharule ablate b00d {bare}` measures it" in told(f"what shares flips with {bare}?")


def test_anything_else_gets_suggestions_that_can_be_asked(copied_run: Path) -> None:
    answer = ask(str(copied_run), "what is the meaning of life?", environment=OFFLINE)
    suggested: Any = answer.data["suggested"]
    assert len(suggested) == 3
    assert answer.data["understood"] is None
    taken = ask(str(copied_run), "2", environment=OFFLINE)
    assert taken.data["question"] == suggested[1]
    assert taken.data["understood"]
    ask(str(copied_run), "and what of its meaning?", environment=OFFLINE)
    assert ask(str(copied_run), "", environment=OFFLINE).data["understood"]
    assert ask(str(copied_run), "2", environment=OFFLINE).data["question"] == "2", "nothing is suggested"


def test_what_was_asked_is_remembered_and_can_be_verified(copied_run: Path) -> None:
    told: list[Event] = []
    answer = ask(
        str(copied_run),
        "why does the strongest channel flip?",
        Listener(show=told.append),
        environment=OFFLINE,
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
        str(copied_run),
        "why does the strongest channel flip?",
        Listener(first=first.append),
        environment=environment,
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
    answer = ask(
        str(copied_run), question, Listener(tell=told.append), environment=_script(tmp_path, {"fault": fault})
    )
    assert answer.text == alone.text
    (line,) = [line for line in told if "answered without it" in line]
    assert "\n" not in line
    assert str(answer.data["llm"]).startswith("none (mock:")


def test_what_ablates_waits_for_the_model_and_then_for_the_person(copied_run: Path, tmp_path: Path) -> None:
    """Nothing is ablated before a model answers; where it fails, or there is none, the price is put to the person."""
    with opened(str(copied_run)) as run:
        first, second = (unit.neuron for unit in findings_of(run).units()[:2])
        assert find_certificate(run, tuple(sorted((first, second))), run.regimes[0]) is None
        before = len(run.store.certificates())
    question = f"what happens without {first} and {second} together?"
    stands: list[ToolResult] = []
    asked: list[str] = []

    def declined(price: str) -> bool:
        asked.append(price)
        return False

    said = _script(tmp_path, {"text": "Nobody knows."})
    told = ask(
        str(copied_run),
        question,
        Listener(first=stands.append, consent=declined),
        environment=said,
        seconds=0.0,
    )
    assert told.text.startswith("Nobody knows.")
    assert [one.text for one in stands] == [""]
    assert not asked
    for environment in (OFFLINE, _script(tmp_path, {"fault": "server"})):
        answer = ask(
            str(copied_run),
            question,
            Listener(consent=declined),
            environment=environment,
            seconds=0.0,
        )
        assert answer.text.startswith("not run: the person declined this price (64 ablated completions")
        assert answer.exit_code == 5
    assert len(asked) == 2
    assert all(f"  ablate units={first},{second}\nIt costs" in price for price in asked)
    with opened(str(copied_run)) as run:
        assert len(run.store.certificates()) == before
    measured = ask(
        str(copied_run),
        question,
        Listener(consent=lambda price: True),
        environment=OFFLINE,
        seconds=0.0,
    )
    assert "both" in measured.text or "together" in measured.text.lower()
    kept = _script(tmp_path, {"text": "As it stands."})
    ask(str(copied_run), question, Listener(first=stands.append), environment=kept)
    assert stands[-1].text == measured.text, "what is stored stands at once"


def test_a_call_that_failed_is_told_as_failed_and_one_declined_by_the_exit_code(
    copied_run: Path, tmp_path: Path
) -> None:
    calls = [{"name": "why", "arguments": {"neuron": "m99.1"}}]
    script = _script(tmp_path, {"unless": ["[tool]"], "calls": calls}, {"text": "It is not there."})
    answer = ask(str(copied_run), "why?", environment=script)
    assert answer.data["tools"] == [{"tool": "why", "arguments": {"neuron": "m99.1"}, "ok": False}]
    assert answer.exit_code == 0
    calls = [{"name": "ablate", "arguments": {"units": "m0.3"}}]
    script = _script(tmp_path, {"unless": ["[tool]"], "calls": calls}, {"text": "It was declined."})
    assert ask(str(copied_run), "and now?", environment=script, seconds=0.0).exit_code == 5


def test_a_reply_that_does_not_read_is_billed(copied_run: Path, tmp_path: Path) -> None:
    answer = ask(str(copied_run), "hello?", environment=_script(tmp_path, {"text": " "}))
    data: Any = answer.data
    assert "gave no answer" in data["llm"]
    assert data["requests"] == 1
    assert data["input_tokens"] > 500


def test_a_run_under_way_answers_from_its_snapshot(copied_run: Path, tmp_path: Path) -> None:
    """While another process holds it, and after that process died."""
    with opened(str(copied_run)) as run:
        told = [event for _, _, event in run.store.events()]
        settings: Any = run.store.config
    end = 1 + next(
        place for place, one in enumerate(told) if isinstance(one, AgonistFound) and one.is_tau_agonist
    )
    path = tmp_path / "beef.mecharule"
    with RunStore.create(path, {**settings, "run": "beef"}) as store:
        store.append(told[:end])
        answer = ask(str(path), "why does it flip?", environment=OFFLINE)
        assert answer.text.startswith("Run beef is at work: 1 found so far (")
        value: Any = answer.facts[0].value
        assert f"{value['tests']:,} of at most {value['tests_at_most']:,} tests" in answer.text
    assert (
        "has not finished; `mecharule resume beef` goes on" in ask(str(path), "?", environment=OFFLINE).text
    )


def test_a_model_named_by_flag_without_a_key_is_an_error(copied_run: Path) -> None:
    with pytest.raises(ModelUnavailable, match="ANTHROPIC_API_KEY is not set"):
        ask(str(copied_run), "why?", llm="anthropic/x", environment=OFFLINE)
    with pytest.raises(UsageError, match="expected none, mock:FILE"):
        ask(str(copied_run), "why?", llm="nobody", environment=OFFLINE)


def test_words_are_read_as_conditions_or_not_at_all(copied_run: Path) -> None:
    with opened(str(copied_run)) as run:
        read = names_of(run).condition
        assert [read(said) for said in ("carry(a, b)?", "Subtraction")] == ["carry(a, b)", "op == '-'"]
        assert [read(said) for said in ("the moon is full", "op is maybe")] == [None, None]


def test_what_comes_next_names_no_tool_that_refuses(finished_run: Path) -> None:
    """Gates mend wrong answers, and this run looked for units of right ones alone."""
    said = call("show", {"run": str(finished_run), "section": "next"})
    assert "gates" not in said.text
    with pytest.raises(UsageError, match="expected units"):
        call("gates", {"run": str(finished_run), "estimate": True})

"""Questions about a run: offline, with a model, when it fails, and what is remembered."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent import consent, prose
from agent.chat import ask, names_of
from mecharule_ops.events import AgonistFound, Event, LlmMessage, QuestionAnswered
from mecharule_ops.facts.shown_units import evidence_words, unit_status
from mecharule_ops.run.opening import find_certificate, findings_of, opened
from mecharule_ops.store import keys, run_store
from tools.registry import call
from tools.result import ToolResult

Put = Callable[..., ToolResult]


@pytest.fixture
def put(copied_run: Path, tmp_path: Path) -> Put:
    """A question of the run, put to a scripted model where replies are given."""

    def put(question: str, *replies: dict[str, Any], seconds: float = 60.0, **listening: Any) -> ToolResult:
        script = tmp_path / "script.json"
        script.write_text(json.dumps({"replies": replies}))
        model = {"MECHARULE_LLM": f"mock:{script}"} if replies else {}
        environment = {"MECHARULE_CONFIG": str(tmp_path / "none.json"), **model}
        listener = consent.Listener(**listening)
        return ask(str(copied_run), question, listener, seconds=seconds, environment=environment)

    return put


def test_a_canonical_question_says_what_its_tool_says(copied_run: Path, unit: str, put: Put) -> None:
    whole, full = (
        call("why", {"run": str(copied_run), "neuron": unit, "full": full}) for full in (False, True)
    )
    answer = put(f"why does {unit} flip?")
    assert (answer.text, answer.data["understood"]) == (whole.text, "why")
    assert put("how sure is it?").facts == tuple(fact for fact in full.facts if fact.part == "How sure")


def test_how_sure_a_unit_is_begins_with_whether_it_is_shown(copied_run: Path, put: Put) -> None:
    """In the words that every page says of it, whether it is shown, open or not even a τ-agonist."""
    with opened(str(copied_run)) as run:
        findings = findings_of(run)
    kinds = {unit_status(unit): unit for unit in findings.units()}
    assert {"shown", "open", "not ruled out"} <= kinds.keys()
    for unit in kinds.values():
        first, *others = put(f"is {unit.neuron} shown?").facts
        assert first.sentence == evidence_words(findings, unit)
        assert first.sentence not in [one.sentence for one in others]


def test_a_part_that_is_not_stored_says_what_measures_it_and_no_more(copied_run: Path, put: Put) -> None:
    """What is stored of the part stands before it; the rest of the card answers other questions."""
    with opened(str(copied_run)) as run:
        units = findings_of(run).by_evidence()
        made, bare = (
            next(str(one.neuron) for one in units if bool(run.chain(one.neuron, one.search.regime)) is has)
            for has in (True, False)
        )
    for question in ("how does {} act?", "what breaks without {}?"):
        said = put(question.format(bare)).text
        assert f"`mecharule explain b00d {bare} --parts chain` measures it" in said
        assert "How sure" not in said
        assert "measures it" not in put(question.format(made)).text
    assert put(f"what breaks without {bare}?").text.startswith(f"Switch channel {bare} off")
    assert "the splitter rule in disguise" in put(f"is {made} the splitter in disguise?").text
    assert "other unit with a certificate" in put(f"what shares flips with {made}?").text
    assert f"`mecharule ablate b00d {bare}` measures it" in put(f"what shares flips with {bare}?").text


def test_anything_else_gets_suggestions_that_can_be_asked(put: Put) -> None:
    answer = put("what is the meaning of life?")
    suggested: Any = answer.data["suggested"]
    assert (len(suggested), answer.data["understood"]) == (3, None)
    taken = put("2")
    assert taken.data["question"] == suggested[1]
    assert taken.data["understood"]
    put("and what of its meaning?")
    assert put("").data["understood"]
    assert put("2").data["question"] == "2", "nothing is suggested"


def test_that_no_such_unit_is_shown_is_said_of_the_strongest(put: Put) -> None:
    """The run searched channels alone; what may be asked stands behind."""
    told = put("why does the strongest head flip?").text
    assert told.startswith(f"{consent.NO_QUESTION}: no head is shown, so none is the strongest. You may ask")
    assert "no unit is shown" not in put("what does the strongest channel think of it?").text


def test_what_was_asked_is_remembered_and_can_be_verified(copied_run: Path, put: Put) -> None:
    told: list[Event] = []
    answer = put("why does the strongest channel flip?", show=told.append)
    assert [type(one) for one in told] == [QuestionAnswered]
    with opened(str(copied_run)) as run:
        assert run.store.get(keys.LAST_ANSWER) == answer.data["certificates"]
    proof = put("prove it")
    assert (proof.exit_code, "match" in proof.text) == (0, True)


def test_a_model_follows_on_the_offline_answer_and_what_came_before(copied_run: Path, put: Put) -> None:
    first: list[ToolResult] = []
    replies = {"when": ["why was that"], "text": "As was said."}, {"text": "It flips 99 of 98."}
    one = put("why does the strongest channel flip?", *replies, first=first.append)
    assert first[0].data["understood"] == "why"
    assert prose.MARK in one.text
    assert "Facts:" not in one.text
    assert put("why was that?", *replies).text.startswith("As was said.")
    with opened(str(copied_run)) as run:
        events = [event for _, _, event in run.store.events()]
    assert sum(isinstance(event, QuestionAnswered) for event in events) == 2
    assert any(isinstance(event, LlmMessage) for event in events)


@pytest.mark.parametrize("broken", [{"fault": "rate-limit"}, {"fault": "cut"}, {"text": " "}])
def test_a_model_that_fails_leaves_the_offline_answer_and_one_line(put: Put, broken: dict[str, Any]) -> None:
    """A reply that does not read is billed."""
    told: list[str] = []
    answer = put("what did the search miss?", broken, tell=told.append)
    assert answer.text == put("what did the search miss?").text
    (line,) = [line for line in told if "answered without it" in line]
    assert "\n" not in line
    data: Any = answer.data
    assert data["llm"].startswith("none (mock:")
    assert (data["requests"], data["input_tokens"] > 500) == (1, "text" in broken)


def test_what_ablates_waits_for_the_model_and_then_for_the_person(copied_run: Path, put: Put) -> None:
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

    told = put(question, {"text": "Nobody knows."}, first=stands.append, consent=declined, seconds=0.0)
    assert told.text.startswith("Nobody knows.")
    assert [one.text for one in stands] == [""]
    assert not asked
    for replies in ((), ({"fault": "server"},)):
        answer = put(question, *replies, consent=declined, seconds=0.0)
        assert answer.text.startswith("not run: the person declined it (64 ablated completions")
        assert answer.exit_code == 5
    assert len(asked) == 2
    assert all(f"  ablate units={first},{second}\nIt costs" in price for price in asked)
    with opened(str(copied_run)) as run:
        assert len(run.store.certificates()) == before
    measured = put(question, consent=lambda price: True, seconds=0.0)
    assert "both" in measured.text or "together" in measured.text.lower()
    put(question, {"text": "As it stands."}, first=stands.append)
    assert stands[-1].text == measured.text, "what is stored stands at once"


def test_a_declined_price_is_told_though_the_model_fails_after_it(copied_run: Path, put: Put) -> None:
    """By exit code 5, beside the offline answer that stands."""
    with opened(str(copied_run)) as run:
        first, second = (str(unit.neuron) for unit in findings_of(run).units()[:2])
    call_ = {"name": "ablate", "arguments": {"units": f"{first},{second}"}}
    replies: Any = ({"unless": ["[tool]"], "calls": [call_]}, {"fault": "server"})
    answer = put("why does the strongest channel flip?", *replies, consent=lambda price: False, seconds=0.0)
    assert (answer.data["understood"], answer.exit_code) == ("why", 5)


def test_a_run_under_way_answers_from_its_snapshot(copied_run: Path, tmp_path: Path) -> None:
    """While another process holds it, and after that process died."""
    with opened(str(copied_run)) as run:
        told = [event for _, _, event in run.store.events()]
        settings: Any = run.store.config
    end = 1 + next(place for place, one in enumerate(told) if isinstance(one, AgonistFound))
    path = tmp_path / "beef.mecharule"
    with run_store.RunStore.create(path, {**settings, "run": "beef"}) as store:
        store.append(told[:end])
        assert re.match(
            r"Run beef is running: .*, \d+ of at most \d+ tests, 1 localized so far; at τ so far: (none|(1→0|0→1): m1)",
            ask(str(path), "why does it flip?", environment={}).text,
        )
    assert "has not finished; `mecharule resume beef` goes on" in ask(str(path), "?", environment={}).text


def test_words_are_read_as_conditions_or_not_at_all(copied_run: Path) -> None:
    with opened(str(copied_run)) as run:
        read = names_of(run).condition
        assert [read(said) for said in ("carry(a, b)?", "Subtraction")] == ["carry(a, b)", "op == '-'"]
        assert [read(said) for said in ("the moon is full", "op is maybe")] == [None, None]

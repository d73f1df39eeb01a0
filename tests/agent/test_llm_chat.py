"""Questions to a scripted model about a real run: its tools, the facts it names, and what happens when it fails."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from committed_questions import QUESTIONS as COMMITTED
from committed_questions import UNKNOWN, asked_of_a_model, units_of, worded
from llm_scripted import Recorder, asker

from agent.answering import conversation
from agent.answering import conversation_nodes as nodes_conversing
from agent.answering.chat import answer, ask
from agent.answering.conversation_memory import Exchange
from agent.answering.router import route
from agent.answering.specs import spec_of
from agent.answering.toolbox import OFFERED, RunToolbox
from agent.graph import CHECKPOINTS
from agent.llm.choice import Choice
from mecharule_ops.errors import UsageError
from mecharule_ops.events import Event, LlmCost, LlmMessage, QuestionAnswered, ToolCalled
from mecharule_ops.findings.records import Findings
from mecharule_ops.run.opening import findings_of, opened
from mecharule_ops.store.event_json import event_to_json
from mecharule_ops.store.keys import LAST_ANSWER
from mecharule_ops.store.keys import QUESTIONS as LOG
from tools.registry import TOOLS, call

CHOICE = Choice(spec="mock:script", why="chosen by --llm")


def _findings(path: Path) -> Findings:
    with opened(str(path)) as run:
        return findings_of(run)


def _quiet(line: str) -> None:
    assert "\n" not in line


def _answer(path: Path, question: str, model: Recorder, **more: Any) -> dict[str, Any]:
    return dict(answer(str(path), question, asker(model), CHOICE, _quiet, **more).data)


QUESTIONS: dict[str, tuple[str, dict[str, object]]] = {
    "why does the strongest unit flip?": ("why", {"neuron": "UNIT"}),
    "why not m1.3?": ("why-not", {"neuron": "m1.3"}),
    "would it flip on 120-7=?": ("flip", {"neuron": "UNIT", "prompt": "120-7=", "neighbours": 3, "edits": 1}),
    "what else does its rule cover?": ("covers", {"neuron": "UNIT"}),
    "which units share these flips?": ("shared", {"neuron": "UNIT"}),
    "what would change your mind?": ("why", {"neuron": "UNIT"}),
    "how was it found?": ("why-not", {"neuron": "UNIT"}),
    "what did the search miss?": ("missed", {}),
    "which unit is the strongest?": ("neurons", {"limit": 3}),
    "which rules hold?": ("rules", {"limit": 2}),
    "what is certified?": ("evidence", {}),
    "what if we ablate m1.3 too?": ("ablate", {"units": "m1.3"}),
}
"""Twelve questions and the tool that a sensible model calls for each."""


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_model_that_names_what_its_tool_states_is_never_marked(
    copied_run: Path, tmp_path: Path, question: str
) -> None:
    """Each fact of the tool is put in with its source; follow-ups have answers."""
    unit = str(_findings(copied_run).searches[0].agonists[0].neuron)
    tool, given = QUESTIONS[question]
    arguments = {name: unit if value == "UNIT" else value for name, value in given.items()}
    call = {"unless": ["f1: "], "calls": [{"name": tool, "arguments": arguments}]}
    asked = f"{question} {UNKNOWN}"
    data = _answer(copied_run, asked, Recorder(tmp_path, call, {"text": "⟦f1⟧"}))
    assert data["verified"], data["checked"]
    assert [one["ok"] for one in data["tools"]] == [True]
    assert all(route(one) is not None for one in data["follow_ups"])


@pytest.mark.parametrize("question", COMMITTED)
@pytest.mark.slow
def test_the_committed_questions_are_answered_by_a_model_too(
    copied_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, question: str
) -> None:
    """The list that is answered offline, through the graph: a model that names its facts is never marked."""
    monkeypatch.setenv("MECHARULE_RUNS", str(copied_run.parent))
    unit, other = units_of(_findings(copied_run))
    said, result = asked_of_a_model(copied_run, tmp_path, worded(question, unit, other), unit)
    assert result.data["verified"], result.data["checked"]
    assert all(" ".join(sentence.split()) in str(result.data["answer"]) for sentence in said)


def test_a_lie_about_a_real_run_is_left_out_and_what_was_cited_is_remembered(
    copied_run: Path, tmp_path: Path
) -> None:
    """One fact with its certificate, one false count; the run keeps question, prompt hash, tokens, faults."""
    findings = _findings(copied_run)
    unit = findings.searches[0].agonists[0]
    plus = unit.estimate.associated
    model = Recorder(
        tmp_path,
        {"unless": ["[tool]"], "calls": [{"name": "why", "arguments": {"neuron": str(unit.neuron)}}]},
        {"text": f"It matters ⟦f1⟧. It flips {plus.flips + 1}/{plus.n} associated ⟦f1⟧."},
    )
    data = _answer(copied_run, f"so why? {UNKNOWN}", model)
    assert f"{plus.flips + 1}/{plus.n}" not in data["answer"]
    assert data["answer"].startswith(f"It matters. Switch channel {unit.neuron} ")
    assert not data["verified"]
    with opened(str(copied_run)) as run:
        (entry,) = cast(list[Any], run.store.get(LOG))
        remembered = run.store.get(LAST_ANSWER)
    assert entry["prompts"]["converse"].keys() == {"version", "sha256"}
    assert len(entry["faults"]) == 1
    assert remembered["certificates"] == data["certificates"]  # type: ignore[index]


def test_what_the_router_understands_is_answered_before_the_model_adds(
    copied_run: Path, tmp_path: Path
) -> None:
    """The answer streams first; an addition that names a fact stands under it, any other is left out."""
    offline = conversation.ask(str(copied_run), "what did the search miss?").data["answer"]
    heard: list[str] = []
    good = Recorder(tmp_path, _added("So a closer look is due."))
    data = _answer(copied_run, "what did the search miss?", good, on_text=heard.append)
    assert heard[0] == f"{offline}\n"
    assert data["answer"] == f"{offline}\nSo a closer look is due [run:b00d]."
    assert data["llm"] == "mock:script"
    assert len(good.sent) == 1
    for sentence, facts in (
        ("", [1]),
        ("nothing", [99]),
        ("It missed 7777 units.", [1]),
        ("All of it.", [1]),
        ("So a closer look is due.", []),
        (f"{offline.split(' [run:')[0]}.", [1]),
    ):
        model = Recorder(tmp_path, _added(sentence, facts))
        data = _answer(copied_run, "what did the search miss?", model)
        assert data["answer"] == offline, sentence
        assert data["llm"].startswith("none (mock:script: it added nothing")
    for said in ("", "nothing", '{"tool": "why"}', "word " * 9999):
        data = _answer(copied_run, "what did the search miss?", Recorder(tmp_path, {"text": said}))
        assert (data["answer"], len(good.sent)) == (offline, 1)


def _added(sentence: str, facts: Sequence[int] = (1,)) -> dict[str, Any]:
    return {"json": {"facts": list(facts), "sentence": sentence}}


def test_a_first_turn_of_a_small_model_reads_few_tokens(copied_run: Path, tmp_path: Path) -> None:
    """At three characters a token, fewer than these texts have: rules, words, units, question, tools within 1,200."""
    choice = Choice(spec="openai/x", why="", base_url="http://127.0.0.1:1")
    for question in (
        *(worded(one, "m1.37", "m1.3") for one in COMMITTED),
        UNKNOWN,
        "is it a carry detector?",
    ):
        model = Recorder(tmp_path, {"text": "no"})
        answer(str(copied_run), f"{question} {UNKNOWN}", asker(model), choice, _quiet)
        tools = "".join(tool.line for tool in model.requests[0].tools)
        assert len(model.sent[0] + tools) / 3 <= 1200, (len(model.sent[0] + tools) / 3, question)


def test_the_first_turn_names_task_model_units_direction_and_words(copied_run: Path, tmp_path: Path) -> None:
    """What a reader needs who knows nothing of the run."""
    findings = _findings(copied_run)
    model = Recorder(tmp_path, {"text": "no"})
    _answer(copied_run, UNKNOWN, model)
    said = model.sent[0]
    units = [str(agonist.neuron) for agonist in findings.searches[0].agonists]
    assert all(unit in said for unit in units[:10])
    assert "Task: arithmetic, for example " in said
    assert "Model: arith-tiny" in said
    assert "Found in mlp_out 1→0, strongest first: " in said
    words = ("unit", "flip", "D+", "strength", "pruned", "rule", "lead", "control", "account", "certificate")
    assert all(f"\n- {word}" in said for word in words)


def test_every_tool_of_a_run_can_be_reached_by_every_model(copied_run: Path) -> None:
    """A model of a large context is shown all; one of a small context finds each by what it says of itself."""
    everything = {name for name in TOOLS if "run" in TOOLS[name].arguments.model_fields} | {
        "compare",
    }
    assert everything - {"export", "register", "decide"} <= set(OFFERED)
    large = RunToolbox(str(copied_run), "b00d").specs(UNKNOWN)
    assert {tool.name for tool in large} == set(OFFERED)
    small = RunToolbox(str(copied_run), "b00d", is_small=True)
    for name in OFFERED:
        names, told = small.about(TOOLS[name].help)
        assert name in names, name
        assert f"- {name}(" in told
    shown = [tool.name for tool in small.specs(UNKNOWN, found=["path"])]
    assert "path" in shown
    assert "tools" in shown
    assert len(shown) <= 6


def test_a_small_model_is_shown_an_optional_argument_only_where_it_is_named(copied_run: Path) -> None:
    """It would fill it in nearly every time; what a call must have is always there, with its meaning."""
    plain: Any = spec_of("why", "why does m1.37 flip?").schema
    assert list(plain["properties"]) == ["neuron"]
    assert plain["properties"]["neuron"]["description"].startswith("a unit such as m4.1234")
    own: Any = spec_of("why", "", "m1.37").schema
    assert own["properties"]["neuron"]["description"] == "a unit such as m1.37"
    for question in (
        "why does m1.37 flip 0→1?",
        "what does m1.37 repair?",
        "why, in the regime of wrong ones?",
    ):
        assert list(spec_of("why", question).schema["properties"]) == ["neuron", "regime"]  # type: ignore[arg-type]
    assert "layer" in spec_of("tree", "what was pruned in layer 1?").schema["properties"]  # type: ignore[operator]


def test_facts_of_tools_are_shown_when_their_wording_fails(copied_run: Path, tmp_path: Path) -> None:
    """Whatever the model does after its call: a fault, a refusal, lies, loops; each fact stands there whole."""
    wanted = call("missed", {"run": str(copied_run)}).facts
    for reply in (
        {"fault": "server"},
        {"fault": "refusal"},
        {"text": "It computes 77 sums."},
        {"text": ""},
        CALL_MORE,
    ):
        told: list[str] = []
        model = Recorder(tmp_path, CALL, reply)
        result = answer(str(copied_run), ASKED, asker(model), CHOICE, told.append)
        said = str(result.data["answer"])
        assert said.startswith("The model gave no answer that can be shown; its tools state:"), reply
        assert all(fact.cited in said for fact in wanted)
        assert result.data["verified"]
        assert "the facts of its tools are shown" in told[-1]


@pytest.mark.parametrize("fault", ["key", "server", "refusal"])
def test_a_model_that_fails_gives_way_to_the_router_and_says_so(
    copied_run: Path, tmp_path: Path, fault: str
) -> None:
    """The question is still answered, offline; the line says why the model did not."""
    told: list[str] = []
    model = Recorder(tmp_path, {"fault": fault})
    result = answer(str(copied_run), "what was found?", asker(model), CHOICE, told.append)
    assert result.data["llm"].startswith("none (mock:script: the model gave no usable reply: ")  # type: ignore[attr-defined]
    assert result.data["tool"] is None
    assert "answered without it" in told[-1]
    assert result.text


def test_the_choice_is_told_and_none_goes_to_the_router(copied_run: Path, tmp_path: Path) -> None:
    """Without a model the answer is the router's; with a script it is the script's, which is said and why."""
    told: list[str] = []
    nothing = {"MECHARULE_CONFIG": str(tmp_path / "none.json")}
    offline = ask(str(copied_run), "what was found?", told.append, environment=nothing)
    assert offline.data["llm"] == "none (offline)"
    assert "LLM: none" not in "\n".join([*told, offline.text])
    script = tmp_path / "s.json"
    replies = [{"when": ["f1: "], "text": "⟦f1⟧"}, {"when": ["EARLIER"], "text": '{"tool": "neurons"}'}]
    script.write_text(json.dumps({"replies": replies}))
    earlier = (Exchange(question="EARLIER", answer="It does."),)
    result = ask(
        str(copied_run), "xyzzy?", told.append, llm=f"mock:{script}", earlier=earlier, environment=nothing
    )
    assert "[run:b00d]" in str(result.data["answer"])
    assert result.text.splitlines()[0] == f"LLM: mock:{script}: chosen by --llm"


def test_a_model_can_neither_accept_a_price_nor_leave_its_run(copied_run: Path) -> None:
    """What a person decides is not offered, and is refused when a model asks for it all the same."""
    toolbox = RunToolbox(str(copied_run), "b00d")
    for spec in map(spec_of, OFFERED):
        properties: Any = spec.schema["properties"]
        assert not {"run", "first", "yes", "model"} & set(properties) or spec.name == "versus"
    for name, arguments in (
        ("ablate", {"units": "m0.1", "yes": True}),
        ("why", {"run": "other", "neuron": "m0.1"}),
        ("versus", {"run": "other", "first": "m0.1", "second": "m0.2"}),
    ):
        with pytest.raises(UsageError, match=f"expected arguments of {name} among"):
            toolbox.call(name, arguments)


# --- what a run remembers --------------------------------------------------------------------------------


def _told(path: Path) -> list[Event]:
    with opened(str(path)) as run:
        return [event for _, _, event in run.store.events()]


def _script(folder: Path, *replies: dict[str, Any]) -> str:
    path = folder / "chat.json"
    path.write_text(json.dumps({"replies": list(replies)}))
    return f"mock:{path}"


ASKED = f"what was missed? {UNKNOWN}"
CALL_MORE = {"calls": [{"name": "missed", "arguments": {}}]}
CALL = {"last": [ASKED], "calls": [{"name": "missed", "arguments": {}}]}


def test_replies_calls_costs_and_answers_are_events_of_the_run(copied_run: Path, tmp_path: Path) -> None:
    """Shown as they happen and kept with the answer; a draft's words are in no event before their check."""
    script = _script(tmp_path, CALL, {"text": "It missed 7777 units ⟦f1⟧."})
    before, shown = len(_told(copied_run)), list[Event]()
    result = ask(str(copied_run), ASKED, _quiet, llm=script, show=shown.append)
    assert _told(copied_run)[before:] == shown
    assert [type(event) for event in shown] == [
        *(LlmMessage, LlmCost, ToolCalled),
        *(LlmMessage, LlmCost, QuestionAnswered),
    ]
    called, answered = shown[2], shown[-1]
    assert isinstance(called, ToolCalled)
    assert (called.tool, called.arguments, called.ok) == ("missed", "{}", True)
    assert isinstance(answered, QuestionAnswered)
    assert answered.answer == result.data["answer"]
    assert "tested alone" in answered.answer
    assert not any("7777" in event_to_json(event) for event in shown)
    cost = shown[4]
    assert isinstance(cost, LlmCost)
    assert (cost.requests, cost.input_tokens) == (2, result.data["input_tokens"])


def test_an_offline_answer_is_an_event_too(copied_run: Path, tmp_path: Path) -> None:
    """Who answered is said: none."""
    shown: list[Event] = []
    ask(str(copied_run), "what was found?", _quiet, llm="none", show=shown.append)
    (answered,) = shown
    assert isinstance(answered, QuestionAnswered)
    assert answered.llm == "none (offline)"
    assert _told(copied_run)[-1] == answered


def test_a_question_killed_in_the_middle_goes_on_where_it_was(
    copied_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed at its check, after a tool call: asked again, nothing is paid twice; a third time it is."""
    script = (CALL, {"text": "⟦f1⟧"})
    first = Recorder(tmp_path, *script)

    def killed(*arguments: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(nodes_conversing, "read", killed)
        with pytest.raises(KeyboardInterrupt):
            _answer(copied_run, ASKED, first)
    assert len(first.sent) == 2
    second = Recorder(tmp_path, *script)
    data = _answer(copied_run, ASKED, second)
    assert second.sent == []
    assert "[run:b00d]" in data["answer"]
    assert [one["tool"] for one in data["tools"]] == ["missed"]
    third = Recorder(tmp_path, *script)
    _answer(copied_run, ASKED, third)
    assert len(third.sent) == 2


def test_a_conversation_goes_on_in_another_process(copied_run: Path, tmp_path: Path) -> None:
    """`earlier=None` takes what was asked before from the run file; without it a question stands alone."""
    named = {"when": ["f1: "], "text": "So it is ⟦f1⟧."}
    follows = {
        "last": [f"and the blue one? {UNKNOWN}"],
        "when": [ASKED, "So it is. mlp_out"],
        "text": "Neither, 7.",
    }
    script = _script(tmp_path, named, CALL, {"text": '{"tool": "neurons"}'})
    ask(str(copied_run), ASKED, _quiet, llm=script)
    heard: list[str] = []
    silent = _script(tmp_path, follows, {"text": "Who?"})
    ask(str(copied_run), f"and the blue one? {UNKNOWN}", _quiet, llm=silent, on_text=heard.append)
    assert "Neither" not in "".join(heard)
    ask(
        str(copied_run),
        f"and the blue one? {UNKNOWN}",
        _quiet,
        llm=silent,
        earlier=None,
        on_text=heard.append,
    )
    assert "Neither" in "".join(heard)


def test_beside_a_run_that_cannot_be_written_a_question_is_answered_all_the_same(
    copied_run: Path, tmp_path: Path
) -> None:
    """The checkpoint file is a folder here: said in a line, and the answer comes."""
    copied_run.with_name(copied_run.name + CHECKPOINTS).mkdir()
    told: list[str] = []
    script = _script(tmp_path, {"when": ["f1: "], "text": "⟦f1⟧"}, {"text": '{"tool": "neurons"}'})
    result = ask(str(copied_run), f"so? {UNKNOWN}", told.append, llm=script)
    assert "[run:b00d]" in str(result.data["answer"])
    assert any("could not be continued after a kill" in line for line in told)

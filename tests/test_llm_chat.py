"""Questions to a scripted model about a real run: its tools, its checked numbers, and what happens when it fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from llm_scripted import Recorder, asker

from agent import conversation
from agent.chat import LOG, Exchange, answer, ask
from agent.ledger import Ledger
from agent.llm.choice import Choice
from agent.refining import refine, summary
from agent.toolbox import OFFERED, RunToolbox
from mecharule_ops.errors import UsageError
from mecharule_ops.findings.records import Findings
from tools.opening import LAST_ANSWER, findings_of, opened

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
    "what if we ablate m1.3 too?": ("ablate", {"units": "m1.3", "estimate": True}),
}
"""Twelve questions and the tool that a sensible model calls for each."""


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_model_that_repeats_what_its_tool_says_is_never_marked(
    copied_run: Path, tmp_path: Path, question: str
) -> None:
    """Each line of the tool's own text, cited as the run, verifies whole; follow-ups have answers."""
    unit = str(_findings(copied_run).searches[0].agonists[0].neuron)
    tool, given = QUESTIONS[question]
    arguments = {name: unit if value == "UNIT" else value for name, value in given.items()}
    lines = RunToolbox(str(copied_run)).call(tool, arguments).text.splitlines()
    text = "\n".join(f"{line} [run:b00d]" for line in lines if line.strip())
    call = {"unless": ["[tool]"], "calls": [{"name": tool, "arguments": arguments}]}
    data = _answer(copied_run, question, Recorder(tmp_path, call, {"text": text.replace("$", "$$")}))
    assert data["verified"], data["checked"]
    assert data["answer"] == text
    assert [one["ok"] for one in data["tools"]] == [True]
    assert all(conversation.route(one) is not None for one in data["follow_ups"])


def test_a_lie_about_a_real_run_is_struck_and_what_was_cited_is_remembered(
    copied_run: Path, tmp_path: Path
) -> None:
    """One true sentence with its certificate, one false; the run keeps question, prompt hash, tokens, faults."""
    findings = _findings(copied_run)
    unit = findings.searches[0].agonists[0]
    plus = unit.estimate.associated
    true, false = (f"flips {flips}/{plus.n} associated [c:$id]." for flips in (plus.flips, plus.flips + 1))
    lie = f"{unit.neuron} {true} It {false}"
    model = Recorder(
        tmp_path,
        {"unless": ["[tool]"], "calls": [{"name": "why", "arguments": {"neuron": str(unit.neuron)}}]},
        {"find": r"\[c:(?P<id>[0-9a-f]{12})\]", "text": lie},
    )
    data = _answer(copied_run, "why?", model)
    assert f"~~{plus.flips + 1}/{plus.n}~~ [differs from its source]" in data["answer"]
    assert f"{unit.neuron} flips {plus.flips}/{plus.n} associated [c:" in data["answer"]
    assert not data["verified"]
    with opened(str(copied_run)) as run:
        (entry,) = run.store.get(LOG)  # type: ignore[misc]
        remembered = run.store.get(LAST_ANSWER)
    assert entry["prompts"]["converse"].keys() == {"version", "sha256"}
    assert len(entry["faults"]) == 1
    assert remembered["certificates"] == data["certificates"]  # type: ignore[index]


@pytest.mark.parametrize("fault", ["key", "server", "refusal"])
def test_a_model_that_fails_gives_way_to_the_router_and_says_so(
    copied_run: Path, tmp_path: Path, fault: str
) -> None:
    """The question is still answered, offline; the line says why the model did not."""
    told: list[str] = []
    model = Recorder(tmp_path, {"fault": fault})
    result = answer(str(copied_run), "what was found?", asker(model), CHOICE, told.append)
    assert result.data["llm"].startswith("none (mock:script: the model could not be asked: ")  # type: ignore[attr-defined]
    assert result.data["tool"] is None
    assert "answered without it" in told[-1]
    assert result.text


def test_the_choice_is_told_and_none_goes_to_the_router(copied_run: Path, tmp_path: Path) -> None:
    """Without a model the answer is the router's; with a script it is the script's; both say which and why."""
    told: list[str] = []
    nothing = {"MECHARULE_CONFIG": str(tmp_path / "none.json")}
    offline = ask(str(copied_run), "what was found?", told.append, environment=nothing)
    assert offline.data["llm"] == "none (offline)"
    assert told[0].startswith("LLM: none (offline): no model is named")
    script = tmp_path / "s.json"
    script.write_text(json.dumps({"replies": [{"when": ["EARLIER"], "text": "Yes."}]}))
    earlier = (Exchange(question="EARLIER", answer="It does."),)
    result = ask(
        str(copied_run), "sure?", told.append, llm=f"mock:{script}", earlier=earlier, environment=nothing
    )
    assert result.data["answer"] == "Yes."
    assert result.text.splitlines()[0] == f"LLM: mock:{script}: chosen by --llm"


def test_a_model_can_neither_accept_a_price_nor_leave_its_run(copied_run: Path) -> None:
    """What a person decides is not offered, and is refused when a model asks for it all the same."""
    toolbox = RunToolbox(str(copied_run))
    assert tuple(spec.name for spec in toolbox.specs) == OFFERED
    for spec in toolbox.specs:
        properties: Any = spec.schema["properties"]
        assert not {"run", "first", "yes", "model"} & set(properties)
    for name, arguments in (
        ("ablate", {"units": "m0.1", "yes": True}),
        ("why", {"run": "other", "neuron": "m0.1"}),
    ):
        with pytest.raises(UsageError, match=f"expected arguments of {name} among"):
            toolbox.call(name, arguments)


def test_refinement_of_a_real_run_reports_before_and_after(copied_run: Path, tmp_path: Path) -> None:
    """Units without a good rule are put to the model; the run keeps reports, ledger and prompt hash; findings stay."""
    idea = {"statement": "It flips where the units carry.", "condition": "carry_at(a, b, 0)"}
    model = Recorder(tmp_path, {"json": {"predicates": ["digit(a, 0) >= 6"], "hypothesis": idea}})
    before = _findings(copied_run)
    with opened(str(copied_run), write=True) as run:
        reports = refine(run, asker(model), rounds=1, most_units=2)
        entries = Ledger(run.store).entries()
        again = refine(run, asker(Recorder(tmp_path)), rounds=1, most_units=2)
        assert run.cost.group_evaluations == 0
    assert len(reports) == 2
    assert again == reports
    assert {entry.prediction.subject for entry in entries} == {report["unit"] for report in reports}
    assert all(entry.state in ("supported", "refuted", "underpowered") for entry in entries)
    assert summary(reports, before.mcc_floor).startswith("HQ-T rules among 2 refined units: 0 before, ")
    assert _findings(copied_run) == before
